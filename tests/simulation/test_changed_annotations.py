"""Tests of annotations that change while containers run: finished events remain, and later events follow the new
annotation.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.clock import format_time_seconds
from ctrlmgr.simulation.behaviour import read
from ctrlmgr.simulation.container_state import Memory, digest, remembered
from ctrlmgr.simulation.kubelet_status import Desired, Place, desired_status
from tests.simulation.test_pod_lifecycle import clock, container, pod

PLACE = Place(("192.0.2.1",), ("10.0.0.2",))


class SimulatedPod:
    """A pod whose status is written at each change in the simulation, as a kubelet would write it."""

    def __init__(self, of: dict[str, Any], told: str = "") -> None:
        self.pod = of
        self.now = 0.0
        self.told = told

    def look(self) -> Desired:
        found = desired_status(self.pod, lambda container: read(self.told), PLACE, self.now, None, clock)
        self.pod["status"] = found.status
        return found

    def to(self, seconds: float) -> dict[str, Any]:
        """Advance the time, and return the status of the pod's first container."""
        while True:
            change = self.look().changes_in
            if change is None or self.now + change > seconds:
                break
            self.now += max(change, 0.01)
        self.now = seconds
        self.look()
        return self.status

    def tell(self, told: str = "", image: str = "") -> dict[str, Any]:
        """Change the phrases in the annotation, and return the next status of the pod's first container."""
        self.told = told
        if image:
            self.pod["spec"]["containers"][0]["image"] = image
        self.look()
        return self.status

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.pod["status"]["containerStatuses"][0]
        return found


def test_a_later_annotation_applies_from_its_time() -> None:
    lived = SimulatedPod(pod())
    before = lived.to(3600)
    after = lived.tell("exit 3 after 20s")
    assert (after["state"], after["restartCount"], after["ready"]) == (before["state"], 0, True)
    assert lived.to(3619)["restartCount"] == 0
    found = lived.to(3622)
    assert found["restartCount"] == 1
    ended = found["lastState"]["terminated"]
    assert (ended["exitCode"], ended["finishedAt"]) == (3, format_time_seconds(3_620_000_000))
    assert ended["startedAt"] == before["state"]["running"]["startedAt"]
    assert lived.to(3641)["restartCount"] == 2


def test_a_crash_loop_ends_when_the_annotation_is_removed() -> None:
    lived = SimulatedPod(pod(), "crash loop")
    found = lived.to(20)
    assert (found["state"]["waiting"]["reason"], found["restartCount"]) == ("CrashLoopBackOff", 2)
    found = lived.tell("")
    assert (list(found["state"]), found["restartCount"]) == (["running"], 3)
    assert found["lastState"]["terminated"]["exitCode"] == 1
    assert lived.to(4000)["restartCount"] == 3
    found = lived.tell("crash loop")
    assert found["restartCount"] == 3
    assert lived.to(4002)["restartCount"] == 4


def test_readiness_follows_the_annotation() -> None:
    lived = SimulatedPod(pod())
    lived.to(100)
    assert not lived.tell("never ready")["ready"]
    assert lived.tell("")["ready"]
    assert not lived.tell("ready after 5s")["ready"]
    lived.to(104)
    assert not lived.status["ready"]
    assert lived.to(106)["ready"]
    assert lived.status["restartCount"] == 0


def test_a_finished_script_ends_when_it_is_resumed() -> None:
    lived = SimulatedPod(pod(container(script="sleep 10; exit 0"), restartPolicy="Never"), "exit 7 after 1h")
    assert "running" in lived.to(1000)["state"]
    lived.tell("")
    ended = lived.to(1001)["state"]["terminated"]
    assert (ended["exitCode"], ended["finishedAt"]) == (0, clock(1000))
    assert lived.pod["status"]["phase"] == "Succeeded"


def test_another_image_restarts_a_container() -> None:
    lived = SimulatedPod(pod())
    before = lived.to(60)
    found = lived.tell(image="example.com/app:2")
    assert (found["image"], found["restartCount"], found["state"]) == (
        "example.com/app:2",
        1,
        {"running": {"startedAt": clock(60)}},
    )
    ended = found["lastState"]["terminated"]
    assert (ended["startedAt"], ended["finishedAt"]) == (before["state"]["running"]["startedAt"], clock(60))
    assert found["containerID"] != before["containerID"] == ended["containerID"]
    assert lived.to(100)["restartCount"] == 1


def test_an_unpullable_image_stops_a_container_until_it_is_corrected() -> None:
    lived = SimulatedPod(pod())
    lived.to(60)
    found = lived.tell(image="example.com/app:nonexistent")
    assert (found["state"]["waiting"]["reason"], found["restartCount"]) == ("ErrImagePull", 0)
    assert found["lastState"]["terminated"]["finishedAt"] == clock(60)
    found = lived.to(70)
    assert found["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert found["lastState"]["terminated"]["finishedAt"] == clock(60)
    assert lived.pod["status"]["phase"] == "Running"
    found = lived.tell(image="example.com/app:3")
    assert (found["restartCount"], found["state"]["running"]["startedAt"]) == (1, clock(70))


def test_a_container_with_a_corrected_image_starts() -> None:
    lived = SimulatedPod(pod({"name": "c", "image": "example.com/app:nonexistent"}))
    assert lived.to(60)["state"]["waiting"]["reason"] == "ImagePullBackOff"
    found = lived.tell(image="example.com/app:1")
    assert (found["state"], found["restartCount"], found["lastState"]) == (
        {"running": {"startedAt": clock(60)}},
        0,
        {},
    )
    assert lived.to(90)["state"] == {"running": {"startedAt": clock(60)}}


def test_terminated_containers_are_not_changed() -> None:
    lived = SimulatedPod(pod(container("a", "sleep 1; exit 4"), container("b"), restartPolicy="Never"))
    before = lived.to(30)
    assert lived.tell("exit 1 after 5s") == before
    lived.to(40)
    codes = [each["state"]["terminated"]["exitCode"] for each in lived.pod["status"]["containerStatuses"]]
    assert codes == [4, 1]
    assert lived.pod["status"]["phase"] == "Failed"


def test_a_pod_without_new_annotations_equals_its_full_computation() -> None:
    of = pod(container(script="echo x; sleep 7; exit 1"), container("d", "sleep 30"))
    lived = SimulatedPod({**of})
    for seconds in (1, 8, 15, 40, 100, 1000):
        lived.to(seconds)
        fresh = desired_status(of, lambda container: read(""), PLACE, float(seconds), None, clock).status
        assert lived.pod["status"]["containerStatuses"] == fresh["containerStatuses"]


@pytest.mark.parametrize("memory", [Memory("0123abcd", 0.5), Memory("ffffffff", 86_400.125, 70_000, 12.345, 9e9)])
def test_a_pod_uid_has_remembered_state(memory: Memory) -> None:
    text = memory.identify(digest("x"))
    assert len(text) == len("simulated://") + 64
    assert remembered(text) == memory


@pytest.mark.parametrize("text", ["", "simulated://abc", f"containerd://{'0' * 64}", f"simulated://{'z' * 64}"])
def test_other_uids_have_no_remembered_state(text: str) -> None:
    assert remembered(text) is None

"""Tests of files that simulated containers share, in volumes of every kind."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest

from ctrlmgr.simulation.behaviour import read
from ctrlmgr.simulation.pod_lifecycle import Life, live
from ctrlmgr.simulation.simulated_files import Shared, is_sharing

MOUNT = [{"name": "v", "mountPath": "/v"}]


def container(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": MOUNT, **more}


def pod(*containers: dict[str, Any], volume: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": "v", **(volume or {"emptyDir": {}})}]
    body = {"nodeName": "n", "restartPolicy": "Never", "containers": [*containers], "volumes": volumes, **spec}
    return {"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": body}


def lived(of: dict[str, Any], now: float = 60.0, shared: Shared | None = None) -> Life:
    return live(of, lambda container: read(""), now, None, shared)


def codes(life: Life) -> list[int]:
    return [each.spans[-1].code for each in (*life.init, *life.main)]


def ends(life: Life) -> list[float | None]:
    return [each.spans[-1].end for each in life.main]


WAITS = "until [ -f /v/go ]; do sleep 1; done; cat /v/go"


@pytest.mark.parametrize("order", [1, -1], ids=["the reader first", "the writer first"])
def test_running_containers_see_each_others_files(order: int) -> None:
    containers = [container("reader", WAITS), container("writer", "sleep 5; echo now > /v/go; sleep 30")]
    life = lived(pod(*containers[::order]))
    found = {each.name: each.spans[-1] for each in life.main}
    assert found["reader"].end == pytest.approx(found["reader"].start + 5)
    assert [each.text for each in found["reader"].run.lines] == ["now"]


def test_containers_can_wait_for_each_other_in_turn() -> None:
    one = container("one", "sleep 1; touch /v/a; until [ -f /v/b ]; do sleep 1; done; touch /v/c")
    other = container("two", "until [ -f /v/a ]; do sleep 1; done; touch /v/b; until [ -f /v/c ]; do sleep 1; done")
    assert codes(lived(pod(one, other))) == [0, 0]
    assert all(end is not None and end < 10 for end in ends(lived(pod(one, other))))


def test_init_containers_leave_files_for_later_containers() -> None:
    init = container("copy", "cp /bin/tool /v/; mkdir -p /v/sub; echo x > /v/sub/y")
    main = container("run", "[ -x /v/tool ] && [ -d /v/sub ] && grep -q x /v/sub/y && [ ! -e /tmp/z ]")
    assert codes(lived(pod(main, initContainers=[init]))) == [0, 0]


def test_a_terminated_container_writes_no_later_files() -> None:
    dies = container(
        "dies",
        "sleep 20; touch /v/late",
        livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 5, "failureThreshold": 1},
    )
    looks = container("looks", "sleep 40; [ ! -e /v/late ]")
    assert codes(lived(pod(dies, looks))) == [137, 0]


def test_subpaths_of_a_volume_can_be_mounted() -> None:
    writer = container("writer", "echo x > /v/a/f; echo y > /v/g")
    reader = container("reader", "sleep 1; [ -f /w/f ] && [ ! -e /w/g ] && [ -f /w/f ]")
    reader["volumeMounts"] = [{"name": "v", "mountPath": "/w", "subPath": "a"}]
    assert codes(lived(pod(writer, reader))) == [0, 0]


def test_a_read_only_mount_is_not_written() -> None:
    one = container("one", "touch /v/f")
    one["volumeMounts"] = [{**MOUNT[0], "readOnly": True}]
    assert codes(lived(pod(one))) == [1]


@pytest.mark.parametrize("volume", [{"configMap": {"name": "m"}}, {"secret": {"secretName": "s"}}, {"projected": {}}])
def test_files_without_simulated_content_exist_and_are_empty(volume: dict[str, Any]) -> None:
    script = 'set -e; cat /v/some/key; [ -f /v/token ]; [ -z "$(cat /v/token)" ]; cp /v/x /y; [ -e /y ]'
    assert codes(lived(pod(container("c", script), volume=volume))) == [0]


def test_the_root_is_new_for_each_run_and_volumes_are_kept() -> None:
    script = "[ -e /tmp/x ] && exit 9; touch /tmp/x; if [[ -r /v/foo ]]; then exit 0; else touch /v/foo; exit 1; fi"
    life = lived(pod(container("c", script), restartPolicy="OnFailure"))
    assert [each.code for each in life.main[0].spans] == [1, 0]


def test_probes_read_volumes() -> None:
    probe = {"exec": {"command": ["cat", "/v/ready"]}, "periodSeconds": 1}
    serves = container("serves", "sleep 100", readinessProbe=probe)
    life = lived(pod(serves, container("helps", "sleep 10; touch /v/ready; sleep 20; rm /v/ready; sleep 100")), 5.0)
    assert [life.main[0].is_ready(at) for at in (5, 15, 29, 45)] == [False, True, True, False]


HOST = {"hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}


class Others:
    def __init__(self, *changes: tuple[str, float, str | None]) -> None:
        self.changes = changes
        self.places: list[str] = []

    def of(self, place: str) -> Iterable[tuple[str, float, str | None]]:
        self.places.append(place)
        return self.changes


@pytest.mark.parametrize(
    ("volume", "place", "path"),
    [
        (HOST, "node/n", "data/go"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "claim/a/c", "go"),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, "claim/a/p-v", "go"),
    ],
)
def test_files_of_other_pods_are_visible_and_written_files_are_reported(
    volume: dict[str, Any], place: str, path: str
) -> None:
    others = Others((path, 7.0, "x\n"), (path, 20.0, None))
    life = lived(pod(container("c", f"{WAITS}; echo y > /v/mine; sleep 15; [ ! -e /v/go ]"), volume=volume), 60, others)
    assert codes(life) == [0]
    assert {*others.places} == {place}
    assert [(each[0], each[1].rpartition("/")[2], each[2].text) for each in life.told][-1] == (place, "mine", "y\n")


def test_a_container_waiting_for_another_pod_is_recomputed() -> None:
    of = pod(container("c", WAITS), volume=HOST)
    assert is_sharing(of)
    assert lived(of, 5.0, Others()).next_change == pytest.approx(5.4)
    writes = pod(container("c", "sleep 5; touch /v/x; sleep 100"), volume=HOST)
    assert lived(writes, 2.0).next_change == pytest.approx(5.4)
    assert lived(pod(container("c", "sleep 100"), volume=HOST), 5.0).next_change == pytest.approx(100.4)
    assert not is_sharing(pod(container("c", WAITS)))


@pytest.mark.parametrize("written_at", [0.5, 3.0, 7.5, 5000.0])
def test_a_long_waiting_loop_ends_in_the_round_after_the_file_exists(written_at: float) -> None:
    others = Others(("data/go", written_at, ""))
    wait = container("c", "until [ -f /v/go ]; do sleep 2; done")
    life = lived(pod(wait, volume=HOST), 9000.0, others)
    (span,) = life.main[0].spans
    assert span.end is not None
    waited = span.end - span.start
    assert waited == pytest.approx(2 * math.ceil(max(written_at - span.start, 0) / 2), abs=0.01)


def test_a_counting_loop_is_not_skipped() -> None:
    life = lived(pod(container("c", "i=0; while [ $i -lt 50 ]; do i=$((i + 1)); sleep 1; done; exit $i")), 100.0)
    (span,) = life.main[0].spans
    assert span.code == 50
    assert span.end == pytest.approx(50.4)

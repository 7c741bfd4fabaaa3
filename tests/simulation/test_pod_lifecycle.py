from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.clock import format_time_seconds
from ctrlmgr.simulation.behaviour import read
from ctrlmgr.simulation.container_runs import ContainerStop, Span
from ctrlmgr.simulation.kubelet_status import Desired, Place, desired_status
from ctrlmgr.simulation.simulated_logs import (
    LogSelection,
    container_of,
    first_lines,
    lines_after,
    next_moment,
    run_to_read,
    written,
)

PLACE = Place(("192.0.2.1",), ("10.0.0.2",))


def clock(seconds: float) -> str:
    return format_time_seconds(round(seconds * 1_000_000))


def container(name: str = "c", script: str = "", **more: Any) -> dict[str, Any]:
    command = {"command": ["sh", "-c", script]} if script else {}
    return {"name": name, "image": "example.com/app:1", **command, **more}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "a", "uid": "u", "generation": 2}
    return {"metadata": metadata, "spec": {"containers": [*containers] or [container()], **spec}, "status": {}}


def at(seconds: float, of: dict[str, Any], phrases: str = "", end: ContainerStop | None = None) -> Desired:
    return desired_status(of, lambda container: read(phrases), PLACE, seconds, end, clock)


def conditions(found: Desired) -> dict[str, str]:
    return {each["type"]: each["status"] for each in found.status["conditions"]}


def state(found: Desired, index: int = 0, field: str = "containerStatuses") -> dict[str, Any]:
    status: dict[str, Any] = found.status[field][index]
    ((kind, fields),) = status["state"].items()
    return {"kind": kind, "restarts": status["restartCount"], **fields}


def test_conditions_of_a_pod_become_true_in_the_kubelets_order() -> None:
    early, late = at(0.05, pod()), at(5, pod())
    assert [each["type"] for each in early.status["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert (early.status["phase"], state(early)["reason"]) == ("Pending", "ContainerCreating")
    assert conditions(early)["Ready"] == "False"
    assert early.status["conditions"][2]["message"] == "containers with unready status: [c]"
    assert late.status["phase"] == "Running"
    assert set(conditions(late).values()) == {"True"}
    assert {each["observedGeneration"] for each in late.status["conditions"]} == {2}
    assert (late.status["podIP"], late.status["hostIP"]) == ("10.0.0.2", "192.0.2.1")
    assert late.changes_in is None


@pytest.mark.parametrize(
    ("script", "policy", "phase", "reason", "code"),
    [
        ("exit 0", "Never", "Succeeded", "Completed", 0),
        ("exit 3", "Never", "Failed", "Error", 3),
        ("exit 0", "OnFailure", "Succeeded", "Completed", 0),
    ],
)
def test_a_pod_terminates_by_its_restart_policy(script: str, policy: str, phase: str, reason: str, code: int) -> None:
    found = at(5, pod(container(script=script), restartPolicy=policy))
    assert found.status["phase"] == phase
    assert (state(found)["reason"], state(found)["exitCode"]) == (reason, code)
    assert conditions(found)["PodReadyToStartContainers"] == "False"
    ready = found.status["conditions"][2]
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted" if code == 0 else "PodFailed")


@pytest.mark.parametrize(
    ("seconds", "kind", "restarts", "reason"),
    [
        (1, "running", 0, None),
        (2, "running", 1, None),
        (3, "waiting", 1, "CrashLoopBackOff"),
        (12, "waiting", 1, "CrashLoopBackOff"),
        (13, "running", 2, None),
        (15, "waiting", 2, "CrashLoopBackOff"),
        (34, "running", 3, None),
    ],
)
def test_a_crash_loop_backs_off(seconds: float, kind: str, restarts: int, reason: str | None) -> None:
    found = at(seconds, pod(container(script="sleep 1; exit 2")))
    assert (state(found)["kind"], state(found)["restarts"], state(found).get("reason")) == (kind, restarts, reason)
    assert found.status["phase"] == "Running"
    if reason:
        wait = "10s" if restarts == 1 else "20s"
        assert state(found)["message"] == f"back-off {wait} restarting failed container=c pod=p_a(u)"
        assert found.status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 2


def test_back_off_never_exceeds_five_minutes() -> None:
    found = at(36_000, pod(container(script="exit 1")))
    assert "back-off 5m0s restarting" in state(found)["message"]


def test_init_containers_run_in_order_and_delay_the_others() -> None:
    inits = [container("one", "sleep 2"), container("two", "sleep 3")]
    of = pod(initContainers=inits)
    first, second, last = (at(seconds, of) for seconds in (1, 4, 8))
    assert [state(first, index, "initContainerStatuses")["kind"] for index in (0, 1)] == ["running", "waiting"]
    assert state(first)["reason"] == "PodInitializing"
    assert first.status["conditions"][1]["message"] == "containers with incomplete status: [one two]"
    assert [state(second, index, "initContainerStatuses")["kind"] for index in (0, 1)] == ["terminated", "running"]
    assert second.status["initContainerStatuses"][0]["ready"]
    assert (last.status["phase"], conditions(last)["Initialized"]) == ("Running", "True")


def test_a_failing_init_container_fails_the_pod_or_is_retried() -> None:
    inits = [container("one", "exit 1")]
    assert at(5, pod(initContainers=inits, restartPolicy="Never")).status["phase"] == "Failed"
    again = at(5, pod(initContainers=inits))
    assert again.status["phase"] == "Pending"
    assert state(again, 0, "initContainerStatuses")["reason"] == "CrashLoopBackOff"


def test_sidecars_run_beside_the_others_and_end_after_them() -> None:
    sidecar = container("side", restartPolicy="Always")
    of = pod(container(script="sleep 3"), initContainers=[sidecar], restartPolicy="Never")
    running, over = at(2, of), at(6, of)
    assert state(running, 0, "initContainerStatuses")["kind"] == "running"
    assert conditions(running)["Ready"] == "True"
    assert over.status["phase"] == "Succeeded"
    assert state(over, 0, "initContainerStatuses")["kind"] == "terminated"


HTTP = {"httpGet": {"port": 80}, "initialDelaySeconds": 5, "periodSeconds": 1}
NAMED = {**HTTP, "httpGet": {"port": "http"}}
FALSE = {"exec": {"command": ["false"]}, "initialDelaySeconds": 5, "failureThreshold": 1}
PORTS = [{"containerPort": 80, "name": "http"}]
HEALTH = {"exec": {"command": ["cat", "/tmp/health"]}, "periodSeconds": 1, "failureThreshold": 1}
SCRIPT = "echo ok > /tmp/health; sleep 10; rm -rf /tmp/health; sleep 600"


@pytest.mark.parametrize(
    ("probes", "seconds", "ready", "restarts"),
    [
        pytest.param({"readinessProbe": HTTP, "ports": PORTS}, 4, False, 0, id="before its delay"),
        pytest.param({"readinessProbe": HTTP, "ports": PORTS}, 7, True, 0, id="after its delay"),
        pytest.param({"readinessProbe": HTTP}, 7, True, 0, id="on a port that is not declared"),
        pytest.param({"readinessProbe": NAMED}, 60, False, 0, id="on a name that is not declared"),
        pytest.param({"readinessProbe": NAMED, "ports": PORTS}, 7, True, 0, id="on a name"),
        pytest.param({"livenessProbe": NAMED}, 60, True, 0, id="on a name that is not declared: no verdict"),
        pytest.param({"livenessProbe": HTTP, "ports": PORTS}, 60, True, 0, id="alive"),
        pytest.param({"livenessProbe": {**HTTP, "failureThreshold": 1}}, 60, True, 0, id="alive without a port"),
        pytest.param({"livenessProbe": FALSE}, 7, True, 1, id="dead"),
        pytest.param({"livenessProbe": HEALTH}, 9, True, 0, id="a command that passes"),
        pytest.param({"livenessProbe": HEALTH}, 12, True, 1, id="a command that fails later"),
        pytest.param({"readinessProbe": HEALTH}, 9, True, 0, id="ready by a command"),
        pytest.param({"readinessProbe": HEALTH}, 15, False, 0, id="ready no more"),
        pytest.param({"startupProbe": HTTP, "ports": PORTS}, 3, False, 0, id="not started yet"),
        pytest.param({"startupProbe": HTTP, "ports": PORTS}, 7, True, 0, id="started"),
    ],
)
def test_probes(probes: dict[str, Any], seconds: float, ready: bool, restarts: int) -> None:
    found = at(seconds, pod(container(script=SCRIPT, **probes)))
    status = found.status["containerStatuses"][0]
    assert (status["ready"], status["restartCount"]) == (ready, restarts)


def test_a_deadline_terminates_a_pod() -> None:
    of = pod(activeDeadlineSeconds=5)
    assert at(4, of).changes_in == pytest.approx(1)
    found = at(6, of)
    assert (found.status["phase"], found.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert found.status["message"] == "Pod was active on the node longer than the specified deadline"


@pytest.mark.parametrize(
    ("phrases", "more", "stops_at"),
    [
        ("", {}, 10),
        ("stop after 4s", {}, 14),
        ("ignore sigterm", {}, 40),
        ("", {"lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}, 13),
    ],
)
def test_a_deleted_pod_stops_after_its_configured_time(phrases: str, more: dict[str, Any], stops_at: float) -> None:
    end = ContainerStop(10.0, 30.0)
    of = pod(container(**more))
    assert not at(9.9, of, phrases).stopped
    if stops_at > 10:
        assert not at(stops_at - 0.1, of, phrases, end).stopped
    assert at(stops_at, of, phrases, end).stopped


def test_a_pod_deleted_before_its_start_terminates_at_once() -> None:
    end = ContainerStop(0.0, 30.0)
    assert at(5, pod(), "", end).stopped
    of = pod()
    of["status"] = at(0.9, of).status
    found = at(0.95, of, "", end)
    assert (found.stopped, state(found)["kind"]) == (True, "terminated")


@pytest.mark.parametrize(
    ("image", "policy", "seconds", "reason"),
    [
        ("example.com/foo:non-existent", "IfNotPresent", 0.5, "ErrImagePull"),
        ("example.com/foo:non-existent", "IfNotPresent", 9, "ImagePullBackOff"),
        ("example.com/foo:1", "Never", 9, "ErrImageNeverPull"),
    ],
)
def test_images_that_cannot_be_pulled_are_reported(image: str, policy: str, seconds: float, reason: str) -> None:
    found = at(seconds, pod({"name": "c", "image": image, "imagePullPolicy": policy}))
    assert (found.status["phase"], state(found)["reason"]) == ("Pending", reason)


@pytest.mark.parametrize(
    ("script", "more", "message"),
    [
        ("echo -n DONE > /dev/termination-log; exit 1", {}, "DONE"),
        ("echo -n OK > /dev/other; exit 0", {"terminationMessagePath": "/dev/other"}, "OK"),
        ("echo lost; exit 1", {}, None),
        ("echo why; exit 1", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "why\n"),
        ("echo why; exit 0", {"terminationMessagePolicy": "FallbackToLogsOnError"}, None),
    ],
)
def test_termination_messages_are_read(script: str, more: dict[str, Any], message: str | None) -> None:
    found = at(5, pod(container(script=script, **more), restartPolicy="Never"))
    assert state(found).get("message") == message


@pytest.mark.parametrize(
    ("phrases", "seconds", "kind", "reason"),
    [
        ("exit 3 after 20s", 10, "running", None),
        ("oom after 2s", 4, "waiting", "CrashLoopBackOff"),
        ("slow pull 30s", 20, "waiting", "ContainerCreating"),
        ("pull error", 20, "waiting", "ImagePullBackOff"),
        ("never ready", 20, "running", None),
    ],
)
def test_annotations_control_a_pod(phrases: str, seconds: float, kind: str, reason: str | None) -> None:
    found = at(seconds, pod(), phrases)
    assert (state(found)["kind"], state(found).get("reason")) in ((kind, reason), ("running", None))
    if phrases == "never ready":
        assert conditions(found)["Ready"] == "False"
    if phrases.startswith("oom"):
        assert found.status["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "OOMKilled"


def test_files_in_volumes_survive_a_restart() -> None:
    script = "if [ -f /data/foo ]; then exit 0; else touch /data/foo; exit 1; fi"
    mounts = [{"name": "data", "mountPath": "/data"}]
    found = at(5, pod(container(script=script, volumeMounts=mounts), restartPolicy="OnFailure"))
    assert (found.status["phase"], state(found)["restarts"]) == ("Succeeded", 1)


def test_readiness_gates_delay_readiness_until_they_are_true() -> None:
    of = pod(readinessGates=[{"conditionType": "mine"}])
    found = at(5, of)
    assert found.status["conditions"][2]["message"] == (
        'corresponding condition of pod readiness gate "mine" does not exist.'
    )
    of["status"] = {"conditions": [{"type": "mine", "status": "True"}]}
    assert conditions(at(5, of)) == dict.fromkeys(
        ["mine", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"], "True"
    )


def test_a_condition_keeps_its_transition_time_while_unchanged() -> None:
    of = pod()
    of["status"] = at(2, of).status
    assert at(50, of).status == of["status"]


def test_the_computation_is_deterministic() -> None:
    of = pod(container(script="echo x; sleep 3; exit 1", readinessProbe=HEALTH))
    assert all(at(seconds, of).status == at(seconds, of).status for seconds in range(0, 100, 7))


def test_a_pod_with_pod_level_resources_reports_its_allocation() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    whole = pod(container(), resources=resources)
    assert "allocatedResources" not in at(0.0, whole).status
    status = at(30.0, whole).status
    assert (status["allocatedResources"], status["resources"]) == ({"cpu": "1"}, resources)
    assert "resources" not in at(30.0, pod(container())).status


@pytest.mark.parametrize("inits", [(), ("i",), ("i", "j")])
def test_a_lifecycle_is_continued_from_any_moment(inits: tuple[str, ...]) -> None:
    of = pod(container(), initContainers=[container(each, script="sleep 1") for each in inits])
    for seconds in (0.0, 0.05, 0.15, 0.35):
        moment, looks = seconds, 0
        while (change := at(moment, of).changes_in) is not None:
            assert change > 0
            moment, looks = moment + change + 0.001, looks + 1
            assert looks < 20
        assert at(moment, of).status["phase"] == "Running"


def reads(seconds: float, of: dict[str, Any], previous: bool = False) -> Span:
    return run_to_read(of, lambda container: read(""), seconds, None, "c", previous=previous)


def test_logs() -> None:
    of = pod(container(script="echo one; sleep 2; echo two; sleep 100"))

    def log_lines(seconds: float, stamp: Any = None, **wanted: Any) -> str:
        return written(first_lines(reads(seconds, of), seconds, LogSelection(**wanted)), stamp)

    assert log_lines(1) == "one\n"
    assert log_lines(4) == "one\ntwo\n"
    assert log_lines(4, tail=1) == "two\n"
    assert log_lines(4, tail=0) == ""
    assert log_lines(4, clock).splitlines()[1] == "1970-01-01T00:00:02Z two"
    assert log_lines(4, since=2.0) == "two\n"
    span = reads(4, of)
    assert written(lines_after(span, 1.0, 4.0), None) == "two\n"
    assert [next_moment(span, at) for at in (1.0, 4.0)] == pytest.approx([2.4, 102.4])


def test_the_current_or_previous_run_is_read() -> None:
    # the container runs from 0.4 s to 1.4 s, from 1.5 s to 2.5 s, and from 12.6 s to 13.6 s
    of = pod(container(script="sleep 1; exit 1"))
    with pytest.raises(LookupError, match='container "c" in pod "p" is waiting to start: ContainerCreating'):
        reads(0.05, of)
    with pytest.raises(LookupError, match='previous terminated container "c" in pod "p" not found'):
        reads(1, of, previous=True)
    assert [reads(at, of).start for at in (1, 2, 5, 13)] == pytest.approx([0.4, 1.5, 1.5, 12.6])
    # A container that waits for its next start has its last run both as the current and as the previous one.
    assert [reads(at, of, previous=True).start for at in (2, 5, 13)] == pytest.approx([0.4, 1.5, 1.5])
    missing = pod(container(image="nginx:nonexistent"))
    with pytest.raises(LookupError, match="is waiting to start: trying and failing to pull image"):
        reads(20, missing)


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("x", "container x is not valid for pod p"),
        (
            "",
            "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]",
        ),
    ],
)
def test_the_requested_container_is_found(name: str, refusal: str) -> None:
    of = pod(container("a"), container("b"), initContainers=[container("i")])
    assert [container_of(of, each) for each in ("a", "i")] == ["a", "i"]
    assert container_of(pod(), "") == "c"
    with pytest.raises(LookupError) as raised:
        container_of(of, name)
    assert raised.value.args == (refusal,)


def debugged(*ephemeral: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a pod that has been running for a long time, with these ephemeral containers."""
    running = pod()
    running["status"] = at(60, running).status
    running["spec"] |= {"ephemeralContainers": list(ephemeral), **more}
    return running


def test_an_ephemeral_container_starts_when_added_and_does_not_restart() -> None:
    of = debugged(container("debugger", "sleep 2; exit 3"))
    started = at(100, of)
    [status] = started.status["ephemeralContainerStatuses"]
    assert status["state"] == {"running": {"startedAt": clock(100)}}
    assert (status["ready"], status["restartCount"], "started" in status) == (False, 0, False)
    assert started.changes_in == pytest.approx(2)
    assert started.status["phase"] == "Running"
    of["status"] = started.status
    for moment in (103, 500):
        found = at(moment, of)
        ended = state(found, field="ephemeralContainerStatuses")
        assert (ended["kind"], ended["exitCode"], ended["restarts"]) == ("terminated", 3, 0)
        assert (ended["startedAt"], ended["finishedAt"]) == (clock(100), clock(102))
        assert conditions(found)["Ready"] == "True"


def test_an_ephemeral_container_ends_with_its_pod() -> None:
    of = debugged(container("debugger"))
    of["status"] = at(100, of).status
    found = at(210, of, end=ContainerStop(200, 30))
    assert state(found, field="ephemeralContainerStatuses")["kind"] == "terminated"
    assert found.stopped
    of = debugged(container("late"))
    found = at(210, of, end=ContainerStop(200, 30))
    assert state(found, field="ephemeralContainerStatuses")["kind"] == "waiting"
    assert found.stopped


def test_an_ephemeral_container_without_its_image_waits() -> None:
    of = debugged({**container("debugger"), "image": "nonexistent:nonexistent"})
    found = at(100, of)
    assert state(found, field="ephemeralContainerStatuses")["reason"] == "ErrImagePull"
    of["status"] = found.status
    found = at(101, of)
    assert state(found, field="ephemeralContainerStatuses")["reason"] == "ImagePullBackOff"
    assert found.changes_in is None

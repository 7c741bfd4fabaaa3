"""Kubernetes' conformance tests of containers, init containers and probes on nodes (group sig-node)."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.clock import parse_time
from tests.simulation.conforming.cluster import Cluster, Thing, condition, container, pod, running, terminated


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


# Containers that end.


@pytest.mark.parametrize(
    ("policy", "phase", "state", "restarts"),
    [
        ("Always", "Running", "running", 2),
        ("OnFailure", "Succeeded", "terminated", 1),
        ("Never", "Failed", "terminated", 0),
    ],
)
def test_container_runtime_when_starting_a_container_that_exits_should_run_with_the_expected_status(
    cluster: Cluster, policy: str, phase: str, state: str, restarts: int
) -> None:
    """A script that fails the first time, succeeds the second time, and then runs forever; it counts its runs in a
    file.
    """
    script = """
f=/restart-count/restartCount
runs=$(echo 'run' >> $f ; wc -l $f | awk {'print $1'})
if [ $runs -eq 1 ]; then
  exit 1
fi
if [ $runs -eq 2 ]; then
  exit 0
fi
while true; do sleep 1; done
"""
    mount = {"name": "restart-count", "mountPath": "/restart-count"}
    volume = {"name": "restart-count", "emptyDir": {"medium": "Memory"}}
    one = {"name": "terminate-cmd", "image": "busybox:1.36", "command": ["sh", "-c", script], "volumeMounts": [mount]}
    cluster.make("pods", pod("p", one, restartPolicy=policy, volumes=[volume]))

    def first() -> Thing:
        found: Thing = (cluster.get("pods", "p")["status"].get("containerStatuses") or [{"restartCount": -1}])[0]
        return found

    cluster.until(lambda: first()["restartCount"] == restarts)
    cluster.until(lambda: cluster.phase("p") == phase)
    assert cluster.is_ready(cluster.get("pods", "p")) == (phase == "Running")
    assert [*first()["state"]] == [state]
    cluster.delete("pods", "p")
    cluster.until(lambda: cluster.find("pods", "p") is None, within=31)


LOGS = "FallbackToLogsOnError"


@pytest.mark.parametrize(
    ("title", "script", "more", "phase", "message"),
    [
        (
            "report termination message if TerminationMessagePath is set as non-root user and at a non-default path",
            "/bin/echo -n DONE > /dev/termination-custom-log",
            {"terminationMessagePath": "/dev/termination-custom-log", "securityContext": {"runAsUser": 10000}},
            "Succeeded",
            "DONE",
        ),
        (
            "report termination message from log output if TerminationMessagePolicy FallbackToLogsOnError is set",
            "/bin/echo -n DONE; /bin/false",
            {"terminationMessagePolicy": LOGS},
            "Failed",
            "DONE",
        ),
        (
            "report termination message as empty when pod succeeds and FallbackToLogsOnError is set",
            "/bin/echo -n DONE; /bin/true",
            {"terminationMessagePolicy": LOGS},
            "Succeeded",
            "",
        ),
        (
            "report termination message from file when pod succeeds and FallbackToLogsOnError is set",
            "/bin/echo -n OK > /dev/termination-log; /bin/echo DONE; /bin/true",
            {"terminationMessagePolicy": LOGS, "terminationMessagePath": "/dev/termination-log"},
            "Succeeded",
            "OK",
        ),
    ],
)
def test_container_runtime_on_terminated_container_should(
    cluster: Cluster, title: str, script: str, more: Thing, phase: str, message: str
) -> None:
    cluster.make("pods", pod("p", container(script, **more), restartPolicy="Never"))
    cluster.until(lambda: cluster.phase("p") == phase)
    assert terminated(cluster.get("pods", "p")).get("message", "") == message, title


def test_kubelet_a_busybox_command_that_always_fails_should_have_a_terminated_reason(cluster: Cluster) -> None:
    cluster.make("pods", pod("p", {"name": "c", "image": "busybox", "command": ["/bin/false"]}, restartPolicy="Never"))
    cluster.until(lambda: cluster.phase("p") == "Failed")
    found = terminated(cluster.get("pods", "p"))
    assert (found["exitCode"], found["reason"]) == (1, "Error")


def test_kubelet_a_busybox_command_that_always_fails_should_be_possible_to_delete(cluster: Cluster) -> None:
    cluster.make("pods", pod("p", {"name": "c", "image": "busybox", "command": ["/bin/false"]}))
    cluster.until(lambda: "waiting" in cluster.get("pods", "p")["status"]["containerStatuses"][0]["state"])
    cluster.delete("pods", "p")
    cluster.until(lambda: cluster.find("pods", "p") is None, within=31)


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "test $(id -u) -eq 65534"],
        ["sh", "-c", "touch checkfile"],
    ],
    ids=["should run the container with uid 65534", "should run the container with writable rootfs"],
)
def test_security_context(cluster: Cluster, command: list[str]) -> None:
    context = {"runAsUser": 65534, "readOnlyRootFilesystem": False}
    one = {"name": "c", "image": "busybox:1.36", "command": command, "securityContext": context}
    cluster.make("pods", pod("p", one, restartPolicy="Never"))
    cluster.until(lambda: cluster.phase("p") == "Succeeded")


# Init containers


def inits(*scripts: str) -> list[Thing]:
    return [container(script, f"init{number}") for number, script in enumerate(scripts, 1)]


def check_invariants(cluster: Cluster, name: str) -> list[Thing]:
    """Check that every status of a pod satisfies the invariants of init containers; return the written statuses, in
    order.
    """
    statuses = [each["status"] for each in cluster.history("pods", name) if each["status"].get("initContainerStatuses")]
    was_initialized = False
    for status in statuses:
        has_all, has_failed = initialized(status["initContainerStatuses"])
        for each in status["containerStatuses"] if not has_all or has_failed else ():
            assert (each["state"]["waiting"]["reason"], each["restartCount"]) == ("PodInitializing", 0)
        found = condition({"status": status}, "Initialized")
        assert found["lastTransitionTime"]
        assert found["status"] == str(has_all and not has_failed)
        assert has_all or not was_initialized, "it was initialized before"
        was_initialized = has_all
    return statuses


def initialized(statuses: list[Thing]) -> tuple[bool, bool]:
    """Return whether all init containers have succeeded, and whether one init container has failed; later containers
    must wait.
    """
    has_all, has_failed = True, False
    for each in statuses:
        assert (has_all and not has_failed) or "waiting" in each["state"], f"{each['name']} does not wait"
        ended = each["state"].get("terminated")
        if ended is not None and ended["exitCode"] == 0:
            assert each["ready"], f"{each['name']} has succeeded and is not ready"
        else:
            has_all, has_failed = False, has_failed or ended is not None
    return has_all, has_failed


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Succeeded"), ("Always", "Running")])
def test_init_container_should_invoke_init_containers(cluster: Cluster, policy: str, phase: str) -> None:
    main = container("true", "run1") if policy == "Never" else container(name="run1")
    cluster.make("pods", pod("p", main, initContainers=inits("true", "true"), restartPolicy=policy))
    cluster.until(lambda: cluster.phase("p") == phase)
    status = check_invariants(cluster, "p")[-1]
    assert condition({"status": status}, "Initialized")["status"] == "True"
    assert [each["ready"] for each in status["initContainerStatuses"]] == [True, True]
    assert all(each["state"]["terminated"]["exitCode"] == 0 for each in status["initContainerStatuses"])


def test_init_container_should_not_start_app_containers_if_init_containers_fail_on_a_restart_always_pod(
    cluster: Cluster,
) -> None:
    cluster.make("pods", pod("p", container(name="run1"), initContainers=inits("false", "true")))
    cluster.until(
        lambda: (cluster.get("pods", "p")["status"].get("initContainerStatuses") or [{}])[0].get("restartCount", 0) >= 3
    )
    statuses = check_invariants(cluster, "p")
    for each in statuses:
        first, second = each["initContainerStatuses"]
        assert second["state"]["waiting"]["reason"] == "PodInitializing"
        assert first["state"].get("terminated", {}).get("exitCode") != 0
    assert any(each["initContainerStatuses"][0]["lastState"].get("terminated") for each in statuses)
    found = condition({"status": statuses[-1]}, "Initialized")
    assert (statuses[-1]["phase"], found["status"]) == ("Pending", "False")
    assert found["reason"] == "ContainersNotInitialized"
    assert found["message"] == "containers with incomplete status: [init1 init2]"


def test_init_container_should_not_start_app_containers_and_fail_the_pod_if_init_containers_fail_on_a_restart_never_pod(
    cluster: Cluster,
) -> None:
    body = pod("p", container("true", "run1"), initContainers=inits("true", "false"), restartPolicy="Never")
    cluster.make("pods", body)
    cluster.until(lambda: cluster.phase("p") == "Failed")
    statuses = check_invariants(cluster, "p")
    for each in statuses:
        for one in each["initContainerStatuses"]:
            assert one["state"].get("waiting", {}).get("reason", "PodInitializing") == "PodInitializing"
        assert each["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    codes = [each["state"]["terminated"]["exitCode"] for each in statuses[-1]["initContainerStatuses"]]
    assert codes == [0, 1]
    found = condition({"status": statuses[-1]}, "Initialized")
    assert (found["status"], found["reason"]) == ("False", "ContainersNotInitialized")
    assert found["message"] == "containers with incomplete status: [init2]"


# Probes

HEALTH = "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600"
CAT: Thing = {"exec": {"command": ["cat", "/tmp/health"]}}
LATE: Thing = {"initialDelaySeconds": 15, "failureThreshold": 1}


def agnhost(*arguments: str, ports: tuple[int, ...] = (), **more: Any) -> Thing:
    """Return a container of the test image; in Kubernetes' tests of `liveness`, the container declares no port."""
    one = {"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.56", "args": [*arguments], **more}
    return {**one, "ports": [{"containerPort": port} for port in ports]} if ports else one


@pytest.mark.parametrize(
    ("title", "one", "restarts"),
    [
        (
            'should be restarted with a exec "cat /tmp/health" liveness probe',
            container(HEALTH, livenessProbe={**CAT, **LATE}),
            1,
        ),
        (
            'should *not* be restarted with a exec "cat /tmp/health" liveness probe',
            container("echo ok >/tmp/health; sleep 600", livenessProbe={**CAT, **LATE}),
            0,
        ),
        (
            "should be restarted with a /healthz http liveness probe",
            agnhost("liveness", livenessProbe={**LATE, "httpGet": {"path": "/healthz", "port": 8080}}),
            1,
        ),
        (
            "should *not* be restarted with a tcp:8080 liveness probe",
            agnhost("liveness", livenessProbe={**LATE, "tcpSocket": {"port": 8080}}),
            0,
        ),
        (
            "should have monotonically increasing restart count",
            agnhost(
                "liveness",
                livenessProbe={**LATE, "initialDelaySeconds": 5, "httpGet": {"path": "/healthz", "port": 8080}},
            ),
            5,
        ),
        (
            "should *not* be restarted with a /healthz http liveness probe",
            agnhost(
                "test-webserver",
                ports=(80,),
                livenessProbe={**LATE, "httpGet": {"path": "/", "port": 80}, "failureThreshold": 5},
            ),
            0,
        ),
        (
            "should *not* be restarted with a GRPC liveness probe",
            agnhost("grpc-health-checking", ports=(5000, 8080), livenessProbe={**LATE, "grpc": {"port": 5000}}),
            0,
        ),
        (
            "should be restarted with a GRPC liveness probe",
            agnhost("grpc-health-checking", ports=(5000, 8080), livenessProbe={**LATE, "grpc": {"port": 2333}}),
            1,
        ),
    ],
)
def test_probing_container(cluster: Cluster, title: str, one: Thing, restarts: int) -> None:
    """Check that the number of restarts never decreases, and reaches the expected number; if this number is 0, check
    for four minutes.
    """
    running(cluster, pod("p", one))
    counts = [0]

    def count() -> int:
        counts.append(int(cluster.get("pods", "p")["status"]["containerStatuses"][0]["restartCount"]))
        assert counts[-1] >= counts[-2], title
        return counts[-1]

    if restarts:
        cluster.until(lambda: count() >= restarts, within=240 * restarts)
    else:
        cluster.pass_by(240)
        assert count() == 0, title


def test_probing_container_with_readiness_probe_should_not_be_ready_before_initial_delay(cluster: Cluster) -> None:
    probe = {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 30}
    cluster.make("pods", pod("p", agnhost("test-webserver", ports=(80,), readinessProbe=probe)))
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "p")))
    found = cluster.get("pods", "p")
    started = found["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    ready = condition(found, "Ready")["lastTransitionTime"]
    assert parse_time(ready) - parse_time(started) >= 30 * 1_000_000
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize(
    "probe", [{"exec": {"command": ["/bin/false"]}}, {"httpGet": {"path": "/", "port": 81}}], ids=["exec", "http"]
)
def test_probing_container_with_readiness_probe_that_fails_should_never_be_ready_and_never_restart(
    cluster: Cluster, probe: Thing
) -> None:
    late = {**probe, "initialDelaySeconds": 30}
    running(cluster, pod("p", agnhost("test-webserver", ports=(80,), readinessProbe=late)))
    for _ in range(60):
        cluster.pass_by(3)
        found = cluster.get("pods", "p")
        assert not cluster.is_ready(found)
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0

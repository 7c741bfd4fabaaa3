"""What the conformance tests of pods ask of nodes (sig-node), in their words."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.simulation.conforming.cluster import STRATEGIC, Cluster, Thing, condition, container, pod, terminated


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def running(cluster: Cluster, body: Thing) -> Thing:
    name = cluster.make("pods", body)["metadata"]["name"]
    cluster.until(lambda: cluster.phase(name) == "Running")
    return cluster.get("pods", name)


def test_pods_should_be_submitted_and_removed(cluster: Cluster) -> None:
    running(cluster, pod("p"))
    deleted = cluster.delete("pods", "p")
    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.until(lambda: cluster.find("pods", "p") is None, within=31)


def test_pods_should_be_updated(cluster: Cluster) -> None:
    running(cluster, pod("p", labels={"time": "1"}))
    cluster.patch("pods", "p", {"metadata": {"labels": {"time": "2"}}})
    assert [each["metadata"]["name"] for each in cluster.all("pods", "time=2")] == ["p"]
    assert cluster.phase("p") == "Running"


def test_pods_should_get_a_host_ip(cluster: Cluster) -> None:
    status = running(cluster, pod("p"))["status"]
    node = cluster.get("nodes", cluster.get("pods", "p")["spec"]["nodeName"])
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    assert (status["hostIP"], status["hostIPs"]) == (addresses["InternalIP"], [{"ip": addresses["InternalIP"]}])


def test_pods_should_allow_active_deadline_seconds_to_be_updated(cluster: Cluster) -> None:
    running(cluster, pod("p"))
    cluster.patch("pods", "p", {"spec": {"activeDeadlineSeconds": 5}})
    cluster.until(lambda: cluster.phase("p") == "Failed", within=20)
    assert cluster.get("pods", "p")["status"]["reason"] == "DeadlineExceeded"


def test_pods_should_delete_a_collection_of_pods(cluster: Cluster) -> None:
    for number in range(3):
        running(cluster, pod(f"p{number}", labels={"type": "Testing"}))
    cluster.send("DELETE", cluster.path("pods"), query={"labelSelector": "type=Testing"})
    cluster.until(lambda: not cluster.all("pods", "type=Testing"))


def test_pods_should_patch_a_pod_status(cluster: Cluster) -> None:
    running(cluster, pod("p"))
    body = {"status": {"message": "Patched by e2e test", "reason": "E2E"}}
    patched = cluster.patch("pods", "p/status", body, STRATEGIC)
    assert (patched["status"]["message"], patched["status"]["reason"]) == ("Patched by e2e test", "E2E")


def test_pods_should_run_through_the_lifecycle_of_pods_and_pod_status(cluster: Cluster) -> None:
    body = pod("p", labels={"test-pod-static": "true"}, terminationGracePeriodSeconds=1)
    running(cluster, body)
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "p")))
    patch = {
        "metadata": {"labels": {"test-pod": "patched"}},
        "spec": {"containers": [{"name": "c", "image": "pause:2"}]},
    }
    cluster.patch("pods", "p", patch, STRATEGIC)
    found = cluster.get("pods", "p")
    assert (found["metadata"]["labels"]["test-pod"], found["spec"]["containers"][0]["image"]) == ("patched", "pause:2")
    cluster.until(lambda: cluster.get("pods", "p")["status"]["containerStatuses"][0]["restartCount"] == 1)
    assert "Container c definition changed, will be restarted" in [message for _, _, message in cluster.told.events]
    status = cluster.get("pods", "p")
    status["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    replaced = cluster.replace("pods", "p/status", status)
    assert condition(replaced, "Ready")["status"] == "False"
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "p")))
    cluster.delete("pods")
    cluster.until(lambda: not cluster.all("pods"))


def is_observed(cluster: Cluster, generation: int) -> bool:
    return bool(cluster.get("pods", "p")["status"].get("observedGeneration") == generation)


def test_pod_generation_should_start_at_1_and_increment_per_update(cluster: Cluster) -> None:
    found = running(cluster, pod("p"))
    assert found["metadata"]["generation"] == 1
    cluster.until(lambda: cluster.get("pods", "p")["status"].get("observedGeneration") == 1)
    toleration = {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
    changes: list[Thing] = [
        {"spec": {"activeDeadlineSeconds": 5000}},
        {"spec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.11"}]}},
        {"spec": {"tolerations": [toleration]}},
    ]
    for number, change in enumerate(changes, 2):
        assert cluster.patch("pods", "p", change, STRATEGIC)["metadata"]["generation"] == number
        cluster.until(partial(is_observed, cluster, number))
    for ready in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        assert condition(cluster.get("pods", "p"), ready)["observedGeneration"] == 4 or ready == "PodScheduled"
    assert cluster.patch("pods", "p", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 4


def test_pod_generation_custom_set_generation_on_new_pods_and_graceful_delete(cluster: Cluster) -> None:
    body = pod("p", container(lifecycle={"preStop": {"sleep": {"seconds": 5}}}))
    body["metadata"]["generation"] = 100
    assert running(cluster, body)["metadata"]["generation"] == 1
    assert cluster.delete("pods", "p")["metadata"]["generation"] == 2
    cluster.until(lambda: cluster.get("pods", "p")["status"]["observedGeneration"] == 2, within=4)


def test_pod_generation_issue_500_podspec_updates_and_verify_generation_eventually_converge(cluster: Cluster) -> None:
    running(cluster, pod("p"))
    for number in range(500):
        cluster.patch("pods", "p", {"spec": {"activeDeadlineSeconds": 9000 - number}})
    assert cluster.get("pods", "p")["metadata"]["generation"] == 501
    cluster.until(lambda: cluster.get("pods", "p")["status"]["observedGeneration"] == 501)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "100m", "memory": "100Mi"}}, "Guaranteed"),
        ({"requests": {"cpu": "100m"}}, "Burstable"),
        ({}, "BestEffort"),
    ],
)
def test_pods_set_qos_class_should_be_set_on_pods(cluster: Cluster, resources: Thing, expected: str) -> None:
    assert running(cluster, pod("p", container(resources=resources)))["status"]["qosClass"] == expected


# Containers that end


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
    """The script fails the first time, succeeds the second, and then runs on, as the file that it keeps tells it."""
    script = (
        "f=/restart-count/restartCount; count=0; if [ -f $f ]; then count=1; fi; "
        "if [ -f $f.2 ]; then count=2; fi; touch $f; "
        "if [ $count -eq 0 ]; then exit 1; fi; touch $f.2; if [ $count -eq 1 ]; then exit 0; fi; sleep 999999"
    )
    mount = {"name": "restart-count", "mountPath": "/restart-count"}
    volume = {"name": "restart-count", "emptyDir": {"medium": "Memory"}}
    body = pod("p", container(script, volumeMounts=[mount]), restartPolicy=policy, volumes=[volume])
    cluster.make("pods", body)

    def is_so() -> bool:
        status = cluster.get("pods", "p")["status"]
        first = (status.get("containerStatuses") or [{"state": {}, "restartCount": -1}])[0]
        return status["phase"] == phase and state in first["state"] and first["restartCount"] == restarts

    cluster.until(is_so)
    assert cluster.is_ready(cluster.get("pods", "p")) == (phase == "Running")


LOGS = "FallbackToLogsOnError"


@pytest.mark.parametrize(
    ("title", "script", "more", "phase", "message"),
    [
        (
            "report termination message if TerminationMessagePath is set as non-root user and at a non-default path",
            "echo -n DONE > /dev/termination-custom-log",
            {"terminationMessagePath": "/dev/termination-custom-log", "securityContext": {"runAsUser": 1000}},
            "Succeeded",
            "DONE",
        ),
        (
            "report termination message from log output if TerminationMessagePolicy FallbackToLogsOnError is set",
            "echo -n DONE; exit 1",
            {"terminationMessagePolicy": LOGS},
            "Failed",
            "DONE",
        ),
        (
            "report termination message as empty when pod succeeds and FallbackToLogsOnError is set",
            "echo -n DONE; exit 0",
            {"terminationMessagePolicy": LOGS},
            "Succeeded",
            "",
        ),
        (
            "report termination message from file when pod succeeds and FallbackToLogsOnError is set",
            "echo -n OK > /dev/termination-log; echo DONE; exit 0",
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


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Succeeded"), ("Always", "Running")])
def test_init_container_should_invoke_init_containers(cluster: Cluster, policy: str, phase: str) -> None:
    main = container("true", "run1") if policy == "Never" else container(name="run1")
    cluster.make("pods", pod("p", main, initContainers=inits("true", "true"), restartPolicy=policy))
    cluster.until(lambda: cluster.phase("p") == phase)
    status = cluster.get("pods", "p")["status"]
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
    status = cluster.get("pods", "p")["status"]
    first, second = status["initContainerStatuses"]
    assert (status["phase"], second["state"]["waiting"]["reason"]) == ("Pending", "PodInitializing")
    assert first["lastState"]["terminated"]["exitCode"] == 1
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    found = condition({"status": status}, "Initialized")
    assert (found["status"], found["reason"]) == ("False", "ContainersNotInitialized")
    assert found["message"] == "containers with incomplete status: [init1 init2]"


def test_init_container_should_not_start_app_containers_and_fail_the_pod_if_init_containers_fail_on_a_restart_never_pod(
    cluster: Cluster,
) -> None:
    body = pod("p", container("true", "run1"), initContainers=inits("true", "false"), restartPolicy="Never")
    cluster.make("pods", body)
    cluster.until(lambda: cluster.phase("p") == "Failed")
    status = cluster.get("pods", "p")["status"]
    assert [each["state"]["terminated"]["exitCode"] for each in status["initContainerStatuses"]] == [0, 1]
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert condition({"status": status}, "Initialized")["status"] == "False"


# Probes

HEALTH = "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600"
SERVER: Thing = {"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.56", "args": ["netexec"]}
CAT: Thing = {"exec": {"command": ["cat", "/tmp/health"]}}
NOW: Thing = {"initialDelaySeconds": 15, "failureThreshold": 1}


@pytest.mark.parametrize(
    ("title", "one", "restarts"),
    [
        (
            'should be restarted with a exec "cat /tmp/health" liveness probe',
            container(HEALTH, livenessProbe={**CAT, **NOW}),
            True,
        ),
        (
            'should *not* be restarted with a exec "cat /tmp/health" liveness probe',
            container("echo ok >/tmp/health; sleep 600", livenessProbe={**CAT, **NOW}),
            False,
        ),
        (
            "should *not* be restarted with a tcp:8080 liveness probe",
            {**SERVER, "ports": [{"containerPort": 8080}], "livenessProbe": {**NOW, "tcpSocket": {"port": 8080}}},
            False,
        ),
        (
            "should *not* be restarted with a /healthz http liveness probe",
            {
                **SERVER,
                "ports": [{"containerPort": 80}],
                "livenessProbe": {**NOW, "httpGet": {"path": "/", "port": 80}, "failureThreshold": 5},
            },
            False,
        ),
        (
            "should *not* be restarted with a GRPC liveness probe",
            {
                **SERVER,
                "args": ["grpc-health-checking"],
                "ports": [{"containerPort": 5000}, {"containerPort": 8080}],
                "livenessProbe": {**NOW, "grpc": {"port": 5000}},
            },
            False,
        ),
        (
            "should be restarted with a GRPC liveness probe",
            {
                **SERVER,
                "args": ["grpc-health-checking"],
                "ports": [{"containerPort": 5000}, {"containerPort": 8080}],
                "livenessProbe": {**NOW, "grpc": {"port": 2333}},
            },
            True,
        ),
    ],
)
def test_probing_container(cluster: Cluster, title: str, one: Thing, restarts: bool) -> None:
    running(cluster, pod("p", one))

    def count() -> int:
        return int(cluster.get("pods", "p")["status"]["containerStatuses"][0]["restartCount"])

    if restarts:
        cluster.until(lambda: count() > 0, within=60)
    else:
        cluster.pass_by(240)
        assert count() == 0, title


@pytest.mark.parametrize("passes", [True, False], ids=["not ready before initial delay", "never be ready"])
def test_probing_container_with_readiness_probe(cluster: Cluster, passes: bool) -> None:
    probe = {"httpGet": {"port": 80 if passes else 81}, "initialDelaySeconds": 30}
    running(cluster, pod("p", {**SERVER, "ports": [{"containerPort": 80}], "readinessProbe": probe}))
    cluster.pass_by(28)
    assert not cluster.is_ready(cluster.get("pods", "p"))
    cluster.pass_by(60)
    found = cluster.get("pods", "p")
    assert cluster.is_ready(found) == passes
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0


# Volumes' paths, sysctls, runtime classes


def expanding(expression: str, name: str = "foo") -> Thing:
    mount = {"name": "work", "mountPath": "/logscontainer", "subPathExpr": expression}
    field = {"fieldRef": {"fieldPath": "metadata.annotations['mysubpath']"}}
    env: list[Any] = [{"name": "POD_NAME", "value": name}, {"name": "ANNOTATION", "valueFrom": field}]
    body = pod("p", container("sleep 600", volumeMounts=[mount], env=env), volumes=[{"name": "work", "emptyDir": {}}])
    body["metadata"]["annotations"] = {"notmysubpath": "mypath"}
    return body


def test_variable_expansion_substitutes_values_in_a_volume_subpath(cluster: Cluster) -> None:
    running(cluster, expanding("$(POD_NAME)"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../tmp", "unable to provision SubPath `../tmp`: must not contain '..'"),
        ("/tmp", "error SubPath `/tmp` must not be an absolute path"),
    ],
    ids=["with backticks", "with absolute path"],
)
def test_variable_expansion_should_fail_substituting_values_in_a_volume_subpath(
    cluster: Cluster, name: str, message: str
) -> None:
    cluster.make("pods", expanding("$(POD_NAME)", name))
    cluster.pass_by(60)
    found = cluster.get("pods", "p")
    assert (found["status"]["phase"], cluster.is_ready(found)) == ("Pending", False)
    waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": message}


def test_variable_expansion_should_verify_that_a_failing_subpath_expansion_can_be_modified(cluster: Cluster) -> None:
    cluster.make("pods", expanding("$(ANNOTATION)/$(POD_NAME)"))
    cluster.pass_by(60)
    found = cluster.get("pods", "p")["status"]
    assert found["phase"] == "Pending"
    assert found["containerStatuses"][0]["state"]["waiting"]["message"] == "missing value for ANNOTATION"
    cluster.patch("pods", "p", {"metadata": {"annotations": {"mysubpath": "mypath"}}})
    cluster.until(lambda: cluster.phase("p") == "Running")


def test_sysctls_should_reject_invalid_sysctls(cluster: Cluster) -> None:
    names = ["foo-", "kernel.shmmax", "safe-and-unsafe", "bar.."]
    sysctls = [{"name": name, "value": "100000000"} for name in names]
    answer = cluster.send("POST", cluster.path("pods"), pod("p", securityContext={"sysctls": sysctls}))
    assert answer.code == 422
    assert 'Invalid value: "foo-"' in answer.message
    assert 'Invalid value: "bar.."' in answer.message
    assert "safe-and-unsafe" not in answer.message
    assert "kernel.shmmax" not in answer.message


@pytest.mark.parametrize("overhead", [{"cpu": "10m", "memory": "1Mi"}, None])
def test_runtime_class_should_schedule_a_pod_requesting_a_runtime_class(
    cluster: Cluster, overhead: Thing | None
) -> None:
    more = {"overhead": {"podFixed": overhead}} if overhead else {}
    cluster.make("runtimeclasses", {"metadata": {"name": "rc"}, "handler": "test-handler", **more})
    cluster.make("pods", pod("p", runtimeClassName="rc"))
    cluster.until(lambda: condition(cluster.get("pods", "p"), "PodScheduled").get("status") == "True")
    assert cluster.get("pods", "p")["spec"].get("overhead") == overhead

"""Kubernetes' conformance tests of pods on nodes (group sig-node)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.simulation.conforming.cluster import STRATEGIC, Cluster, Thing, condition, container, pod, running


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


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


# Paths of volumes, sysctls, runtime classes.


def expanding(expression: str, name: str = "foo") -> Thing:
    mount = {"name": "work", "mountPath": "/logscontainer", "subPathExpr": expression}
    field = {"fieldRef": {"fieldPath": "metadata.annotations['mysubpath']"}}
    env: list[Any] = [{"name": "POD_NAME", "value": name}, {"name": "ANNOTATION", "valueFrom": field}]
    body = pod("p", container("sleep 600", volumeMounts=[mount], env=env), volumes=[{"name": "work", "emptyDir": {}}])
    body["metadata"]["annotations"] = {"notmysubpath": "mypath"}
    return body


def test_variable_expansion_substitutes_values_in_a_volume_subpath(cluster: Cluster) -> None:
    assert running(cluster, expanding("$(POD_NAME)"))["status"]["phase"] == "Running"


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

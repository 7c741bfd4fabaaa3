"""Kubernetes' conformance tests of scheduling and taints (groups sig-scheduling and sig-node)."""

from __future__ import annotations

from functools import partial

import pytest

from tests.simulation.conforming.cluster import MERGE, Cluster, Thing, condition, container, pod, workload

TAINT = {"key": "kubernetes.io/e2e-evict-taint-key", "value": "evictTaintVal", "effect": "NoExecute"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def asking(**requests: str) -> Thing:
    return container(resources={"requests": requests, "limits": requests})


def running(cluster: Cluster, name: str) -> Thing:
    cluster.until(lambda: cluster.phase(name) == "Running")
    return cluster.get("pods", name)


def unschedulable(cluster: Cluster, name: str) -> str:
    """Wait until a pod is reported as unschedulable, and return the message of its condition."""
    cluster.until(lambda: condition(cluster.get("pods", name), "PodScheduled").get("reason") == "Unschedulable")
    return str(condition(cluster.get("pods", name), "PodScheduled")["message"])


def extended(cluster: Cluster, amount: str = "5") -> None:
    """Give each node an extended resource of its own by patching the node's status, as Kubernetes' tests do."""
    for node in ("node-1", "node-2"):
        status = {
            "status": {"capacity": {"example.com/fakecpu": amount}, "allocatable": {"example.com/fakecpu": amount}}
        }
        cluster.patch("nodes", f"{node}/status", status)
    cluster.pass_by(15)
    assert cluster.get("nodes", "node-1")["status"]["capacity"]["example.com/fakecpu"] == amount


def test_should_have_at_least_two_untainted_nodes(cluster: Cluster) -> None:
    nodes = [each for each in cluster.all("nodes") if not each["spec"].get("taints") and cluster.is_ready(each)]
    assert len(nodes) >= 2
    for node in nodes:
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
        assert {"cpu", "memory", "pods", "ephemeral-storage"} <= node["status"]["allocatable"].keys()


def test_validates_resource_limits_of_pods_that_are_allowed_to_run(cluster: Cluster) -> None:
    for number in (1, 2):
        cluster.make("pods", pod(f"filler-{number}", asking(cpu="6")))
        running(cluster, f"filler-{number}")
    cluster.make("pods", pod("additional", asking(cpu="4")))
    assert unschedulable(cluster, "additional") == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    assert "FailedScheduling" in cluster.told.reasons()
    cluster.delete("pods", "filler-1")
    running(cluster, "additional")


def test_validates_that_node_selector_is_respected_if_not_matching(cluster: Cluster) -> None:
    cluster.make("pods", pod("restricted", nodeSelector={"label": "nonempty"}))
    assert "2 node(s) didn't match Pod's node affinity/selector" in unschedulable(cluster, "restricted")


def test_validates_that_node_selector_is_respected_if_matching(cluster: Cluster) -> None:
    cluster.patch("nodes", "node-2", {"metadata": {"labels": {"kubernetes.io/e2e-key": "42"}}})
    cluster.make("pods", pod("labels", nodeSelector={"kubernetes.io/e2e-key": "42"}))
    assert running(cluster, "labels")["spec"]["nodeName"] == "node-2"


def test_validates_that_there_exists_conflict_between_pods_with_same_host_port_and_protocol_but_one_using_0_0_0_0(
    cluster: Cluster,
) -> None:
    def on_port(name: str, address: str) -> Thing:
        port = {"containerPort": 8080, "hostPort": 54322, "protocol": "TCP", "hostIP": address}
        one = {**container(), "ports": [port]}
        return pod(name, one, nodeSelector={"kubernetes.io/hostname": "node-1"})

    cluster.make("pods", on_port("pod4", ""))
    running(cluster, "pod4")
    cluster.make("pods", on_port("pod5", "127.0.0.1"))
    assert "1 node(s) didn't have free ports for the requested pod ports" in unschedulable(cluster, "pod5")


# Preemption


def classes(cluster: Cluster, **values: int) -> None:
    for name, value in values.items():
        cluster.make("priorityclasses", {"metadata": {"name": name}, "value": value})
    cluster.work()


@pytest.mark.parametrize(
    ("title", "namespace", "preemptor"),
    [
        ("validates basic preemption works", "a", "high"),
        ("validates lower priority pod preemption by critical pod", "kube-system", "system-cluster-critical"),
    ],
)
def test_preemption(cluster: Cluster, title: str, namespace: str, preemptor: str) -> None:
    extended(cluster)
    classes(cluster, low=1, medium=100, high=1000)
    if namespace != "a":
        cluster.namespace(namespace)
        cluster.make("priorityclasses", {"metadata": {"name": preemptor}, "value": 2000000000})
        cluster.work()
    fake = {"example.com/fakecpu": "2"}
    for number, (node, name) in enumerate((("node-1", "low"), ("node-1", "medium"), ("node-2", "medium"))):
        for each in range(2 if name == "medium" and node == "node-2" else 1):
            pin: Thing = {"nodeSelector": {"kubernetes.io/hostname": node}, "priorityClassName": name}
            cluster.make("pods", pod(f"p{number}-{each}", asking(**fake), **pin))
            running(cluster, f"p{number}-{each}")
    body = pod("preemptor", asking(**fake), priorityClassName=preemptor)
    cluster.make("pods", body, namespace)
    cluster.until(lambda: cluster.get("pods", "preemptor", namespace)["status"].get("phase") == "Running")
    assert cluster.find("pods", "p0-0") is None, f"{title}: the least important pod has gone"
    assert len(cluster.pods()) == (4 if namespace == "a" else 3)
    assert cluster.get("pods", "preemptor", namespace)["spec"]["nodeName"] == "node-1"
    assert "Preempted" in cluster.told.reasons()


def test_validates_pod_disruption_condition_is_added_to_the_preempted_pod(cluster: Cluster) -> None:
    extended(cluster, "1")
    classes(cluster, low=1, high=1000)
    pin = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    victim = pod("victim", asking(**{"example.com/fakecpu": "1"}), priorityClassName="low", **pin)
    victim["metadata"]["finalizers"] = ["example.com/test"]
    cluster.make("pods", victim)
    running(cluster, "victim")
    cluster.make("pods", pod("preemptor", asking(**{"example.com/fakecpu": "1"}), priorityClassName="high", **pin))
    cluster.until(lambda: cluster.get("pods", "victim")["metadata"].get("deletionTimestamp"))
    found = condition(cluster.get("pods", "victim"), "DisruptionTarget")
    assert (found["status"], found["reason"]) == ("True", "PreemptionByScheduler")
    assert found["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    cluster.until(lambda: cluster.get("pods", "victim")["status"]["phase"] in ("Failed", "Succeeded"))
    cluster.patch("pods", "victim", {"metadata": {"finalizers": None}})
    running(cluster, "preemptor")


def has_ready(cluster: Cluster, app: str, replicas: int) -> bool:
    return len(cluster.ready(f"app={app}")) == replicas


def test_preemption_execution_path_runs_replica_sets_to_verify_preemption_running_path(cluster: Cluster) -> None:
    """Three ReplicaSets have increasing priorities, and the pods of a fourth ReplicaSet preempt the pods with the
    lowest priority.
    """
    extended(cluster, "10")
    classes(cluster, p1=1, p2=2, p3=3, p4=4)
    pin = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    fake = {"example.com/fakecpu": "1"}
    for name, replicas, resources in (("p1", 5, fake), ("p2", 4, fake), ("p3", 1, fake)):
        body = workload(f"rs-{name}", asking(**resources), app=name, replicas=replicas)
        body["spec"]["template"]["spec"] |= {"priorityClassName": name, **pin}
        cluster.make("replicasets", body)
        cluster.until(partial(has_ready, cluster, name, replicas))
    body = workload("rs-p4", asking(**{"example.com/fakecpu": "5"}), app="p4", replicas=1)
    body["spec"]["template"]["spec"] |= {"priorityClassName": "p4", **pin}
    cluster.make("replicasets", body)
    cluster.until(lambda: len(cluster.ready("app=p4")) == 1)
    assert [len(cluster.ready(f"app={name}")) for name in ("p1", "p2", "p3", "p4")] == [0, 4, 1, 1]
    assert len(cluster.pods("app=p1")) == 5, "they wait"


def test_priority_class_endpoints_can_be_operated_with_different_http_methods(cluster: Cluster) -> None:
    classes(cluster, p1=1)
    assert cluster.send("PATCH", cluster.path("priorityclasses", "p1"), {"value": 5}, media_type=MERGE).code == 422
    patched = cluster.patch("priorityclasses", "p1", {"description": "updated"})
    assert (patched["description"], patched["value"]) == ("updated", 1)
    replaced = cluster.replace("priorityclasses", "p1", {**patched, "description": "replaced"})
    assert replaced["description"] == "replaced"


# Taints


def tainted(cluster: Cluster, node: str) -> None:
    taints = cluster.get("nodes", node)["spec"].get("taints") or []
    cluster.patch("nodes", node, {"spec": {"taints": [*taints, TAINT]}})


def tolerating(name: str, seconds: int) -> Thing:
    toleration = {"key": TAINT["key"], "value": TAINT["value"], "effect": "NoExecute", "tolerationSeconds": seconds}
    return pod(name, tolerations=[toleration], terminationGracePeriodSeconds=1)


def test_no_execute_taint_manager_removing_taint_cancels_eviction(cluster: Cluster) -> None:
    cluster.make("pods", tolerating("p", 65))
    node = running(cluster, "p")["spec"]["nodeName"]
    tainted(cluster, node)
    cluster.pass_by(50)
    cluster.patch("nodes", node, {"spec": {"taints": None}})
    cluster.pass_by(60)
    assert cluster.phase("p") == "Running"
    assert not cluster.get("pods", "p")["metadata"].get("deletionTimestamp")


def test_no_execute_taint_manager_evicts_pods_with_min_toleration_seconds(cluster: Cluster) -> None:
    for name, seconds in (("p1", 5), ("p2", 60)):
        cluster.make("pods", {**tolerating(name, seconds)})
    nodes = {running(cluster, name)["spec"]["nodeName"] for name in ("p1", "p2")}
    for node in nodes:
        tainted(cluster, node)
    cluster.pass_by(15)
    assert [cluster.find("pods", name) is None for name in ("p1", "p2")] == [True, False]
    cluster.pass_by(60)
    assert cluster.find("pods", "p2") is None

"""Kubernetes' conformance tests of Deployments, ReplicaSets, StatefulSets, DaemonSets and PodDisruptionBudgets."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.simulation.conforming.cluster import STRATEGIC, Cluster, Thing, condition, container, pod, workload

NEW = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.11"}]}}}}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def has_ready(cluster: Cluster, wanted: int, selector: str = "app=web") -> bool:
    return len(cluster.ready(selector)) == wanted


def wait_ready(cluster: Cluster, wanted: int, selector: str = "app=web") -> None:
    cluster.until(partial(has_ready, cluster, wanted, selector))


def is_complete(cluster: Cluster, name: str, kind: str = "deployments") -> bool:
    found = cluster.get(kind, name)
    status, wanted = found["status"], found["spec"].get("replicas", 1)
    is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return is_seen and all(
        status.get(each, 0) == wanted for each in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    )


def deployed(cluster: Cluster, name: str = "web", **spec: Any) -> Thing:
    cluster.make("deployments", workload(name, **spec))
    cluster.until(lambda: is_complete(cluster, name))
    return cluster.get("deployments", name)


def images(cluster: Cluster) -> set[str]:
    return {each["spec"]["containers"][0]["image"] for each in cluster.pods("app=web")}


# Deployments


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
def test_deployment_should_delete_old_pods_and_create_new_ones(cluster: Cluster, strategy: str) -> None:
    deployed(cluster, replicas=2, strategy={"type": strategy}, minReadySeconds=1)
    before = {each["metadata"]["name"] for each in cluster.pods()}
    cluster.patch("deployments", "web", NEW, STRATEGIC)
    seen: list[set[str]] = []

    def is_over() -> bool:
        seen.append({each["metadata"]["name"] for each in cluster.pods()})
        return is_complete(cluster, "web")

    cluster.until(is_over)
    assert images(cluster) == {"registry.k8s.io/pause:3.11"}
    assert any(each & before and each - before for each in seen) == (strategy == "RollingUpdate")


def test_deployment_should_delete_old_replica_sets(cluster: Cluster) -> None:
    deployed(cluster, revisionHistoryLimit=0)
    cluster.patch("deployments", "web", NEW, STRATEGIC)
    cluster.until(lambda: len(cluster.all("replicasets")) == 1 and is_complete(cluster, "web"))


def test_deployment_should_support_rollover(cluster: Cluster) -> None:
    cluster.make("replicasets", workload("rollover", replicas=1))
    wait_ready(cluster, 1)
    stuck = workload("web", {"name": "c", "image": "registry.k8s.io/pause:nonexistent"}, replicas=1)
    cluster.make("deployments", stuck)
    cluster.until(lambda: any(each["metadata"]["name"] != "rollover" for each in cluster.all("replicasets")))
    cluster.patch("deployments", "web", NEW, STRATEGIC)
    cluster.until(lambda: is_complete(cluster, "web"))
    left = {each["spec"]["replicas"] for each in cluster.all("replicasets")}
    assert (left, images(cluster)) == ({0, 1}, {"registry.k8s.io/pause:3.11"})


def test_deployment_should_support_proportional_scaling(cluster: Cluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    deployed(cluster, replicas=10, strategy=rolling)
    missing = {"name": "c", "image": "webserver:404"}
    cluster.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": [missing]}}}}, STRATEGIC)
    cluster.until(lambda: sorted(each["spec"]["replicas"] for each in cluster.all("replicasets")) == [5, 8])
    cluster.patch("deployments", "web", {"spec": {"replicas": 30}})
    cluster.until(lambda: sorted(each["spec"]["replicas"] for each in cluster.all("replicasets")) == [13, 20])


def test_deployment_should_run_the_lifecycle_of_a_deployment(cluster: Cluster) -> None:
    deployed(cluster, replicas=1)
    cluster.patch("deployments", "web", {"metadata": {"labels": {"patched": "yes"}}, "spec": {"replicas": 2}})
    cluster.until(lambda: is_complete(cluster, "web"))
    assert condition(cluster.get("deployments", "web"), "Available")["status"] == "True"
    assert condition(cluster.get("deployments", "web"), "Progressing")["reason"] == "NewReplicaSetAvailable"
    cluster.send("DELETE", cluster.path("deployments"), query={"labelSelector": "patched=yes"})
    cluster.until(lambda: not cluster.all("pods"))


def test_deployment_should_validate_deployment_status_endpoints(cluster: Cluster) -> None:
    found = deployed(cluster)
    mark = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from e2e test"}
    found["status"]["conditions"].append(mark)
    updated = cluster.replace("deployments", "web/status", found)
    assert condition(updated, "StatusUpdate")["reason"] == "E2E"
    patched = cluster.patch("deployments", "web/status", {"status": {"conditions": [mark]}}, STRATEGIC)
    assert condition(patched, "StatusUpdate")


@pytest.mark.parametrize("kind", ["deployments", "replicasets", "statefulsets", "replicationcontrollers"])
def test_should_have_a_working_scale_subresource(cluster: Cluster, kind: str) -> None:
    body = workload("web", replicas=1)
    if kind == "replicationcontrollers":
        body["spec"]["selector"] = {"app": "web"}
    cluster.make(kind, body)
    wait_ready(cluster, 1)
    scale = cluster.get(kind, "web/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 1)
    scale["spec"]["replicas"] = 2
    assert cluster.replace(kind, "web/scale", scale)["spec"]["replicas"] == 2
    wait_ready(cluster, 2)
    cluster.patch(kind, "web/scale", {"spec": {"replicas": 3}})
    wait_ready(cluster, 3)


# ReplicaSets and ReplicationControllers.


@pytest.mark.parametrize("kind", ["replicasets", "replicationcontrollers"])
def test_should_adopt_matching_pods_on_creation_and_release_no_longer_matching_pods(
    cluster: Cluster, kind: str
) -> None:
    cluster.make("pods", pod("orphan", labels={"app": "web"}))
    cluster.until(lambda: cluster.phase("orphan") == "Running")
    body = workload("web", replicas=1)
    if kind == "replicationcontrollers":
        body["spec"]["selector"] = {"app": "web"}
    uid = cluster.make(kind, body)["metadata"]["uid"]

    def owners() -> list[str]:
        return [each["uid"] for each in cluster.get("pods", "orphan")["metadata"].get("ownerReferences", ())]

    cluster.until(lambda: owners() == [uid])
    assert len(cluster.pods("app=web")) == 1
    cluster.patch("pods", "orphan", {"metadata": {"labels": {"app": "not-matching"}}})
    cluster.until(lambda: owners() == [] and len(cluster.ready("app=web")) == 1)


def test_replica_set_replace_and_patch_tests(cluster: Cluster) -> None:
    cluster.make("replicasets", workload("web", replicas=1))
    wait_ready(cluster, 1)
    cluster.make("pods", pod("extra", labels={"app": "web"}))
    cluster.until(lambda: len(cluster.pods("app=web")) == 1)
    found = cluster.get("replicasets", "web")
    found["spec"]["replicas"] = 2
    cluster.replace("replicasets", "web", found)
    wait_ready(cluster, 2)
    patch = {"spec": {"replicas": 3, "template": {"spec": {"terminationGracePeriodSeconds": 0}}}}
    cluster.patch("replicasets", "web", patch, STRATEGIC)
    wait_ready(cluster, 3)


def test_replica_set_should_list_and_delete_a_collection(cluster: Cluster) -> None:
    cluster.make("replicasets", workload("web", replicas=3))
    wait_ready(cluster, 3)
    cluster.send("DELETE", cluster.path("replicasets"), query={"labelSelector": "app=web"})
    cluster.until(lambda: not cluster.all("replicasets") and not cluster.all("pods"))


@pytest.mark.parametrize("kind", ["replicasets", "statefulsets", "daemonsets"])
def test_should_validate_status_endpoints(cluster: Cluster, kind: str) -> None:
    cluster.make(kind, workload("web"))
    wait_ready(cluster, 2 if kind == "daemonsets" else 1)
    mark = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from e2e test"}
    found = cluster.get(kind, "web")
    found["status"]["conditions"] = [mark]
    assert condition(cluster.replace(kind, "web/status", found), "StatusUpdate")["reason"] == "E2E"
    patch = {"status": {"conditions": [{**mark, "type": "StatusPatched"}]}}
    assert condition(cluster.patch(kind, "web/status", patch), "StatusPatched")


def test_replication_controller_should_surface_a_failure_condition_on_a_common_issue_like_exceeded_quota(
    cluster: Cluster,
) -> None:
    cluster.make("resourcequotas", {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}})
    cluster.until(lambda: cluster.get("resourcequotas", "two")["status"].get("used"))
    body = workload("web", replicas=3)
    body["spec"]["selector"] = {"app": "web"}
    cluster.make("replicationcontrollers", body)
    cluster.until(lambda: condition(cluster.get("replicationcontrollers", "web"), "ReplicaFailure"))
    cluster.patch("replicationcontrollers", "web", {"spec": {"replicas": 2}})
    cluster.until(lambda: not condition(cluster.get("replicationcontrollers", "web"), "ReplicaFailure"))


def test_replication_controller_should_test_the_lifecycle(cluster: Cluster) -> None:
    body = workload("web", replicas=1)
    body["spec"]["selector"] = {"app": "web"}
    cluster.make("replicationcontrollers", body)
    wait_ready(cluster, 1)
    status = cluster.patch(
        "replicationcontrollers", "web/status", {"status": {"readyReplicas": 0, "availableReplicas": 0}}
    )
    assert not status["status"].get("readyReplicas")
    cluster.until(lambda: cluster.get("replicationcontrollers", "web")["status"].get("readyReplicas") == 1)
    cluster.patch("replicationcontrollers", "web", {"spec": {"replicas": 2}})
    wait_ready(cluster, 2)
    cluster.send("DELETE", cluster.path("replicationcontrollers"), query={"labelSelector": "app=web"})
    cluster.until(lambda: not cluster.all("replicationcontrollers"))


# StatefulSets


def names(cluster: Cluster, selector: str = "app=web") -> list[str]:
    return [each["metadata"]["name"] for each in cluster.ready(selector)]


def webserver(image: str = "httpd:2.4.38", **more: Any) -> Thing:
    """Return the container of the StatefulSets in Kubernetes' tests: its probe uses a port that the container does not
    declare.
    """
    probe = {"httpGet": {"path": "/index.html", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    return {"name": "c", "image": image, "readinessProbe": probe, **more}


def stateful(cluster: Cluster, replicas: int, **spec: Any) -> Thing:
    """Create a StatefulSet `ss` with its headless Service, and wait until its pods are ready."""
    cluster.make("services", {"metadata": {"name": "test"}, "spec": {"clusterIP": "None", "selector": {"app": "web"}}})
    cluster.make("statefulsets", workload("ss", webserver(), replicas=replicas, serviceName="test", **spec))
    wait_ready(cluster, replicas)
    cluster.work()
    return cluster.get("statefulsets", "ss")


def revisions(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Return the name, the image and the revision of each pod of the StatefulSet."""
    label = "controller-revision-hash"
    pods = sorted(cluster.pods("app=web"), key=lambda each: str(each["metadata"]["name"]))
    return [
        (each["metadata"]["name"], each["spec"]["containers"][0]["image"], each["metadata"]["labels"][label])
        for each in pods
    ]


def test_stateful_set_should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications(
    cluster: Cluster,
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}
    status = stateful(cluster, 3, updateStrategy=rolling)["status"]
    assert status["currentRevision"] == status["updateRevision"]
    old = ("httpd:2.4.38", status["currentRevision"])
    assert revisions(cluster) == [(f"ss-{number}", *old) for number in range(3)]
    update = {"spec": {"template": {"spec": {"containers": [webserver("httpd:2.4.39")]}}}}
    cluster.patch("statefulsets", "ss", update, STRATEGIC)
    cluster.pass_by(20)
    status = cluster.get("statefulsets", "ss")["status"]
    assert (status["currentRevision"], status["updateRevision"] != old[1]) == (old[1], True)
    assert revisions(cluster) == [(f"ss-{number}", *old) for number in range(3)], "the partition is beyond the replicas"
    new = ("httpd:2.4.39", status["updateRevision"])

    def is_parted(at: int) -> bool:
        wanted = [(f"ss-{number}", *(old if number < at else new)) for number in range(3)]
        return revisions(cluster) == wanted and len(cluster.ready("app=web")) == 3

    cluster.patch("statefulsets", "ss", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}})
    cluster.until(partial(is_parted, 2))
    for name in ("ss-0", "ss-2"):
        uid = cluster.get("pods", name)["metadata"]["uid"]
        cluster.delete("pods", name)
        cluster.until(partial(is_new, cluster, name, uid))
    cluster.until(partial(is_parted, 2))
    for partition in (1, 0):
        cluster.patch("statefulsets", "ss", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}})
        cluster.until(partial(is_parted, partition))
    cluster.until(lambda: cluster.get("statefulsets", "ss")["status"]["currentRevision"] == new[1])


def is_new(cluster: Cluster, name: str, uid: str) -> bool:
    found = cluster.find("pods", name)
    return found is not None and found["metadata"]["uid"] != uid and cluster.is_ready(found)


def test_stateful_set_should_have_a_working_scale_subresource(cluster: Cluster) -> None:
    stateful(cluster, 1)
    scale = cluster.get("statefulsets", "ss/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (1, 1)
    del scale["metadata"]["resourceVersion"]  # unconditionally
    scale["spec"]["replicas"] = 2
    assert cluster.replace("statefulsets", "ss/scale", scale)["spec"]["replicas"] == 2
    assert cluster.get("statefulsets", "ss")["spec"]["replicas"] == 2
    cluster.patch("statefulsets", "ss/scale", {"spec": {"replicas": 4}}, STRATEGIC)
    assert cluster.get("statefulsets", "ss")["spec"]["replicas"] == 4
    wait_ready(cluster, 4)


def test_stateful_set_should_validate_statefulset_status_endpoints(cluster: Cluster) -> None:
    stateful(cluster, 1)
    mark = {"type": "StatusUpdate", "status": "True", "reason": "E2E", "message": "Set from e2e test"}
    found = cluster.get("statefulsets", "ss/status")
    found["status"]["conditions"] = [*found["status"].get("conditions", []), mark]
    updated = cluster.replace("statefulsets", "ss/status", found)
    assert condition(updated, "StatusUpdate")["message"] == mark["message"]
    patch = {"status": {"conditions": [{"type": "StatusPatched", "status": "True"}]}}
    assert condition(cluster.patch("statefulsets", "ss/status", patch), "StatusPatched")["status"] == "True"


def test_stateful_set_should_recreate_evicted_statefulset(cluster: Cluster) -> None:
    """A pod on the same node uses the host port of the StatefulSet's pod; after this pod was deleted, the StatefulSet's
    pod runs.
    """
    port = {"containerPort": 21017, "hostPort": 21017, "name": "conflict"}
    cluster.make("pods", pod("test-pod", {**container(), "ports": [port]}, nodeName="node-1"))
    cluster.until(lambda: cluster.phase("test-pod") == "Running")
    body = workload("ss", {**container(), "ports": [port]}, replicas=1, serviceName="test")
    body["spec"]["template"]["spec"]["nodeName"] = "node-1"
    cluster.make("statefulsets", body)
    uids: set[str] = set()

    def was_recreated() -> bool:
        found = cluster.find("pods", "ss-0")
        uids.update([found["metadata"]["uid"]] if found is not None else [])
        return len(uids) > 1

    cluster.until(was_recreated)
    cluster.delete("pods", "test-pod")
    cluster.until(lambda: names(cluster) == ["ss-0"])


def test_stateful_set_should_list_patch_and_delete_a_collection(cluster: Cluster) -> None:
    stateful(cluster, 1)
    assert [each["metadata"]["name"] for each in cluster.all("statefulsets", "app=web")] == ["ss"]
    template = {"spec": {"terminationGracePeriodSeconds": 5, "containers": [webserver("httpd:2.4.39")]}}
    patch = {"metadata": {"labels": {"ss": "patched"}}, "spec": {"replicas": 2, "template": template}}
    patched = cluster.patch("statefulsets", "ss", patch, STRATEGIC)
    assert patched["metadata"]["labels"]["ss"] == "patched"
    assert patched["spec"]["template"]["spec"]["containers"][0]["image"] == "httpd:2.4.39"
    cluster.until(lambda: len(names(cluster)) == 2 and images(cluster) == {"httpd:2.4.39"})
    cluster.send("DELETE", cluster.path("statefulsets"), query={"labelSelector": "ss=patched"})
    cluster.until(lambda: not cluster.all("statefulsets"))


# DaemonSets


def daemons(cluster: Cluster, **spec: Any) -> None:
    cluster.make("daemonsets", workload("ds", **spec))
    wait_ready(cluster, 2)
    assert {each["spec"]["nodeName"] for each in cluster.ready("app=web")} == {"node-1", "node-2"}


def test_daemon_set_should_run_and_stop_simple_daemon(cluster: Cluster) -> None:
    daemons(cluster)
    name = cluster.ready("app=web")[0]["metadata"]["name"]
    cluster.delete("pods", name)
    cluster.until(lambda: cluster.find("pods", name) is None and has_ready(cluster, 2))


def test_daemon_set_should_run_and_stop_complex_daemon(cluster: Cluster) -> None:
    body = workload("ds")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"color": "blue"}
    cluster.make("daemonsets", body)
    cluster.pass_by(5)
    assert cluster.pods() == []
    cluster.patch("nodes", "node-2", {"metadata": {"labels": {"color": "blue"}}})
    wait_ready(cluster, 1)
    assert cluster.pods()[0]["spec"]["nodeName"] == "node-2"
    cluster.patch("nodes", "node-2", {"metadata": {"labels": {"color": "green"}}})
    cluster.until(lambda: not cluster.pods())
    green = {"spec": {"template": {"spec": {"nodeSelector": {"color": "green"}}}}}
    cluster.patch("daemonsets", "ds", green)
    wait_ready(cluster, 1)


def test_daemon_set_should_retry_creating_failed_daemon_pods(cluster: Cluster) -> None:
    daemons(cluster)
    name = cluster.pods()[0]["metadata"]["name"]
    cluster.patch("pods", f"{name}/status", {"status": {"phase": "Failed"}})
    cluster.until(lambda: cluster.find("pods", name) is None and has_ready(cluster, 2))


def test_daemon_set_should_update_pod_when_spec_was_updated_and_update_strategy_is_rolling_update(
    cluster: Cluster,
) -> None:
    daemons(cluster, updateStrategy={"type": "RollingUpdate"})
    cluster.patch("daemonsets", "ds", NEW, STRATEGIC)
    cluster.until(lambda: images(cluster) == {"registry.k8s.io/pause:3.11"} and has_ready(cluster, 2))
    assert len(cluster.all("controllerrevisions")) == 2


def test_daemon_set_should_rollback_without_unnecessary_restarts(cluster: Cluster) -> None:
    daemons(cluster)
    stuck = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "foo:non-existent"}]}}}}
    before = {each["metadata"]["name"] for each in cluster.pods()}
    cluster.patch("daemonsets", "ds", stuck, STRATEGIC)
    cluster.until(lambda: "foo:non-existent" in images(cluster))
    kept = before & {each["metadata"]["name"] for each in cluster.pods()}
    assert len(kept) == 1
    back = {"spec": {"template": {"spec": {"containers": [container()]}}}}
    cluster.patch("daemonsets", "ds", back, STRATEGIC)
    cluster.until(lambda: has_ready(cluster, 2) and images(cluster) == {"registry.k8s.io/pause:3.10.1"})
    assert kept <= {each["metadata"]["name"] for each in cluster.pods()}


def test_daemon_set_should_list_and_delete_a_collection(cluster: Cluster) -> None:
    daemons(cluster)
    cluster.send("DELETE", cluster.path("daemonsets"), query={"labelSelector": "app=web"})
    cluster.until(lambda: not cluster.all("daemonsets") and not cluster.all("pods"))


def test_controller_revision_should_manage_the_lifecycle(cluster: Cluster) -> None:
    daemons(cluster)
    (first,) = cluster.all("controllerrevisions")
    name = first["metadata"]["name"]
    cluster.patch("controllerrevisions", name, {"metadata": {"labels": {"patched": "yes"}}})
    made = {**first, "metadata": {"name": "another", "labels": {"app": "web"}}, "revision": 9}
    cluster.make("controllerrevisions", made)
    cluster.delete("controllerrevisions", "another")
    cluster.delete("controllerrevisions", name)
    cluster.until(lambda: len(cluster.all("controllerrevisions")) == 1)
    assert cluster.find("controllerrevisions", "another") is None


# Budgets


def budget(minimum: int | str, **labels: str) -> Thing:
    selector = {"matchLabels": {"app": "web", **labels}}
    return {"metadata": {"name": "foo"}, "spec": {"selector": selector, "minAvailable": minimum}}


def evict(cluster: Cluster, name: str) -> int:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "a"}}
    return cluster.send("POST", cluster.path("pods", f"{name}/eviction"), body).code


def test_disruption_controller_should_block_an_eviction_until_the_pdb_is_updated_to_allow_it(cluster: Cluster) -> None:
    cluster.make("poddisruptionbudgets", budget(3))
    cluster.make("replicasets", workload("web", replicas=3))
    wait_ready(cluster, 3)
    cluster.until(lambda: cluster.get("poddisruptionbudgets", "foo")["status"].get("currentHealthy") == 3)
    name = cluster.pods()[0]["metadata"]["name"]
    assert evict(cluster, name) == 429
    cluster.patch("poddisruptionbudgets", "foo", {"spec": {"minAvailable": 2}})
    cluster.until(lambda: cluster.get("poddisruptionbudgets", "foo")["status"]["disruptionsAllowed"] == 1)
    assert evict(cluster, name) == 201
    cluster.until(lambda: cluster.find("pods", name) is None)
    wait_ready(cluster, 3)


def test_disruption_controller_should_observe_pod_disruption_budget_status_updated(cluster: Cluster) -> None:
    cluster.make("poddisruptionbudgets", budget(1))
    for number in range(2):
        cluster.make("pods", pod(f"p{number}", labels={"app": "web"}))
    cluster.until(lambda: cluster.get("poddisruptionbudgets", "foo")["status"].get("disruptionsAllowed") == 1)


def test_disruption_controller_should_update_patch_pod_disruption_budget_status(cluster: Cluster) -> None:
    found = cluster.make("poddisruptionbudgets", budget(1))
    cluster.work()
    found = cluster.get("poddisruptionbudgets", "foo")
    found["status"]["disruptedPods"] = {"p0": "2026-01-01T00:00:00Z"}
    assert cluster.replace("poddisruptionbudgets", "foo/status", found)["status"]["disruptedPods"]
    patch = {"status": {"disruptedPods": None}}
    assert not cluster.patch("poddisruptionbudgets", "foo/status", patch)["status"].get("disruptedPods")

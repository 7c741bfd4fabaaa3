"""Kubernetes' conformance tests of garbage collection, namespaces and Endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conforming.cluster import Cluster, Thing, pod, workload


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def controlled(cluster: Cluster, name: str = "rc", replicas: int = 2) -> Thing:
    body = workload(name, app=name, replicas=replicas)
    body["spec"]["selector"] = {"app": name}
    made = cluster.make("replicationcontrollers", body)
    cluster.until(lambda: len(cluster.ready(f"app={name}")) == replicas)
    return made


def owner(thing: Thing, kind: str, **more: Any) -> Thing:
    meta = thing["metadata"]
    return {"apiVersion": "v1", "kind": kind, "name": meta["name"], "uid": meta["uid"], **more}


def test_garbage_collector_should_delete_pods_created_by_rc_when_not_orphaning(cluster: Cluster) -> None:
    controlled(cluster)
    cluster.delete("replicationcontrollers", "rc", propagationPolicy="Background")
    cluster.until(lambda: not cluster.all("pods"))


def test_garbage_collector_should_orphan_pods_created_by_rc_if_delete_options_say_so(cluster: Cluster) -> None:
    controlled(cluster)
    cluster.delete("replicationcontrollers", "rc", propagationPolicy="Orphan")
    cluster.until(lambda: cluster.find("replicationcontrollers", "rc") is None)
    cluster.pass_by(30)
    assert [each["metadata"].get("ownerReferences") for each in cluster.pods()] == [None, None]


@pytest.mark.parametrize(("propagation", "left"), [("Background", 0), ("Orphan", 1)])
def test_garbage_collector_should_delete_or_orphan_rs_created_by_deployment(
    cluster: Cluster, propagation: str, left: int
) -> None:
    cluster.make("deployments", workload("web"))
    cluster.until(lambda: len(cluster.ready("app=web")) == 1)
    cluster.delete("deployments", "web", propagationPolicy=propagation)
    cluster.until(lambda: cluster.find("deployments", "web") is None)
    cluster.pass_by(30)
    assert (len(cluster.all("replicasets")), len(cluster.all("pods"))) == (left, left)


def test_garbage_collector_should_keep_the_rc_around_until_all_its_pods_are_deleted_if_the_delete_options_says_so(
    cluster: Cluster,
) -> None:
    controlled(cluster)
    held = cluster.pods()[0]["metadata"]["name"]
    cluster.patch("pods", held, {"metadata": {"finalizers": ["example.com/test"]}})
    cluster.delete("replicationcontrollers", "rc", propagationPolicy="Foreground")
    cluster.pass_by(40)
    found = cluster.get("replicationcontrollers", "rc")
    assert found["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert [each["metadata"]["name"] for each in cluster.all("pods")] == [held]
    cluster.patch("pods", held, {"metadata": {"finalizers": None}})
    cluster.until(lambda: cluster.find("replicationcontrollers", "rc") is None)


def test_garbage_collector_should_not_delete_dependents_that_have_both_valid_owner_and_owner_thats_waiting(
    cluster: Cluster,
) -> None:
    controlled(cluster, "going")
    stays = controlled(cluster, "stays", 1)
    shared = cluster.pods("app=going")[0]["metadata"]["name"]
    owners = cluster.get("pods", shared)["metadata"]["ownerReferences"]
    more = [*owners, owner(stays, "ReplicationController")]
    cluster.patch("pods", shared, {"metadata": {"ownerReferences": more}})
    cluster.delete("replicationcontrollers", "going", propagationPolicy="Foreground")
    cluster.until(lambda: cluster.find("replicationcontrollers", "going") is None)
    found = cluster.get("pods", shared)["metadata"]
    assert [each["name"] for each in found["ownerReferences"]] == ["stays"]
    assert "deletionTimestamp" not in found
    assert len(cluster.all("pods", "app=going")) == 1


def test_garbage_collector_should_not_be_blocked_by_dependency_circle(cluster: Cluster) -> None:
    made = [cluster.make("pods", pod(f"pod{number}")) for number in (1, 2, 3)]
    for number, before in ((1, made[2]), (2, made[0]), (3, made[1])):
        reference = owner(before, "Pod", controller=True, blockOwnerDeletion=True)
        cluster.patch("pods", f"pod{number}", {"metadata": {"ownerReferences": [reference]}})
    cluster.delete("pods", "pod1", propagationPolicy="Foreground")
    cluster.until(lambda: not cluster.all("pods"))


def test_namespaces_should_ensure_that_all_pods_are_removed_when_a_namespace_is_deleted(cluster: Cluster) -> None:
    cluster.namespace("nsdeletetest")
    cluster.make("pods", pod("p"), "nsdeletetest")
    cluster.until(lambda: cluster.get("pods", "p", "nsdeletetest")["status"]["phase"] == "Running")
    cluster.delete("namespaces", "nsdeletetest")
    cluster.until(lambda: cluster.find("namespaces", "nsdeletetest") is None)
    cluster.namespace("nsdeletetest")
    assert cluster.all("pods", namespace="nsdeletetest") == []


def test_ordered_namespace_deletion_should_delete_pod_first(cluster: Cluster) -> None:
    cluster.namespace("ordered")
    held = pod("p")
    held["metadata"]["finalizers"] = ["example.com/test"]
    cluster.make("pods", held, "ordered")
    cluster.make("configmaps", {"metadata": {"name": "c"}}, "ordered")
    cluster.delete("namespaces", "ordered")
    cluster.pass_by(30)
    assert cluster.find("configmaps", "c", "ordered") is not None, "pods go first"
    path = cluster.path("pods", "p", "ordered")
    cluster.send("PATCH", path, {"metadata": {"finalizers": None}}, media_type="application/merge-patch+json")
    cluster.until(lambda: cluster.find("namespaces", "ordered") is None)


def test_service_accounts_should_guarantee_kube_root_ca_crt_exist_in_any_namespace(cluster: Cluster) -> None:
    cluster.until(lambda: cluster.find("configmaps", "kube-root-ca.crt"))
    cluster.delete("configmaps", "kube-root-ca.crt")
    cluster.until(lambda: cluster.find("configmaps", "kube-root-ca.crt"))
    cluster.patch("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": ""}})
    cluster.until(lambda: cluster.get("configmaps", "kube-root-ca.crt")["data"]["ca.crt"] == "a certificate")


def test_endpoints_controller_and_endpoint_slice_should_create_endpoints_for_pods_matching_a_service(
    cluster: Cluster,
) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}
    cluster.make("services", service)
    cluster.make("deployments", workload("web", replicas=2))
    cluster.until(lambda: len(cluster.ready("app=web")) == 2)
    addresses = {each["status"]["podIP"] for each in cluster.pods("app=web")}

    def endpoint_addresses() -> tuple[set[str], set[str]]:
        subsets = cluster.get("endpoints", "web").get("subsets") or ()
        slices = cluster.all("endpointslices", "kubernetes.io/service-name=web")
        ready = {ip for each in slices for one in each["endpoints"] or () for ip in one["addresses"]}
        return {each["ip"] for subset in subsets for each in subset.get("addresses") or ()}, ready

    cluster.until(lambda: endpoint_addresses() == (addresses, addresses))
    name = cluster.pods("app=web")[0]["metadata"]["name"]
    cluster.patch("pods", name, {"metadata": {"labels": {"app": "other"}}})
    cluster.until(
        lambda: (
            len(endpoint_addresses()[0]) == len(endpoint_addresses()[1]) == 2 and endpoint_addresses()[0] != addresses
        )
    )
    cluster.delete("services", "web")
    cluster.until(lambda: not cluster.all("endpointslices", "kubernetes.io/service-name=web"))

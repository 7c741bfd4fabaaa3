"""Kubernetes' conformance tests of storage, for the API and for simulated nodes (group sig-storage)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conforming.cluster import STRATEGIC, Cluster, Thing, container, pod


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def attachment(name: str, volume: str = "pv") -> Thing:
    source = {"persistentVolumeName": f"{volume}-{name}"}
    spec = {"attacher": "e2e-test.csi.example.com", "nodeName": "node-1", "source": source}
    return {"metadata": {"name": name, "labels": {"e2e": name}}, "spec": spec}


def test_volume_attachment_should_run_through_the_lifecycle(cluster: Cluster) -> None:
    made = cluster.make("volumeattachments", attachment("one"))
    assert made["spec"] == attachment("one")["spec"]
    assert made["status"] == {"attached": False}
    read = cluster.get("volumeattachments", "one")
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    assert [each["metadata"]["name"] for each in cluster.all("volumeattachments", "e2e=one")] == ["one"]
    patched = cluster.patch("volumeattachments", "one", {"metadata": {"labels": {"one": "patched"}}})
    assert patched["metadata"]["labels"] == {"e2e": "one", "one": "patched"}
    cluster.delete("volumeattachments", "one")
    cluster.until(lambda: cluster.find("volumeattachments", "one") is None)
    again = cluster.make("volumeattachments", attachment("two"))
    again["metadata"]["labels"]["two"] = "updated"
    assert cluster.replace("volumeattachments", "two", again)["metadata"]["labels"]["two"] == "updated"
    gone = cluster.send("DELETE", cluster.path("volumeattachments"), query={"labelSelector": "two=updated"})
    assert gone.code == 200
    assert cluster.all("volumeattachments") == []


def test_volume_attachment_should_apply_changes_to_a_status(cluster: Cluster) -> None:
    cluster.make("volumeattachments", attachment("one"))
    labelled = cluster.patch("volumeattachments", "one", {"metadata": {"labels": {"one": "patched"}}})
    assert labelled["metadata"]["labels"]["one"] == "patched"
    assert cluster.get("volumeattachments", "one/status")["status"]["attached"] is False
    told = {"metadata": {"annotations": {"patched": "yes"}}, "status": {"attached": True}}
    patched = cluster.patch("volumeattachments", "one/status", told)
    assert patched["status"] == {"attached": True}
    assert "annotations" not in patched["metadata"], "a status leaves the metadata as they are"
    read = cluster.get("volumeattachments", "one/status")
    assert read["status"] == {"attached": True}
    read["status"] = {
        "attached": False,
        "attachError": {"message": "it failed"},
        "attachmentMetadata": {"device": "/dev/x"},
    }
    replaced = cluster.replace("volumeattachments", "one/status", read)
    assert replaced["status"]["attachError"] == {"message": "it failed", "time": None}
    assert replaced["status"]["attachmentMetadata"] == {"device": "/dev/x"}
    assert replaced["spec"] == attachment("one")["spec"]


def test_csi_inline_volumes_should_support_csi_volume_source_in_pod_api(cluster: Cluster) -> None:
    driver = {"metadata": {"name": "inline-driver"}, "spec": {"volumeLifecycleModes": ["Ephemeral"]}}
    assert cluster.make("csidrivers", driver)["spec"]["volumeLifecycleModes"] == ["Ephemeral"]
    volume = {"name": "v", "csi": {"driver": "e2e.example.com", "readOnly": True, "volumeAttributes": {"a": "b"}}}
    made = cluster.make("pods", pod("inline", volumes=[volume], schedulerName="none"))
    assert made["spec"]["volumes"][0]["csi"] == volume["csi"]
    assert [each["metadata"]["name"] for each in cluster.all("pods")] == ["inline"]
    patched = cluster.patch("pods", "inline", {"metadata": {"labels": {"a": "patched"}}}, STRATEGIC)
    assert patched["spec"]["volumes"][0] == made["spec"]["volumes"][0]
    patched["metadata"]["labels"]["b"] = "updated"
    assert cluster.replace("pods", "inline", patched)["metadata"]["labels"]["b"] == "updated"
    cluster.delete("pods", "inline")
    cluster.until(lambda: cluster.find("pods", "inline") is None)
    cluster.delete("csidrivers", "inline-driver")


def test_empty_dir_wrapper_volumes_should_not_conflict(cluster: Cluster) -> None:
    for kind in ("secrets", "configmaps"):
        cluster.make(kind, {"metadata": {"name": "wrapped"}, "data": {"data-1": "dmFsdWUK"}})
    volumes = [
        {"name": "secret-volume", "secret": {"secretName": "wrapped"}},
        {"name": "configmap-volume", "configMap": {"name": "wrapped"}},
    ]
    mounts = [{"name": each["name"], "mountPath": f"/etc/{each['name']}", "readOnly": True} for each in volumes]
    cluster.make("pods", pod("wrapped", container(volumeMounts=mounts), volumes=volumes))
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "wrapped")))


def test_empty_dir_wrapper_volumes_should_not_cause_race_condition_when_used_for_configmaps(cluster: Cluster) -> None:
    """Five pods of one controller run on one node, each with fifty volumes that contain ConfigMaps."""
    names = [f"racey-configmap-{number}" for number in range(50)]
    for name in names:
        cluster.make("configmaps", {"metadata": {"name": name}, "data": {"data-1": "value-1"}})
    volumes: list[Any] = [
        {"name": name, "configMap": {"name": name, "items": [{"key": "data-1", "path": "data-1"}]}} for name in names
    ]
    mounts = [{"name": name, "mountPath": f"/etc/{name}"} for name in names]
    affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}
    one = pod("racey", container("sleep 10000", volumeMounts=mounts), volumes=volumes, labels={"name": "racey"})
    one["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    template = {"metadata": {"labels": {"name": "racey"}}, "spec": one["spec"]}
    spec = {"replicas": 5, "selector": {"name": "racey"}, "template": template}
    cluster.make("replicationcontrollers", {"metadata": {"name": "racey"}, "spec": spec})
    cluster.until(lambda: len(cluster.ready("name=racey")) == 5)
    assert {each["spec"]["nodeName"] for each in cluster.pods("name=racey")} == {"node-1"}


def storage(cluster: Cluster, provisioner: str) -> None:
    """Return a StorageClass that binds volumes when the first pod uses the claim, and a claim of this StorageClass."""
    fields = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.make("storageclasses", {"metadata": {"name": "late"}, **fields})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "late"}
    cluster.make("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": spec})


def local(name: str, size: str, node: str = "", **more: Any) -> Thing:
    """Return a PersistentVolume, optionally one that is accessible only from one node."""
    spec: Thing = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late", **more}
    spec["hostPath"] = {"path": f"/volumes/{name}"}  # no driver attaches it, so the pod does not wait for one
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name}, "spec": spec}


USES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def test_a_waiting_claim_is_bound_on_the_node_of_its_pod(cluster: Cluster) -> None:
    storage(cluster, "kubernetes.io/no-provisioner")
    cluster.make("pods", pod("user", volumes=USES))
    cluster.until(lambda: any(each[1] == "FailedScheduling" for each in cluster.told.events))
    told = next(each[2] for each in cluster.told.events if each[1] == "FailedScheduling")
    assert told.startswith("0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.")
    cluster.make("persistentvolumes", local("large", "9Gi", "node-1"))
    cluster.make("persistentvolumes", local("small", "2Gi", "node-2"))
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "user")))
    node = cluster.get("pods", "user")["spec"]["nodeName"]
    claim = cluster.get("persistentvolumeclaims", "data")
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["volumeName"] == {"node-1": "large", "node-2": "small"}[node]


def test_a_waiting_claim_is_provisioned_on_the_node_of_its_pod(cluster: Cluster) -> None:
    storage(cluster, "ext.example.com/p")
    cluster.make("pods", pod("user", volumes=USES))
    selected = "volume.kubernetes.io/selected-node"
    cluster.until(lambda: selected in cluster.get("persistentvolumeclaims", "data")["metadata"].get("annotations", {}))
    claim = cluster.get("persistentvolumeclaims", "data")
    node = claim["metadata"]["annotations"][selected]
    cluster.until(lambda: any(each[1] == "ExternalProvisioning" for each in cluster.told.events))
    assert "nodeName" not in cluster.get("pods", "user")["spec"]
    reference = {"namespace": "a", "name": "data", "uid": claim["metadata"]["uid"]}
    cluster.make("persistentvolumes", local("made", "1Gi", node, claimRef=reference))
    cluster.until(lambda: cluster.is_ready(cluster.get("pods", "user")))
    assert cluster.get("pods", "user")["spec"]["nodeName"] == node

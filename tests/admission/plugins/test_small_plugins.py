"""Tests of the small admission plugins, each with single writes."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from ctrlmgr.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from ctrlmgr.admission.plugins.pod_priority import Priority
from ctrlmgr.admission.plugins.pod_runtime_class import RuntimeClass
from ctrlmgr.admission.plugins.pod_topology_labels import PodTopologyLabels
from ctrlmgr.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from ctrlmgr.admission.plugins.taint_nodes_by_condition import NOT_READY, TaintNodesByCondition
from ctrlmgr.api.object import Object
from ctrlmgr.errors import Forbidden, NamespaceTerminating, NotFound, StatusDetails
from tests.admission.stage import Write
from tests.kinds.stage import Objects


def namespace(name: str = "default", phase: str = "Active") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": phase}}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_protected_namespaces_cannot_be_deleted(name: str) -> None:
    with pytest.raises(Forbidden) as refused:
        Write("v1/namespaces", None, namespace(name)).admit(NamespaceLifecycle())
    assert str(refused.value) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert refused.value.details == StatusDetails(name=name, kind="namespaces")


def test_other_namespaces_can_be_deleted() -> None:
    assert Write("v1/namespaces", None, namespace("kube-node-lease")).admit(NamespaceLifecycle()) == {}


def test_a_write_depends_on_its_namespace() -> None:
    write = Write("v1/configmaps", {}, None, {**namespace(), "metadata": {"name": "default", "resourceVersion": "7"}})
    write.admit(NamespaceLifecycle())
    assert write.attributes.within == 7


def test_nothing_is_created_in_a_terminating_namespace() -> None:
    with pytest.raises(NotFound):
        Write("v1/configmaps", {}).admit(NamespaceLifecycle())
    with pytest.raises(NamespaceTerminating):
        Write("v1/configmaps", {}, None, namespace(phase="Terminating")).admit(NamespaceLifecycle())
    Write("v1/configmaps", {}, {}, namespace(phase="Terminating")).admit(NamespaceLifecycle())
    Write("v1/configmaps", None, {}).admit(NamespaceLifecycle())


def test_a_new_node_is_tainted_as_not_ready_once() -> None:
    other = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    for given, taints in ([], [NOT_READY]), ([other], [other, NOT_READY]), ([NOT_READY], [NOT_READY]):
        made = Write("v1/nodes", {"spec": {"taints": given}}).admit(TaintNodesByCondition())
        assert made["spec"]["taints"] == taints


def test_claims_and_volumes_get_a_protection_finalizer() -> None:
    made = Write("v1/persistentvolumeclaims", {"metadata": {"finalizers": ["a/b"]}})
    assert made.admit(StorageObjectInUseProtection())["metadata"]["finalizers"] == [
        "a/b",
        "kubernetes.io/pvc-protection",
    ]


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "other": "x"}},
}


def test_bindings_and_pods_on_a_node_get_its_topology_labels() -> None:
    pod = Write("v1/pods", {"spec": {"nodeName": "n"}}, None, NODE).admit(PodTopologyLabels())
    target = {"kind": "Node", "name": "n"}
    binding = {"metadata": {"labels": {"topology.kubernetes.io/zone": "mine"}}, "target": target}
    bound = Write("v1/pods", binding, None, NODE, subresource="binding").admit(PodTopologyLabels())
    for made in (pod, bound):
        assert made["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    unnamed = Write("v1/pods", {"metadata": {}, "target": {"name": "n"}}, None, NODE, subresource="binding")
    assert "labels" not in unnamed.admit(PodTopologyLabels())["metadata"]
    missing = Write("v1/pods", {"spec": {"nodeName": "m"}}, None, NODE).admit(PodTopologyLabels())
    assert "labels" not in missing["metadata"]


def priority_class(name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **rest}


def test_a_second_default_priority_class_is_refused() -> None:
    path, there = "scheduling.k8s.io/v1/priorityclasses", priority_class("a", value=1, globalDefault=True)
    with pytest.raises(Forbidden) as refused:
        Write(path, priority_class("b", value=2, globalDefault=True), None, there).admit(Priority())
    assert "PriorityClass a is already marked as default. Only one default can exist" in str(refused.value)
    Write(path, there, there, there).admit(Priority())


def test_the_default_priority_class_follows_changes_of_classes() -> None:
    plugin, cluster = Priority(), Objects()
    low = Object.from_dict(priority_class("low", value=1, globalDefault=True))
    high = Object.from_dict(priority_class("high", value=9, globalDefault=True))
    given = []
    for classes in ([], [high], [high, low], [low], []):
        cluster.put(*classes)
        write = Write("v1/pods", {"spec": {}})
        write.attributes.view = cluster
        given.append(write.admit(plugin)["spec"]["priority"])
    assert given == [0, 9, 1, 1, 0]


def test_a_pod_gets_the_priority_of_its_class() -> None:
    high = priority_class("high", value=9, preemptionPolicy="Never")
    made = Write("v1/pods", {"spec": {"priorityClassName": "high"}}, None, high).admit(Priority())
    assert made["spec"] == {"priorityClassName": "high", "priority": 9, "preemptionPolicy": "Never"}
    with pytest.raises(Forbidden, match="no PriorityClass with name low was found"):
        Write("v1/pods", {"spec": {"priorityClassName": "low"}}).admit(Priority())


def runtime_class(**rest: Any) -> dict[str, Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "h", **rest}


def test_a_runtime_class_adds_overhead_and_scheduling() -> None:
    scheduling = {"nodeSelector": {"rt": "h"}, "tolerations": [{"key": "rt", "operator": "Exists"}]}
    found = runtime_class(overhead={"podFixed": {"cpu": "100m"}}, scheduling=scheduling)
    given = {"runtimeClassName": "r", "nodeSelector": {"a": "b"}}
    made = Write("v1/pods", {"spec": given}, None, found).admit(RuntimeClass())["spec"]
    assert made["overhead"] == {"cpu": "100m"}
    assert made["nodeSelector"] == {"a": "b", "rt": "h"}
    assert made["tolerations"] == scheduling["tolerations"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"runtimeClassName": "q"}, 'pod rejected: RuntimeClass "q" not found'),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ({"runtimeClassName": "r", "overhead": {"cpu": "1"}}, "doesn't match RuntimeClass's defined Overhead"),
        (
            {"runtimeClassName": "r", "nodeSelector": {"rt": "x"}},
            "conflict: runtimeClass.scheduling.nodeSelector[rt] = h; pod.spec.nodeSelector[rt] = x",
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_refused(spec: dict[str, Any], problem: str) -> None:
    found = runtime_class(overhead={"podFixed": {"cpu": "100m"}}, scheduling={"nodeSelector": {"rt": "h"}})
    with pytest.raises(Forbidden) as refused:
        Write("v1/pods", {"spec": spec}, None, found).admit(RuntimeClass())
    assert problem in str(refused.value)


def test_a_claim_can_grow_only_if_its_class_allows() -> None:
    def claim(size: str) -> dict[str, Any]:
        spec = {"storageClassName": "s", "resources": {"requests": {"storage": size}}}
        return {"spec": spec, "status": {"phase": "Bound"}}

    for allowed in (True, False):
        metadata = {"name": "s"}
        fields = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "p"}
        write = Write(
            "v1/persistentvolumeclaims", claim("2Gi"), claim("1Gi"), {**fields, "allowVolumeExpansion": allowed}
        )
        if allowed:
            write.admit(PersistentVolumeClaimResize())
            continue
        with pytest.raises(Forbidden, match="must support resize"):
            write.admit(PersistentVolumeClaimResize())

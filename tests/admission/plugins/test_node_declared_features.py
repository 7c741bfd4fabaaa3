"""Tests that a change which only some nodes support is refused if the pod's node has not declared the feature."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.plugin_registry import PLUGINS
from ctrlmgr.admission.plugins.node_declared_features import NodeDeclaredFeatureValidator
from ctrlmgr.errors import Forbidden
from tests.admission.stage import Write
from tests.engine.stage import Response, Stage, builtin_kinds

PODS = "/api/v1/namespaces/shop/pods"
MERGE = "application/strategic-merge-patch+json"
LIMITS = {"cpu": "1", "memory": "1Mi"}


def placed(*declared: str, guaranteed: bool = True, node: str = "n") -> Stage:
    """Return an admission stage with a pod on a node that has declared some features."""
    stage = Stage()
    stage.namespace("shop")
    status = {"allocatable": {"cpu": "8", "memory": "8Gi"}, "declaredFeatures": list(declared)}
    stage.send("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
    resources = {"limits": LIMITS} if guaranteed else {"requests": LIMITS}
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": resources}
    spec: dict[str, Any] = {"containers": [container], "nodeName": node}
    assert stage.send("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}).code == 201
    return stage


def resized(stage: Stage) -> Response:
    resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    return stage.send("PATCH", f"{PODS}/p/resize", body, media_type=MERGE)


def test_cpus_of_a_guaranteed_pod_need_no_feature() -> None:
    assert resized(placed()).code == 200


def pod(generation: int, **resources: Any) -> dict[str, Any]:
    spec = {"nodeName": "n", "containers": [], **resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generation": generation}, "spec": spec}


@pytest.mark.parametrize(
    ("old", "new", "is_needed"),
    [
        ({}, {"resources": {"requests": {"cpu": "1"}}}, True),
        ({"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "2"}}}, True),
        ({"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1000m"}}}, False),
        ({}, {}, False),
    ],
)
def test_pod_level_resources_need_a_feature(old: dict[str, Any], new: dict[str, Any], is_needed: bool) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    write = Write("v1/pods", pod(2, **new), pod(1, **old), node, subresource="resize")
    if not is_needed:
        write.admit(NodeDeclaredFeatureValidator())
        return
    with pytest.raises(Forbidden, match="requires features InPlacePodLevelResourcesVerticalScaling which are not"):
        write.admit(NodeDeclaredFeatureValidator())


@pytest.mark.parametrize(
    ("policy", "cpu", "is_needed"),
    [({}, "2", True), ({}, "1", False), ({"restartPolicy": "Always"}, "2", False)],
)
def test_resources_of_init_containers_need_a_feature(policy: dict[str, Any], cpu: str, is_needed: bool) -> None:
    def asking(amount: str) -> list[dict[str, Any]]:
        return [{"name": "i", **policy, "resources": {"requests": {"cpu": amount}}}]

    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    new, old = pod(2, initContainers=asking(cpu)), pod(1, initContainers=asking("1"))
    write = Write("v1/pods", new, old, node, subresource="resize")
    if not is_needed:
        write.admit(NodeDeclaredFeatureValidator())
        return
    with pytest.raises(Forbidden, match="requires features InPlacePodVerticalScalingInitContainers which are not"):
        write.admit(NodeDeclaredFeatureValidator())


def test_a_missing_node_is_no_error() -> None:
    refused = resized(placed(node="gone"))
    assert (refused.code, refused.message) == (403, 'pods "p" is forbidden: node "gone" not found')


@pytest.mark.parametrize(
    ("stage", "subresource", "body"),
    [
        pytest.param(placed(guaranteed=False), "/resize", None, id="a pod of another class"),
        pytest.param(placed(), "", {"metadata": {"labels": {"a": "b"}}}, id="a change that is none of the spec"),
        pytest.param(placed(), "", {"spec": {"activeDeadlineSeconds": 9}}, id="a change that every node knows"),
        pytest.param(placed(node=""), "/resize", None, id="a pod that is on no node"),
    ],
)
def test_no_feature_is_required_by(stage: Stage, subresource: str, body: dict[str, Any] | None) -> None:
    if body is None:
        resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
        body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    assert stage.send("PATCH", f"{PODS}/p{subresource}", body, media_type=MERGE).code == 200


def test_plugins_without_effect_handle_kinds_that_are_not_served() -> None:
    """PodGroups and the fields for JobValidation are behind feature gates that are off in
    Kubernetes 1.36.
    """
    idle = {entry.name for entry in PLUGINS if entry.make is None}
    policies = {"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}
    assert idle - policies == {
        "PodGroupWorkloadExists",
        "JobValidation",
    }
    served = {kind.resource.plural for kind in builtin_kinds()}
    assert not served & {"clustertrustbundles", "podgroups", "workloads"}

"""Tests that writes of unchanged objects give the same result as writes of new objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.patch import merge_patch
from tests.controllers.customresourcedefinitions.defined import WIDGETS, DefinedStage, definition, version
from tests.engine.stage import Stage

MERGE = "application/merge-patch+json"
ODD = '<&>\u2028é\U0001f600\\"\t'
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": ODD.strip(),
                "args": [ODD],
                "resources": {"limits": {"cpu": "1500m", "memory": "1024Mi"}},
            }
        ]
    },
}
SELECTOR = {"matchLabels": {"app": "a"}}
OBJECTS: Mapping[str, dict[str, Any]] = {
    "/api/v1/namespaces/shop/pods": {"spec": TEMPLATE["spec"]},
    "/apis/apps/v1/namespaces/shop/deployments": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "/api/v1/namespaces/shop/services": {"spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}},
    "/api/v1/nodes": {"spec": {"podCIDR": "10.0.0.0/24"}},
    "/apis/autoscaling/v1/namespaces/shop/horizontalpodautoscalers": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}
    },
    WIDGETS: {"spec": {"color": ODD}},
}
MANAGED = {
    "manager": "<&>é",
    "operation": "Update",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:z": {}, "f:a": {'k:{"b":1,"a":"<"}': {}}},
}
STATUS = {"conditions": [{"type": "Ready", "status": "True", "message": ODD, "lastTransitionTime": None}]}
PATCHES: list[dict[str, Any]] = [
    {"status": STATUS},
    {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    {"metadata": {"labels": {"z": "1", "b": "2"}, "annotations": {"a/b": ODD}}},
    {"metadata": {"labels": {"z": None}}, "status": STATUS},
    {"metadata": {"managedFields": [MANAGED]}},
    {"metadata": {"finalizers": ["a.b/c"]}, "status": {"conditions": None}},
    {"metadata": {"managedFields": [{}]}},
    {"status": STATUS},
]


PODS = "/api/v1/namespaces/shop/pods"


@pytest.fixture
def stage() -> DefinedStage:
    stage = DefinedStage()
    stage.define(definition(versions=[version(subresources={"status": {}})]))
    return stage


def created(stage: Stage, path: str, **metadata: Any) -> Kind:
    """Create an object; return the object's kind."""
    kind = kind_at(stage, path)
    body = {"kind": kind.gvk.kind, "apiVersion": kind.gvk.api_version, "metadata": {"name": "a", **metadata}}
    assert stage.send("POST", path, {**body, **OBJECTS[path]}).code == 201
    return kind


def kind_at(stage: Stage, path: str) -> Kind:
    root, *parts = path.strip("/").split("/")
    kind = stage.kinds.find(parts.pop(0) if root == "apis" else "", parts[0], parts[-1])
    assert kind is not None
    return kind


def stored(stage: Stage, kind: Kind) -> Object:
    """Return the stored form of the only object of a kind."""
    return next(each.object for each in reversed(stage.log.events_after(0)) if each.object.resource == kind.storage)


@pytest.mark.parametrize("subresource", ["", "/status"])
@pytest.mark.parametrize("path", OBJECTS)
def test_an_unchanged_write_is_stored_like_a_full_one(stage: DefinedStage, path: str, subresource: str) -> None:
    kind = created(stage, path)
    codec = (stage.kinds.stored(kind.storage) or kind).codec
    for index, patch in enumerate(PATCHES):
        before = stored(stage, kind)
        query = {"fieldManager": f"manager-{index % 3}"}
        assert stage.send("PATCH", f"{path}/a{subresource}", patch, media_type=MERGE, query=query).code == 200
        obj = stored(stage, kind)
        fields, old = msgspec.json.decode(obj.body), msgspec.json.decode(before.body)
        assert codec.encode(fields) == obj.body
        assert obj.metadata == Object(obj.resource, obj.body).metadata
        assert json.dumps(fields["spec"]) == json.dumps(old["spec"])
        kind.strategy.default(old)  # a change of this value would also change the parts that the old object shares
        assert old == msgspec.json.decode(before.body)


@pytest.mark.parametrize("path", OBJECTS)
@pytest.mark.parametrize("patch", [*PATCHES, {}, {"spec": {"bogus": 1}}, {"metadata": {"bogus": 1}, "bogus": []}])
def test_an_unchanged_object_is_visible_like_a_decoded_one(
    stage: DefinedStage, path: str, patch: dict[str, Any]
) -> None:
    codec = created(stage, path, labels={"z": "1", "b": "2"}).codec
    live = stage.send("GET", f"{path}/a").body
    anew = codec.read(msgspec.json.decode(msgspec.json.encode(merge_patch(live, patch))))
    seen = codec.read(merge_patch(live, patch), live)
    assert (json.dumps(seen.fields), seen.problems) == (json.dumps(anew.fields), anew.problems)


def test_changing_an_owned_field_keeps_the_entry_order(stage: DefinedStage) -> None:
    kind = created(stage, PODS)
    for ready in ("True", "False"):
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "podIPs": [{"ip": "10.0.0.1"}],
        }
        stage.send("PATCH", f"{PODS}/a/status", {"status": status}, media_type=MERGE, query={"fieldManager": "kubelet"})
        stage.clock.step(1)
        [entry] = [each for each in _managed(stage, kind) if each["manager"] == "kubelet"]
        assert json.dumps(entry["fieldsV1"]) == json.dumps(field_set.in_order(entry["fieldsV1"]))
    assert entry["time"] == "2026-01-01T00:00:01Z"
    stage.send("PATCH", f"{PODS}/a/status", {"status": {"podIPs": None, "podIP": None}}, media_type=MERGE)
    [entry] = [each for each in _managed(stage, kind) if each["manager"] == "kubelet"]
    assert list(entry["fieldsV1"]["f:status"]) == ["f:conditions", "f:phase"]


def _managed(stage: Stage, kind: Kind) -> list[dict[str, Any]]:
    managed: list[dict[str, Any]] = msgspec.json.decode(stored(stage, kind).body)["metadata"]["managedFields"]
    return managed

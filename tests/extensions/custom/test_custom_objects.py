"""Tests of custom objects in the engine, which treats custom objects like objects of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.customresourcedefinitions.defined import (
    GROUP,
    NAME,
    SCHEMA,
    WIDGETS,
    DefinedStage,
    definition,
    version,
    widget,
)
from tests.controllers.worked_stage import MERGE

APPLY = "application/apply-patch+yaml"


@pytest.fixture
def stage() -> DefinedStage:
    return DefinedStage()


def test_an_object_is_pruned_and_defaulted(stage: DefinedStage) -> None:
    stage.define()
    created = stage.send("POST", WIDGETS, widget(spec={"unknown": 1}, other=True), query={"fieldValidation": "Warn"})
    assert created.body["spec"] == {"size": 3}
    assert "other" not in created.body
    assert created.warnings == ('unknown field "other"', 'unknown field "spec.unknown"')
    assert created.body["metadata"]["generation"] == 1


def test_an_object_that_violates_its_schema_is_refused(stage: DefinedStage) -> None:
    stage.define()
    refused = stage.send("POST", WIDGETS, widget(spec={"size": 0}))
    assert refused.code == 422
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec.size"]
    strict = stage.send("POST", WIDGETS, widget(spec={"b": 0}), query={"fieldValidation": "Strict"})
    assert strict.code == 400
    assert 'unknown field "spec.b"' in strict.message


def test_an_object_of_another_uid_is_reported_by_its_key(stage: DefinedStage) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget(spec={}))
    named = {
        "name": "a",
        "uid": "other",
        "resourceVersion": stage.send("GET", f"{WIDGETS}/a").body["metadata"]["resourceVersion"],
    }
    refused = stage.send("PUT", f"{WIDGETS}/a", {**widget(spec={}), "metadata": named})
    assert refused.code == 409
    assert "Code: 4, Key: /registry/example.com/widgets/shop/a, ResourceVersion: 0" in refused.message


def test_a_status_subresource_is_written_separately(stage: DefinedStage) -> None:
    stage.define(definition(versions=[version(subresources={"status": {}})]))
    created = stage.send("POST", WIDGETS, widget(spec={}, status={"phase": "New"}))
    assert "status" not in created.body
    changed = stage.send("PATCH", f"{WIDGETS}/a/status", {"spec": {"size": 9}, "status": {"n": 1}}, media_type=MERGE)
    assert changed.body["status"] == {"n": 1}
    assert changed.body["spec"] == {"size": 3}
    assert changed.body["metadata"]["generation"] == 1
    changed = stage.send("PATCH", f"{WIDGETS}/a", {"spec": {"size": 9}, "status": {"n": 2}}, media_type=MERGE)
    assert changed.body["status"] == {"n": 1}
    assert changed.body["metadata"]["generation"] == 2


def test_a_scale_reads_the_paths_of_the_definition(stage: DefinedStage) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.now", "labelSelectorPath": ".spec.color"}
    stage.define(definition(versions=[version(subresources={"scale": paths})]))
    stage.send("POST", WIDGETS, widget(spec={"color": "a=b"}, status={"now": 2}))
    scale = stage.send("GET", f"{WIDGETS}/a/scale").body
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 3},
        {"replicas": 2, "selector": "a=b"},
    )
    stage.send("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 7}}, media_type=MERGE)
    assert stage.send("GET", f"{WIDGETS}/a").body["spec"]["size"] == 7


def test_a_stored_object_is_read_with_the_current_schema(stage: DefinedStage) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget(spec={"color": "red"}))
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}
    schema["properties"]["spec"]["properties"] = {"shape": {"type": "string", "default": "round"}}
    stage.redefine({"spec": {"versions": [version(schema={"openAPIV3Schema": schema})]}})
    assert stage.send("GET", f"{WIDGETS}/a").body["spec"] == {"shape": "round"}
    [listed] = stage.send("GET", WIDGETS).body["items"]
    assert listed["spec"] == {"shape": "round"}


def test_an_object_is_returned_in_every_version(stage: DefinedStage) -> None:
    v2 = {**SCHEMA, "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    stage.define(definition(versions=[version(), version("v2", storage=False, schema={"openAPIV3Schema": v2})]))
    stage.send("POST", WIDGETS, widget(spec={"color": "red"}))
    there = stage.send("GET", WIDGETS.replace("/v1/", "/v2/") + "/a").body
    assert (there["apiVersion"], there["spec"]) == (f"{GROUP}/v2", {"size": 3})
    created = stage.send("POST", WIDGETS.replace("/v1/", "/v2/"), widget("b", f"{GROUP}/v2", spec={"size": 5}))
    assert created.body["apiVersion"] == f"{GROUP}/v2"
    assert stage.send("GET", f"{WIDGETS}/b").body["spec"] == {"size": 5}


def test_an_object_stored_in_a_removed_version_cannot_be_read_until_it_returns(stage: DefinedStage) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget())
    stage.redefine({"spec": {"versions": [version(storage=False), version("v2")]}})
    stage.send(
        "PATCH",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}/status",
        {"status": {"storedVersions": ["v2"]}},
        media_type=MERGE,
    )
    stage.redefine({"spec": {"versions": [version("v2")]}})
    refused = stage.send("GET", WIDGETS.replace("/v1/", "/v2/") + "/a")
    assert (refused.code, refused.message) == (500, f"request to convert CR from an invalid group/version: {GROUP}/v1")
    stage.redefine({"spec": {"versions": [version(storage=False), version("v2")]}})
    assert stage.send("GET", WIDGETS.replace("/v1/", "/v2/") + "/a").code == 200


def test_objects_are_selected_by_the_definitions_selectable_fields(stage: DefinedStage) -> None:
    stage.define(definition(versions=[version(selectableFields=[{"jsonPath": ".spec.color"}])]))
    for name, color in (("a", "red"), ("b", "blue")):
        stage.send("POST", WIDGETS, widget(name, spec={"color": color}))
    listed = stage.send("GET", WIDGETS, query={"fieldSelector": "spec.color=red"}).body["items"]
    assert [each["metadata"]["name"] for each in listed] == ["a"]
    refused = stage.send("GET", WIDGETS, query={"fieldSelector": "spec.size=3"})
    assert (refused.code, refused.message) == (400, "field label not supported: spec.size")


def test_apply_merges_lists_by_the_keys_of_the_schema(stage: DefinedStage) -> None:
    item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}
    listed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"list": listed}}}}
    stage.define(definition(versions=[version(schema={"openAPIV3Schema": schema})]))
    for manager, key in (("one", "a"), ("two", "b")):
        applied = stage.send(
            "PATCH",
            f"{WIDGETS}/a",
            widget(spec={"list": [{"k": key, "v": manager}]}),
            query={"fieldManager": manager},
            media_type="application/apply-patch+yaml",
        )
    assert applied.body["spec"]["list"] == [{"k": "a", "v": "one"}, {"k": "b", "v": "two"}]
    assert [entry["manager"] for entry in applied.body["metadata"]["managedFields"]] == ["one", "two"]


def test_a_merge_patch_stores_no_nulls(stage: DefinedStage) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}
    stage.define(definition(versions=[version(schema=schema)]))
    stage.send("POST", WIDGETS, widget(spec={"b": 1}))
    patch = {"spec": {"a": {"gone": None, "kept": [{"gone": None}]}, "b": None}}
    changed = stage.send("PATCH", f"{WIDGETS}/a", patch, media_type=MERGE)
    assert changed.body["spec"] == {"a": {"kept": [{}]}}


@pytest.mark.parametrize("value", ["text", 3, True, ["text"], 0.5])
def test_another_type_instead_of_an_object_is_refused(stage: DefinedStage, value: Any) -> None:
    stage.define()
    stage.send("POST", WIDGETS, widget(spec={"size": 1}))
    refused = stage.send("PATCH", f"{WIDGETS}/a", {"spec": value}, media_type=MERGE)
    assert (refused.code, [cause["field"] for cause in refused.body["details"]["causes"]]) == (422, ["spec"])


def test_metadata_of_an_embedded_object_is_owned_normally(stage: DefinedStage) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"template": embedded}}
    stage.define(
        definition(versions=[version(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})])
    )
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"x": {"y": 1}}}
    body, query = widget("e", spec={"template": template}), {"fieldManager": "m"}
    applied = stage.send("PATCH", f"{WIDGETS}/e", body, media_type=APPLY, query=query)
    (entry,) = applied.body["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"]["f:template"] == {
        "f:apiVersion": {},
        "f:kind": {},
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {".": {}, "f:x": {".": {}, "f:y": {}}},
    }
    template["metadata"] = {"label": "a"}
    refused = stage.send("PATCH", f"{WIDGETS}/e", body, media_type=APPLY, query=query)
    assert refused.message.endswith(": .spec.template.metadata.label: field not declared in schema")

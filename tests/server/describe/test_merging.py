"""Tests of the merge of OpenAPI v2 documents: conflicts, references, group version kinds, and removed paths."""

from __future__ import annotations

import copy
from typing import Any

from ctrlmgr.server.describe.openapi.merging import merged, without_other_paths

GVK = "x-kubernetes-group-version-kind"
FIRST, SECOND = ({"group": "a", "version": version, "kind": "K"} for version in ("v1", "v2"))


def document(definitions: Any, path: str = "/a", parameters: Any = None, **item: Any) -> dict[str, Any]:
    return {"paths": {path: item}, "definitions": definitions, "parameters": parameters or {}}


def get(reference: str) -> dict[str, Any]:
    return {"responses": {"200": {"schema": {"$ref": reference}}}}


def test_a_conflicting_definition_is_renamed_with_its_references() -> None:
    own = document({"T": {"type": "string"}})
    schema = {"properties": {"properties": {"$ref": "#/definitions/T"}, "default": {"$ref": "#/definitions/T"}}}
    other = document({"T": {"type": "object"}, "U": schema}, "/b", get=get("#/definitions/T"))
    before = copy.deepcopy((own, other))
    found = merged(own, [other])
    renamed = {"$ref": "#/definitions/T_v2"}
    assert found["definitions"] == {
        "T": {"type": "string"},
        "T_v2": {"type": "object"},
        "U": {"properties": {"properties": renamed, "default": renamed}},
    }
    assert found["paths"] == {"/a": {}, "/b": {"get": get("#/definitions/T_v2")}}
    assert (own, other) == before


def test_references_in_data_are_kept() -> None:
    data = {"default": {"$ref": "#/definitions/T"}, "x-data": {"$ref": "#/definitions/T"}}
    other = document({"T": {"type": "object"}, "U": data}, "/b")
    assert merged(document({"T": {}}), [other])["definitions"]["U"] == data


def test_a_renamed_definition_is_used_again() -> None:
    others = [document({"T": {"type": "object"}}, path) for path in ("/b", "/c")]
    others.append(document({"T": {"type": "integer"}, "T_v3": {"type": "boolean"}}, "/d"))
    found = merged(document({"T": {}}), others)["definitions"]
    assert found == {
        "T": {},
        "T_v2": {"type": "object"},
        "T_v3": {"type": "boolean"},
        "T_v4": {"type": "integer"},
    }


def test_a_conflicting_parameter_is_renamed_with_its_references() -> None:
    own, reference = document({}, parameters={"p": {"in": "query"}}), {"$ref": "#/parameters/p"}
    other = document({}, "/b", {"p": {"in": "path"}, "q": {"in": "query"}}, get={"parameters": [reference]})
    found = merged(own, [other])
    assert found["parameters"] == {"p": {"in": "query"}, "p_v2": {"in": "path"}, "q": {"in": "query"}}
    assert found["paths"]["/b"] == {"get": {"parameters": [{"$ref": "#/parameters/p_v2"}]}}


def test_equal_definitions_of_several_kinds_are_merged() -> None:
    own = document({"T": {"type": "object", GVK: [SECOND]}, "U": {}})
    other = document({"T": {"type": "object", GVK: [FIRST, SECOND]}, "U": {GVK: [FIRST]}}, "/b")
    found = merged(own, [other])["definitions"]
    assert found == {"T": {"type": "object", GVK: [FIRST, SECOND]}, "U": {GVK: [FIRST]}}


def test_the_first_document_keeps_its_paths() -> None:
    own = document({}, get={"operationId": "own"})
    other = document({"T": {}}, get=get("#/definitions/T"))
    assert merged(own, [other]) == own
    both = {**other, "paths": {**other["paths"], "/b": {"get": {"operationId": "other"}}}}
    found = merged(own, [both])
    assert found["paths"] == {"/a": {"get": {"operationId": "own"}}, "/b": {"get": {"operationId": "other"}}}
    assert found["definitions"] == {}


def test_definitions_of_removed_paths_are_removed() -> None:
    definitions = {
        "Kept": {"items": {"$ref": "#/definitions/Inner"}},
        "Inner": {"properties": {"again": {"$ref": "#/definitions/Kept"}}},
        "Gone": {"allOf": [{"$ref": "#/definitions/Inner"}, {"$ref": "#/definitions/GoneToo"}]},
        "GoneToo": {},
        "Parametrized": {},
        "Unused": {},
    }
    parameters = {"p": {"schema": {"$ref": "#/definitions/Parametrized"}}}
    paths = {
        "/a": {"get": get("#/definitions/Kept"), "parameters": [{"$ref": "#/parameters/p"}]},
        "/b": {"get": get("#/definitions/Gone")},
    }
    whole = {"paths": paths, "definitions": definitions, "parameters": parameters}
    found = without_other_paths(whole, lambda path: path == "/a")
    assert list(found["paths"]) == ["/a"]
    assert set(found["definitions"]) == {"Kept", "Inner", "Parametrized", "Unused"}
    assert found["parameters"] == parameters

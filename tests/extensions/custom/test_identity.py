"""Property tests for any schema: an applied valid object is returned unchanged; pruning and defaulting are idempotent
operations.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

from ctrlmgr.extensions.compiled_schema import Schema
from tests.controllers.customresourcedefinitions.defined import WIDGETS, DefinedStage, definition, version
from tests.extensions.test_properties import OBJECTS, ROOTS, VALUES

APPLY = "application/apply-patch+yaml"
MANAGER = {"fieldManager": "m"}
WHERE = f"{WIDGETS}/a"


def with_default(root: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """Return a schema with a default for one of its fields, if a valid default is found."""
    name = data.draw(st.sampled_from(sorted(root["properties"])))
    default = data.draw(VALUES)
    field = Schema({"type": "object", "properties": {"x": root["properties"][name]}})
    if default is None or field.validate({"x": default}) or field.prune({"x": deepcopy(default)}):
        return root
    return {**root, "properties": {**root["properties"], name: {**root["properties"][name], "default": default}}}


def written(value: Any) -> str:
    """Return a value as JSON, with whole numbers in Go's form, in which 1.0 becomes 1."""
    return json.dumps(value, sort_keys=True).replace(".0", "")


@given(ROOTS, OBJECTS, st.data())
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_an_applied_object_equals_the_read_one(
    root: dict[str, Any], value: dict[str, Any], data: st.DataObject
) -> None:
    spec = with_default(root, data)
    whole = {"type": "object", "properties": {"spec": spec}}
    schema, obj = Schema(whole), {"spec": value}
    unknown, error = schema.read(obj, drop_invalid=True)
    assume(not unknown and error is None and not schema.validate(obj) and not schema.validate_lists(obj))
    stage = DefinedStage()
    made = stage.define(definition(versions=[version(schema={"openAPIV3Schema": whole})]))
    assume(made.code == 201)
    manifest = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, **obj}
    assume(stage.send("POST", WIDGETS, manifest | {"metadata": {"name": "b"}}).code == 201)
    event("applied")
    applied = stage.send("PATCH", WHERE, manifest, query=MANAGER, media_type=APPLY)
    assert applied.code == 201, applied.body
    read = stage.send("GET", WHERE).body
    assert written(read["spec"]) == written(obj["spec"])


@given(ROOTS, OBJECTS, st.data())
def test_pruning_and_defaulting_are_idempotent(
    root: dict[str, Any], value: dict[str, Any], data: st.DataObject
) -> None:
    schema = Schema(with_default(root, data))
    schema.prune(value)
    once = deepcopy(value)
    assert schema.prune(value) == []
    assert value == once
    schema.read(value, drop_invalid=True)
    once = deepcopy(value)
    assert schema.read(value, drop_invalid=True) == ([], None)
    assert value == once

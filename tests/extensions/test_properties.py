"""Property tests with random schemas and random values."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.schema_validation.error_validator import explain
from ctrlmgr.extensions.shaping.list_keys import validate_lists
from ctrlmgr.extensions.shaping.null_removal import drop_nulls
from ctrlmgr.extensions.shaping.pruning_check import compile_clean
from ctrlmgr.extensions.shaping.structural_pruning import prune
from ctrlmgr.extensions.structural import Structural

NAMES = st.sampled_from(["a", "b", "c", "metadata", "kind"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([0.5, 1.0, 2.5, 1e30]), st.text("ab1", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(NAMES, below, max_size=3)),
    max_leaves=8,
)

STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b$", "1"]),
        "format": st.sampled_from(["date", "ipv4", "odd"]),
        "enum": st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=2),
    },
)
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.sampled_from([0, 1, 1.5]),
        "maximum": st.sampled_from([5, 5.5]),
        "exclusiveMaximum": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "format": st.sampled_from(["int32", "double", "float"]),
        "enum": st.lists(st.sampled_from([1, 2, 2.5]), min_size=1, max_size=2),
    },
)
LEAVES = st.one_of(
    STRINGS,
    NUMBERS,
    st.just({"type": "boolean"}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
    st.just({"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
)


def _with_marks(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda schema, nullable, others: {**schema, **({"nullable": True} if nullable else {}), **others},
        schemas,
        st.booleans(),
        st.one_of(
            st.just({}),
            st.builds(lambda junctor, each: {junctor: each}, st.sampled_from(["anyOf", "oneOf", "allOf"]), _JUNCTIONS),
            st.builds(
                lambda each: {"not": each}, st.sampled_from([{"minimum": 3}, {"required": ["a"]}, {"maxLength": 1}])
            ),
        ),
    )


_JUNCTIONS = st.lists(
    st.sampled_from([{"minimum": 3}, {"maximum": 1}, {"required": ["a"]}, {"minLength": 2}, {"maxItems": 1}]),
    min_size=1,
    max_size=2,
)


def _composite(below: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, below, max_size=3)},
        optional={"required": st.lists(NAMES, max_size=1), "maxProperties": st.integers(0, 2)},
    )
    maps = st.fixed_dictionaries(
        {"type": st.just("object"), "additionalProperties": st.one_of(below, st.booleans())},
        optional={"minProperties": st.integers(0, 2)},
    )
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": below},
        optional={"maxItems": st.integers(0, 2), "x-kubernetes-list-type": st.sampled_from(["set", "atomic"])},
    )
    return st.one_of(objects, maps, lists)


SCHEMAS = st.recursive(_with_marks(LEAVES), lambda below: _with_marks(_composite(below)), max_leaves=8)
ROOTS = st.builds(
    lambda fields: {"type": "object", "properties": fields}, st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=3)
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(SCHEMAS, VALUES)
@settings(max_examples=400)
def test_the_fast_validation_equals_the_exact_one(raw: dict[str, Any], value: Any) -> None:
    schema = Schema(raw)
    assert (schema.validate(value) == []) == explain(schema.node, value).is_valid


@given(ROOTS, OBJECTS)
@settings(max_examples=300)
def test_a_clean_value_is_not_changed(raw: dict[str, Any], value: dict[str, Any]) -> None:
    schema = Structural(raw)
    shaped = deepcopy(value)
    gone = prune(shaped, schema)
    drop_nulls(shaped, schema)
    if compile_clean(schema)(value):
        assert (shaped, gone) == (value, [])
    assert compile_clean(schema)(shaped)


@given(ROOTS, OBJECTS)
def test_reading_is_idempotent(raw: dict[str, Any], value: dict[str, Any]) -> None:
    schema = Schema(raw)
    schema.read(value, drop_invalid=True)
    again = deepcopy(value)
    assert schema.read(again, drop_invalid=True) == ([], None)
    assert again == value


@given(ROOTS, OBJECTS)
def test_pruning_does_not_depend_on_the_order_of_fields(raw: dict[str, Any], value: dict[str, Any]) -> None:
    turned = {key: deepcopy(value[key]) for key in reversed(value)}
    schema = Schema(raw)
    assert schema.prune(turned) == schema.prune(value)
    assert turned == value


@given(ROOTS, OBJECTS)
def test_an_unchanged_value_of_declared_fields_is_valid_on_an_update(
    raw: dict[str, Any], value: dict[str, Any]
) -> None:
    schema = Schema({"type": "object", "properties": {"spec": raw}})
    schema.read(value)
    whole = {"spec": value}
    schema.prune(whole)
    if not any(_is_loose(each) for each in raw["properties"].values()):
        assert schema.validate(whole, old=deepcopy(whole)) == []


def _is_loose(raw: dict[str, Any]) -> bool:
    """Return whether an object may have fields that the schema does not declare."""
    below = [*raw.get("properties", {}).values(), raw.get("items"), raw.get("additionalProperties")]
    return (
        bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        or type(raw.get("additionalProperties")) is bool
        or any(_is_loose(each) for each in below if type(each) is dict)
    )


@given(ROOTS, OBJECTS, st.data())
def test_valid_defaults_produce_no_errors(raw: dict[str, Any], value: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(raw["properties"])))
    default = data.draw(VALUES)
    field = Schema({"type": "object", "properties": {"x": raw["properties"][name]}})
    if default is None or field.validate({"x": default}) != [] or field.prune({"x": deepcopy(default)}):
        return
    properties = {**raw["properties"], name: {**raw["properties"][name], "default": default}}
    schema = Schema({**raw, "properties": properties})
    value.pop(name, None)
    schema.read(value, drop_invalid=True)
    assert not [error for error in schema.validate(value) if error.field.split(".")[0].split("[")[0] == name]


MAPS_AND_SETS = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "x-kubernetes-list-type": "set"},
        "b": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        "c": {"type": "object", "additionalProperties": {"type": "array", "x-kubernetes-list-type": "set"}},
    },
}


@given(OBJECTS)
@settings(max_examples=200)
def test_the_fast_validation_of_lists_equals_the_exact_one(value: dict[str, Any]) -> None:
    schema = Schema(MAPS_AND_SETS)
    assert schema.validate_lists(value) == validate_lists(value, schema.structural)

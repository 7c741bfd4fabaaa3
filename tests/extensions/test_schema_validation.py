"""Tests that invalid values are refused with the same causes as in Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.structural import MISSING

INVALID, TYPE = "FieldValueInvalid", "FieldValueTypeInvalid"

CASES: list[tuple[dict[str, Any], Any, list[tuple[str, str, str]]]] = [
    ({"type": "string"}, 1, [("x", TYPE, 'Invalid value: "integer": x in body must be of type string: "integer"')]),
    ({"type": "string"}, None, [("x", TYPE, 'Invalid value: "null": x in body must be of type string: "null"')]),
    ({"type": "string", "nullable": True}, None, []),
    ({"type": "integer"}, 1.0, []),
    (
        {"type": "integer"},
        1.5,
        [
            ("x", TYPE, 'Invalid value: "number": x in body must be of type integer: "number"'),
            ("<nil>", INVALID, 'Invalid value: "": Checked value must be of type integer (default format) in x'),
        ],
    ),
    (
        {"type": "integer", "format": "int32"},
        2**31,
        [("<nil>", INVALID, 'Invalid value: "": Checked value must be of type integer with format int32 in x')],
    ),
    ({"type": "number"}, 3, []),
    ({"x-kubernetes-int-or-string": True}, "5", []),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        [("x", TYPE, 'Invalid value: "boolean": x in body must be of type integer,string: "boolean"')],
    ),
    (
        {"type": "number", "maximum": 2.5},
        2.75,
        [("x", INVALID, "Invalid value: 2.75: x in body should be less than or equal to 2.5")],
    ),
    ({"type": "number", "maximum": 2.5}, 2, []),
    (
        {"type": "number", "maximum": 2.5},
        3,  # for an integer, the fraction of the limit is dropped
        [("x", INVALID, "Invalid value: 3: x in body should be less than or equal to 2")],
    ),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        [("x", INVALID, "Invalid value: 1: x in body should be greater than 1")],
    ),
    (
        {"type": "integer", "multipleOf": 3},
        4,
        [("x", INVALID, "Invalid value: 4: x in body should be a multiple of 3")],
    ),
    ({"type": "number", "multipleOf": 0.25}, 0.75, []),
    (
        {"type": "string", "minLength": 2},
        "é",
        [("x", INVALID, 'Invalid value: "é": x in body should be at least 2 chars long')],
    ),
    ({"type": "string", "maxLength": 2}, "abc", [("x", "FieldValueTooLong", "Too long: may not be more than 2 bytes")]),
    (
        {"type": "string", "pattern": "^v"},
        "x",
        [("x", INVALID, "Invalid value: \"x\": x in body should match '^v'")],
    ),
    (
        {"type": "string", "format": "date"},
        "x",
        [("x", TYPE, 'Invalid value: "x": x in body must be of type date: "x"')],
    ),
    ({"type": "string", "format": "unknown-one"}, "x", []),
    ({"type": "string", "format": "date"}, [], []),  # with a format, strings and lists are not distinguished
    (
        {"enum": ["a", 1], "x-kubernetes-preserve-unknown-fields": True},
        "b",
        [("x", "FieldValueNotSupported", 'Unsupported value: "b": supported values: "a", "1"')],
    ),
    ({"type": "integer", "enum": [1.0, 2]}, 1, []),
    (
        {"type": "array", "items": {"type": "string"}, "maxItems": 1},
        ["a", 2],
        [
            ("x[1]", TYPE, 'Invalid value: "integer": x[1] in body must be of type string: "integer"'),
            ("x", "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
        ],
    ),
    (
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        [],
        [("x", INVALID, "Invalid value: 0: x in body should have at least 1 items")],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
        {"b": 1},
        [("x.a", "FieldValueRequired", "Required value")],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
        {"a": "1", "b": 2},
        [
            ("x", "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
            ("x.a", TYPE, 'Invalid value: "string": x.a in body must be of type integer: "string"'),
        ],
    ),
    (
        {"type": "object", "additionalProperties": False},
        {"k": 1},
        [("x", INVALID, 'Invalid value: "k": x.k in body is a forbidden property')],
    ),
    (
        {"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 1}]},
        5,
        [
            ("<nil>", INVALID, 'Invalid value: "": "x" must validate at least one schema (anyOf)'),
            ("x", INVALID, "Invalid value: 5: x in body should be greater than or equal to 10"),
        ],
    ),
    (
        {"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 10}]},
        5,
        [
            (
                "<nil>",
                INVALID,
                'Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
            )
        ],
    ),
    (
        {"type": "integer", "allOf": [{"minimum": 6}, {"maximum": 10}]},
        5,
        [
            ("x", INVALID, "Invalid value: 5: x in body should be greater than or equal to 6"),
            ("<nil>", INVALID, 'Invalid value: "": "x" must validate all the schemas (allOf)'),
        ],
    ),
    (
        {"type": "integer", "not": {"minimum": 1}},
        5,
        [("<nil>", INVALID, 'Invalid value: "": "x" must not validate the schema (not)')],
    ),
]


def _causes(schema: dict[str, Any], value: Any, old: Any = MISSING) -> list[tuple[str, str, str]]:
    compiled = Schema({"type": "object", "properties": {"x": schema}})
    before = MISSING if old is MISSING else {"x": old}
    return [(error.field, error.reason, error.body) for error in compiled.validate({"x": value}, old=before)]


@pytest.mark.parametrize(("schema", "value", "causes"), CASES)
def test_a_value_has_kubernetes_causes(schema: dict[str, Any], value: Any, causes: list[tuple[str, str, str]]) -> None:
    assert sorted(_causes(schema, value)) == sorted(causes)


def test_errors_of_a_status_have_paths_below_status() -> None:
    schema = Schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    [error] = schema.validate({"n": "x"}, path=Path("status"))
    assert (error.field, error.body) == (
        "status.n",
        'Invalid value: "string": n in body must be of type integer: "string"',
    )


LIST_MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}},
}


def test_an_existing_error_is_tolerated_in_unchanged_values() -> None:
    schema = {"type": "object", "properties": {"a": {"maxLength": 1, "type": "string"}, "b": {"type": "string"}}}
    assert _causes(schema, {"a": "long", "b": "new"}, old={"a": "long", "b": "old"}) == []
    assert [field for field, *_ in _causes(schema, {"a": "longer"}, old={"a": "long"})] == ["x.a"]


def test_items_of_map_lists_are_correlated_by_key() -> None:
    old = [{"k": "a", "v": "long"}, {"k": "b", "v": "x"}]
    assert _causes(LIST_MAP, [{"k": "new", "v": "y"}, {"k": "a", "v": "long"}], old=old) == []
    assert [field for field, *_ in _causes(LIST_MAP, [{"k": "b", "v": "long"}], old=old)] == ["x[0].v"]


def test_items_of_other_lists_are_not_correlated() -> None:
    schema = {"type": "array", "items": {"type": "string", "maxLength": 1}}
    assert [field for field, *_ in _causes(schema, ["long", "x"], old=["long"])] == ["x[0]"]
    assert _causes(schema, ["long"], old=["long"]) == []


def test_sets_and_maps_have_no_duplicates() -> None:
    schema = Schema(
        {
            "type": "object",
            "properties": {
                "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "m": {**LIST_MAP, "x-kubernetes-list-map-keys": ["k", "j"]},
            },
        }
    )
    value = {"s": ["a", "b", "a", "a"], "m": [{"k": "1"}, {"k": "1", "j": 2}, {"k": "1"}]}
    errors = [(error.field, error.body) for error in schema.validate_lists(value)]
    assert errors == [("s[2]", 'Duplicate value: "a"'), ("m[2]", 'Duplicate value: {"k":"1"}')]
    assert schema.validate_lists(value, old=value) == []


def test_the_number_of_errors_is_limited() -> None:
    schema = Schema({"type": "object", "additionalProperties": {"type": "string"}})
    assert len(schema.validate({str(number): number for number in range(5000)})) == 1000


def test_a_value_that_needs_too_many_matching_steps_is_refused() -> None:
    schema = Schema({"type": "string", "pattern": "^(a|b)*a(a|b){999}$"})
    value = "".join("ab"[at * at % 7 < 3] for at in range(10_000))
    (error,) = schema.validate(value, path=Path("x"))
    assert (error.reason, error.field) == (INVALID, "x")
    assert error.body.endswith(" in body takes too many steps to match '^(a|b)*a(a|b){999}$'")

"""Tests of decoding objects: unknown fields, nulls, defaults, embedded metadata."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.shaping.embedded_metadata import read_metadata

STRING = {"type": "string"}
PRESERVING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {**PRESERVING, "x-kubernetes-embedded-resource": True}


def _schema(**fields: dict[str, Any]) -> Schema:
    return Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})


PRUNED: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    ({"a": STRING}, {"a": "1", "b": 2}, {"a": "1"}, ["spec.b"]),
    (
        {"l": {"type": "array", "items": {"type": "object", "properties": {"c": STRING}}}},
        {"l": [{"c": "1", "d": 2}, {"e": 3}]},
        {"l": [{"c": "1"}, {}]},
        ["spec.l[0].d", "spec.l[1].e"],
    ),
    (
        {"m": {"type": "object", "additionalProperties": {"type": "object"}}},
        {"m": {"k": {"x": 1}}},
        {"m": {"k": {}}},
        ["spec.m.k.x"],
    ),
    ({"k": PRESERVING}, {"k": {"free": {"x": [1, {"y": 2}]}}}, {"k": {"free": {"x": [1, {"y": 2}]}}}, []),
    (
        {"k": {**PRESERVING, "properties": {"known": {"type": "object", "properties": {"x": STRING}}}}},
        {"k": {"free": 1, "known": {"x": "1", "y": 2}}},
        {"k": {"free": 1, "known": {"x": "1"}}},
        ["spec.k.known.y"],
    ),
    (
        {"l": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"type": "object"}}},
        {"l": [{"free": 1}]},
        {"l": [{"free": 1}]},
        [],
    ),
]


@pytest.mark.parametrize(("fields", "value", "kept", "gone"), PRUNED)
def test_undeclared_fields_are_pruned_and_reported(
    fields: dict[str, Any], value: Any, kept: Any, gone: list[str]
) -> None:
    whole = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "spec": value}
    assert _schema(**fields).prune(whole) == gone
    assert whole == {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "spec": kept}


def test_definitions_that_preserve_unknown_fields_prune_nothing() -> None:
    whole = {"spec": {"b": 1}}
    assert Schema({"type": "object"}, keeps_unknown=True).prune(whole) == []
    assert whole == {"spec": {"b": 1}}


def test_nulls_are_pruned_unless_nullable_or_defaulted() -> None:
    schema = _schema(
        a=STRING, b={**STRING, "nullable": True}, c={**STRING, "default": "d"}, l={"type": "array", "items": STRING}
    )
    value: dict[str, Any] = {"spec": {"a": None, "b": None, "c": None, "l": [None]}}
    assert schema.read(value) == ([], None)
    assert value == {"spec": {"b": None, "c": "d", "l": [None]}}


def test_defaults_are_applied_at_any_depth_as_copies() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    schema = _schema(
        o={**inner, "default": {}},
        l={"type": "array", "items": inner},
        m={"type": "object", "additionalProperties": inner},
        d={"type": "array", "items": STRING, "default": ["x"]},
    )
    values: list[dict[str, Any]] = [{"spec": {"l": [{}], "m": {"k": {}}}}, {"spec": {}}]
    for value in values:
        schema.default(value)
    assert values[0]["spec"] == {"o": {"n": 1}, "l": [{"n": 1}], "m": {"k": {"n": 1}}, "d": ["x"]}
    assert values[1]["spec"] == {"o": {"n": 1}, "d": ["x"]}
    values[0]["spec"]["d"].append("y")
    assert values[1]["spec"]["d"] == ["x"]


def test_defaults_are_pruned_before_they_are_applied() -> None:
    schema = _schema(o={"type": "object", "properties": {"a": STRING}, "default": {"a": "1", "b": 2}})
    value: dict[str, Any] = {"spec": {}}
    schema.default(value)
    assert value == {"spec": {"o": {"a": "1"}}}


def test_embedded_metadata_is_coerced_and_its_unknown_fields_are_reported_last() -> None:
    schema = _schema(e=EMBEDDED)
    metadata = {"name": "n", "odd": 1, "labels": {"a": "b"}, "creationTimestamp": None, "generation": 0}
    value: dict[str, Any] = {"zz": 1, "spec": {"e": {"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": 1}}}
    assert schema.read(value) == (["zz", "spec.e.metadata.odd"], None)
    assert value["spec"]["e"]["metadata"] == {"name": "n", "labels": {"a": "b"}}


def test_wrong_types_in_embedded_metadata_are_refused_or_dropped() -> None:
    schema = _schema(e=EMBEDDED)
    value: dict[str, Any] = {"spec": {"e": {"kind": 1, "metadata": {"labels": {"a": 1}, "name": "n"}}}}
    _, error = schema.read({"spec": {"e": {"metadata": {"labels": {"a": 1}}}}})
    assert error is not None
    assert error.message == (
        'spec.e.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field'
        " ObjectMeta.labels of type string"
    )
    assert schema.read(value, drop_invalid=True) == ([], None)
    assert value == {"spec": {"e": {"metadata": {"name": "n"}}}}


def test_embedded_resources_need_kind_and_version_and_valid_metadata() -> None:
    schema = _schema(e=EMBEDDED)
    errors = schema.validate_embedded({"spec": {"e": {"kind": "bad kind", "metadata": {"labels": {"a b": "c"}}}}})
    assert [(error.field, error.reason) for error in errors] == [
        ("spec.e.apiVersion", "FieldValueRequired"),
        ("spec.e.kind", "FieldValueInvalid"),
        ("spec.e.metadata.labels", "FieldValueInvalid"),
    ]


def test_metadata_that_is_no_object_has_gos_error() -> None:
    with pytest.raises(ValueError, match=r"json: cannot unmarshal string into Go value of type v1\.ObjectMeta"):
        read_metadata("x")

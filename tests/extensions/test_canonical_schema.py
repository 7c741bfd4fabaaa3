"""Tests of schemas with a keyword whose value may be a schema or another value: they are decoded as in Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.extensions.canonical_schema import canonicalize


def _canonical(schema: dict[str, Any]) -> dict[str, Any]:
    canonicalize({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]})
    return schema


def test_undeclared_fields_are_dropped_below_items_and_values() -> None:
    schema = {
        "type": "array",
        "items": {"type": "object", "odd": 1, "nullable": False, "additionalProperties": {"type": "string", "odd": 2}},
    }
    assert _canonical(schema) == {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "string"}},
    }


def test_values_can_be_forbidden_or_unrestricted() -> None:
    assert _canonical({"additionalProperties": True})["additionalProperties"] is True
    with pytest.raises(ValueError, match="boolean or JSON schema expected"):
        _canonical({"additionalProperties": "yes"})


def test_wrong_types_below_items_have_gos_errors() -> None:
    with pytest.raises(
        ValueError, match=r"json: cannot unmarshal number into Go struct field JSONSchemaProps\.type of type"
    ):
        _canonical({"items": {"type": 5}})


@pytest.mark.parametrize(
    ("number", "written"),
    [(5, 5), (5.0, 5), (0.5, 0.5), (2**63 - 1, 9223372036854776000), (-(2**60) - 1, -1152921504606847000)],
)
def test_limits_are_floats_formatted_like_go(number: float, written: float) -> None:
    schema = _canonical({"items": {"minimum": number}, "maximum": number})
    assert (repr(schema["maximum"]), repr(schema["items"]["minimum"])) == (repr(written), repr(written))

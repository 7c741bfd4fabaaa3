"""Tests that the cost of schemas is bounded, and is charged to the request that processes a custom object."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.field import supported_values
from ctrlmgr.errors import RequestEntityTooLarge
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.custom import custom_codec
from ctrlmgr.extensions.custom.custom_codec import CustomCodec
from ctrlmgr.extensions.schema_validation import fast_validator
from ctrlmgr.extensions.schema_validation.enum_values import Listed
from ctrlmgr.extensions.schema_validation.go_json_values import equals_converted
from ctrlmgr.extensions.schema_validation.result import MOST_ERRORS, not_listed
from ctrlmgr.extensions.validation_cost import relative_cost
from ctrlmgr.work_budget import bounded


def items(**schema: Any) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def test_an_enumeration_is_formatted_once_and_the_search_for_errors_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    written, found = Mock(wraps=supported_values), Mock(wraps=not_listed)
    monkeypatch.setattr("ctrlmgr.extensions.schema_validation.enum_values.supported_values", written)
    monkeypatch.setattr("ctrlmgr.extensions.schema_validation.error_validator.not_listed", found)
    errors = Schema(items(type="integer", enum=list(range(3000)))).validate([-1] * 10_000)
    assert len(errors) == found.call_count == MOST_ERRORS
    assert written.call_count == 1
    assert errors[0].body.startswith('Unsupported value: -1: supported values: "0", "1", "2"')


NUMBERS = [0, 1, 97, -1, 2**40, 0.5, 1.0, 1.5, 97.2, 1e300]
VALUES = st.sampled_from([None, True, False, *NUMBERS, "a", "", "1", "\ufffd", [], [1], [1.0], {}, {"a": 1}])


@given(VALUES, st.lists(VALUES))
def test_a_lookup_of_a_value_equals_a_comparison_with_each(value: Any, values: list[Any]) -> None:
    assert Listed(values).has(value) == any(equals_converted(value, each) for each in values)


ALTERNATIVES = [{"enum": [at]} for at in range(60)]


def test_only_invalid_items_with_alternatives_are_explained() -> None:
    schema = Schema({"type": "array", "items": {"type": "integer", "anyOf": ALTERNATIVES}})
    value = [59] * 15_000
    value[7] = 60
    # each value is validated twice; explaining an error takes thirty times as long
    with bounded(2 * 60 * len(value) + 10_000):
        errors = schema.validate(value)
    assert [each.field for each in errors] == ["<nil>", "[7]"]


def test_a_value_that_needs_too_many_steps_is_refused() -> None:
    schema = Schema({"type": "array", "items": {"anyOf": [{"anyOf": ALTERNATIVES}] * 60}})
    with bounded(100_000):
        (error,) = schema.validate([60] * 1000)
    assert error.message == '<nil>: Invalid value: "": takes too many steps to validate against the schema'


@pytest.mark.parametrize(
    ("schema", "cost"),
    [
        ({}, 1),
        ({"type": "object", "properties": {"a": items(type="string")}}, 1),
        (items(anyOf=ALTERNATIVES), 60),
        (items(anyOf=[{"anyOf": ALTERNATIVES}] * 60), 14460),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}, 1),  # the rule is evaluated once
        (items(**{"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}), 8),
        (items(type="object", properties={"a": {"default": "x" * 6398}}), 100),
        (items(**items(type="string", pattern="^a*$")), 1),
        ({"additionalProperties": {"oneOf": [{}, *ALTERNATIVES], "not": {"enum": [1]}}}, 61),
        (items(type="integer", enum=list(range(3000))), 47),
    ],
)
def test_the_schema_determines_the_cost_per_byte(schema: dict[str, Any], cost: int) -> None:
    assert relative_cost({"type": "object", "properties": {"spec": schema}}) == cost


def test_expanding_defaults_are_refused_as_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(custom_codec, "MOST_DEFAULTED", 1000)
    inner = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 98}}}
    spec = items(type="object", default={}, properties={"b": {**inner, "default": {}}})
    schema = Schema({"type": "object", "properties": {"spec": spec}})
    read = CustomCodec("Thing", "g", "v1", lambda version: schema)
    assert read.read({"spec": [{}] * 9})[0]["spec"][8]["b"]["a"] == "x" * 98
    with pytest.raises(RequestEntityTooLarge, match="the schema's defaults add more than 1000 bytes"):
        read.read({"spec": [{} for _ in range(10)]})
    stored: dict[str, Any] = {"spec": [{} for _ in range(10)]}
    assert len(read.from_store(stored)["spec"]) == 10  # the stored object can still be read


def test_a_schema_with_deep_alternatives_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Mock(wraps=fast_validator._compile)
    monkeypatch.setattr(fast_validator, "_compile", compiled)
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(20):
        schema = {"anyOf": [schema]}
    assert not Schema(schema).validate(1)
    assert compiled.call_count == 21

"""Alternatives are merged into one schema node."""

from __future__ import annotations

from random import Random

from ctrlmgr.trial.generation.effective_schema import effective, merged


def test_constraints_of_all_parts_apply() -> None:
    raw = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"maximum": 5}},
        "allOf": [{"required": ["b"], "properties": {"a": {"maximum": 3, "minimum": 1}}}, {"minProperties": 2}],
    }
    found = effective(raw, Random(1))
    assert found["required"] == ["a", "b"]
    assert found["properties"]["a"] == {"maximum": 3, "minimum": 1}
    assert found["minProperties"] == 2


def test_one_alternative_is_chosen() -> None:
    raw = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "anyOf": [{"maxProperties": 1}]}
    chosen = [effective(raw, Random(seed)) for seed in range(20)]
    assert {*(each["required"][0] for each in chosen)} == {"a", "b"}
    assert all(each["maxProperties"] == 1 for each in chosen)


def test_a_field_that_is_a_number_or_a_string_gets_one_type() -> None:
    raw = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert {effective(raw, Random(seed))["type"] for seed in range(20)} == {"integer", "string"}


def test_limits_become_narrower() -> None:
    first = {"minLength": 2, "maxLength": 9, "enum": ["a", "b"], "items": {"maximum": 1}}
    second = {"minLength": 1, "maxLength": 5, "enum": ["b", "c"], "items": {"minimum": 0}, "pattern": "x"}
    assert merged(first, second) == {
        "minLength": 2,
        "maxLength": 5,
        "enum": ["b"],
        "items": {"maximum": 1, "minimum": 0},
        "pattern": "x",
    }

"""Values of objects, lists and maps, and changes of one place in a value."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ctrlmgr.extensions.structural import MISSING
from ctrlmgr.trial.generation.sample_values import below_of, candidates, fullest, placed, smallest
from tests.trial.generation.kinds import PORT, SPEC

RANDOM = Random(1)


def test_the_smallest_value_has_only_required_fields() -> None:
    assert {*smallest(SPEC, RANDOM)} == {"replicas", "size", "version"}
    assert smallest({"type": "array", "items": PORT}, RANDOM) == []
    assert len(smallest({"type": "array", "items": PORT, "minItems": 2}, RANDOM)) == 2


def test_the_fullest_value_has_all_fields() -> None:
    full = fullest(SPEC, RANDOM)
    assert {*full} == {*SPEC["properties"]}
    assert len(full["ports"]) == len(full["zones"]) == len(full["labels"]) == 1
    assert full["mode"] == "small"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"type": "boolean"}, True),
        ({"type": "integer", "example": 4}, 4),
        ({"type": "string", "enum": [None, "b"]}, "b"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {}),
    ],
)
def test_simple_values(raw: dict[str, Any], value: Any) -> None:
    assert smallest(raw, RANDOM) == value


def test_an_embedded_object_is_a_whole_object() -> None:
    found = smallest({"type": "object", "x-kubernetes-embedded-resource": True}, RANDOM)
    assert found["kind"] == "ConfigMap"
    assert found["metadata"]["name"]


def test_items_of_sets_differ_and_one_candidate_repeats_an_item() -> None:
    zones = [each for each in candidates(SPEC["properties"]["zones"], RANDOM) if isinstance(each, list)]
    assert any(len(each) == 2 and each[0] == each[1] for each in zones)
    assert any(len(each) == 2 and each[0] != each[1] for each in zones)
    assert [] in zones


def test_lists_and_maps_reach_and_exceed_their_limits() -> None:
    ports = [each for each in candidates(SPEC["properties"]["ports"], RANDOM) if isinstance(each, list)]
    labels = [each for each in candidates(SPEC["properties"]["labels"], RANDOM) if isinstance(each, dict)]
    assert {4, 5} <= {len(each) for each in ports}
    assert {0, 1, 2, 3} <= {len(each) for each in labels}


def test_each_required_field_is_left_out_once() -> None:
    found = [each for each in candidates(PORT, RANDOM) if isinstance(each, dict)]
    assert [{*each} for each in found if len(each) == 1] == [{"port"}, {"name"}]


def test_a_place_in_a_value_is_changed_without_changing_the_value() -> None:
    before = {"replicas": 1, "ports": [{"name": "a", "port": 1}]}
    assert placed(SPEC, RANDOM, before, ("ports", 0, "port"), 2) == {**before, "ports": [{"name": "a", "port": 2}]}
    assert placed(SPEC, RANDOM, before, ("ports", 0), MISSING) == {**before, "ports": []}
    assert placed(SPEC, RANDOM, before, ("replicas",), MISSING) == {"ports": before["ports"]}
    assert before == {"replicas": 1, "ports": [{"name": "a", "port": 1}]}


def test_missing_parents_get_their_required_fields() -> None:
    after = placed(SPEC, RANDOM, {}, ("ports", 0, "port"), 7)
    assert after["ports"][0]["port"] == 7
    assert isinstance(after["ports"][0]["name"], str)
    assert {"replicas", "size"} <= {*placed(SPEC, RANDOM, None, ("mode",), "large")}


def test_the_schema_below_a_name() -> None:
    assert below_of(SPEC, "mode")["default"] == "small"
    assert below_of(SPEC["properties"]["labels"], "any") == {"type": "string"}
    assert below_of(SPEC, "undeclared") == {}

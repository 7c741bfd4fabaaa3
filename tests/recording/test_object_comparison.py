"""Tests of divergences between a replay and its recording, and of the descriptions of divergences."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.recording.object_comparison import ABSENT, Difference, comparable, differences
from tests.recording.samples import endpoints, managed


@pytest.mark.parametrize(
    ("recorded", "ours", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": 1}, {"a": 2}, [(".a", 1, 2)], id="a value"),
        pytest.param({"a": 1}, {}, [(".a", 1, ABSENT)], id="a field that we lack"),
        pytest.param({}, {"a": {"b": 1}}, [(".a", ABSENT, {"b": 1})], id="a field that only we have"),
        pytest.param({"a": 1}, {"a": "1"}, [(".a", 1, "1")], id="a number is not a text"),
        pytest.param({"x.io/y": 1}, {"x.io/y": 2}, [('."x.io/y"', 1, 2)], id="a name with dots is quoted"),
        pytest.param([1, 2, 3], [1, 3], [("[1]", 2, ABSENT)], id="an item that we lack"),
        pytest.param([1, 3], [1, 2, 3], [("[1]", ABSENT, 2)], id="an item that only we have"),
        pytest.param([{"ip": 1, "n": 1}], [{"ip": 1, "n": 2}], [("[0].n", 1, 2)], id="within an item"),
        pytest.param([1, 2], [2, 1], [("[0]", ABSENT, 2), ("[1]", 2, ABSENT)], id="another order"),
    ],
)
def test_differences_are_listed_by_path(recorded: Any, ours: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert list(differences(recorded, ours)) == [Difference(*each) for each in expected]


def test_fields_specific_to_a_cluster_are_not_compared() -> None:
    trigger = {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}
    recorded = endpoints(entries=[managed("m", ["subsets"])], annotations=trigger)
    ours = endpoints()
    ours["metadata"] |= {"uid": "ours", "creationTimestamp": "2026-01-01T00:00:01Z", "generation": 2}
    assert comparable(Object.from_dict(recorded)) == comparable(Object.from_dict(ours))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(endpoints(annotations={"note": "x"}), id="an annotation"),
        pytest.param(endpoints(labels={"team": "x"}), id="a label"),
        pytest.param(endpoints(subsets=[{"ports": [{"port": 1}]}]), id="a subset"),
    ],
)
def test_all_other_fields_are_compared(other: Any) -> None:
    assert comparable(Object.from_dict(endpoints())) != comparable(Object.from_dict(other))

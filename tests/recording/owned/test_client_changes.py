from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.recording.owned.client_changes import carried_over

READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "True"}
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


def carried(old: dict[str, Any], new: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    result = carried_over(*({"metadata": {}, **each} for each in (old, new, ours)))
    assert result.pop("metadata") == {}
    return result


@pytest.mark.parametrize(
    ("old", "new", "ours", "wanted"),
    [
        # Fields that a client changed are changed, and fields of controllers stay.
        ({"spec": {"replicas": 1}, "status": {"replicas": 1}}, {"spec": {"replicas": 2}, "status": {"replicas": 1}},
         {"spec": {"replicas": 1}, "status": {"replicas": 0}}, {"spec": {"replicas": 2}, "status": {"replicas": 0}}),
        ({"spec": {"paused": True}}, {"spec": {}}, {"spec": {"paused": True, "x": 1}}, {"spec": {"x": 1}}),
        ({}, {"spec": {"a": {"b": 1}}}, {"spec": {"a": {"c": 2}}}, {"spec": {"a": {"b": 1, "c": 2}}}),
        ({"spec": {"a": 1}}, {}, {"spec": {"a": 2}}, {}),
        # Conditions are applied one by one, in any order.
        ({"c": [SCHEDULED]}, {"c": [SCHEDULED, READY]}, {"c": [DISRUPTED, SCHEDULED]},
         {"c": [DISRUPTED, SCHEDULED, READY]}),
        ({"c": [SCHEDULED, READY]}, {"c": [SCHEDULED]}, {"c": [READY, SCHEDULED, DISRUPTED]},
         {"c": [SCHEDULED, DISRUPTED]}),
        ({"c": [READY]}, {"c": [{**READY, "status": "False"}]}, {"c": [{**READY, "reason": "R"}]},
         {"c": [{**READY, "status": "False", "reason": "R"}]}),
        # Finalizers are merged as a set, commands are replaced as a list.
        ({"f": ["a", "b"]}, {"f": ["b"]}, {"f": ["a", "b", "c"]}, {"f": ["b", "c"]}),
        ({"f": [1, 2]}, {"f": [3]}, {"f": [4]}, {"f": [3]}),
    ],
)  # fmt: skip
def test_a_clients_change_is_transferred(
    old: dict[str, Any], new: dict[str, Any], ours: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert carried(old, new, ours) == wanted


def test_an_object_equal_to_the_recorded_one_stays_equal() -> None:
    old = {"metadata": {"generation": 1}, "spec": {"a": [1], "b": {"c": "d"}}, "status": {"conditions": [READY]}}
    new = {"metadata": {"generation": 2}, "spec": {"a": [], "e": None}, "status": {"conditions": [SCHEDULED, READY]}}
    assert carried_over(old, new, old) == new


def test_generations_are_counted_separately() -> None:
    ours = {"metadata": {"generation": 7, "resourceVersion": "70"}}
    old, new = {"metadata": {"generation": 2, "resourceVersion": "20"}}, {"metadata": {"generation": 3}}
    assert carried_over(old, new, ours) == {"metadata": {"generation": 8, "resourceVersion": "70"}}

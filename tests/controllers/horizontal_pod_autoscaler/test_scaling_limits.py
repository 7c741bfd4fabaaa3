"""Tests of the maximum change of the number of replicas at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.controllers.horizontal_pod_autoscaler.scaling_limits import Bounds, Limited, Memory, Sample, limit
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import Behavior
from tests.controllers.horizontal_pod_autoscaler.measured import MINUTE, NOW

WINDOW = 5 * MINUTE
WIDE = Bounds(1, 1000)


def behavior(up: dict[str, Any] | None = None, down: dict[str, Any] | None = None) -> Behavior:
    percent = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    pods = [{"type": "Pods", "value": 4, "periodSeconds": 15}, *percent]
    fields = {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": pods, **(up or {})},
        "scaleDown": {"selectPolicy": "Max", "policies": percent, **(down or {})},
    }
    return msgspec.convert(fields, Behavior)


def go(
    memory: Memory, current: int, wanted: int, rules: Behavior | None = None, *, at: int = NOW, bounds: Bounds = WIDE
) -> Limited:
    return limit(memory, rules, bounds, current, wanted, WINDOW, at)


@pytest.mark.parametrize(
    ("current", "wanted", "bounds", "replicas", "reason"),
    [
        (3, 5, WIDE, 5, "DesiredWithinRange"),
        (3, 50, WIDE, 6, "ScaleUpLimit"),
        (1, 50, WIDE, 4, "ScaleUpLimit"),
        (3, 50, Bounds(1, 6), 6, "TooManyReplicas"),
        (3, 50, Bounds(1, 5), 5, "TooManyReplicas"),
        (3, 0, Bounds(2, 5), 2, "TooFewReplicas"),
    ],
)
def test_without_a_behavior_scaling_up_at_most_doubles(
    current: int, wanted: int, bounds: Bounds, replicas: int, reason: str
) -> None:
    limited = go(Memory(), current, wanted, bounds=bounds)
    assert (limited.replicas, limited.reason, limited.is_limited) == (replicas, reason, replicas != wanted)


def test_scaling_down_waits_for_the_highest_recent_recommendation() -> None:
    memory = Memory()
    memory.begin(10, NOW)
    assert go(memory, 10, 2, at=NOW + MINUTE) == Limited(
        10, "ScaleDownStabilized", False, "DesiredWithinRange", "the desired count is within the acceptable range"
    )
    assert go(memory, 10, 3, at=NOW + 5 * MINUTE).replicas == 10
    limited = go(memory, 10, 2, at=NOW + 5 * MINUTE + 1)
    assert (limited.replicas, limited.stabilized) == (3, "ScaleDownStabilized")
    assert go(memory, 3, 2, at=NOW + 11 * MINUTE).stabilized == ""


def test_the_recommendation_history_is_bounded() -> None:
    memory = Memory()
    for step in range(1000):
        go(memory, 5, 5, at=NOW + step * 15_000_000)
    assert len(memory.recommendations) <= WINDOW // 15_000_000 + 2


@pytest.mark.parametrize(
    ("rules", "current", "wanted", "replicas", "reason"),
    [
        ({}, 3, 50, 7, "ScaleUpLimit"),  # four pods or twice as many, whichever is more
        ({}, 10, 50, 20, "ScaleUpLimit"),
        ({"selectPolicy": "Min"}, 10, 50, 14, "ScaleUpLimit"),
        ({"selectPolicy": "Disabled"}, 10, 50, 10, "ScaleUpLimit"),
        ({"policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]}, 1, 50, 2, "ScaleUpLimit"),  # up
        ({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}, 1, 2, 2, "DesiredWithinRange"),
    ],
)
def test_policies_for_scaling_up(rules: dict[str, Any], current: int, wanted: int, replicas: int, reason: str) -> None:
    limited = go(Memory(), current, wanted, behavior(up=rules))
    assert (limited.replicas, limited.reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("rules", "current", "wanted", "replicas", "reason"),
    [
        ({}, 10, 1, 1, "DesiredWithinRange"),
        ({"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}, 10, 1, 8, "ScaleDownLimit"),
        ({"policies": [{"type": "Percent", "value": 15, "periodSeconds": 60}]}, 10, 1, 8, "ScaleDownLimit"),  # down
        ({"selectPolicy": "Disabled"}, 10, 1, 10, "ScaleDownLimit"),
        (
            {
                "selectPolicy": "Min",
                "policies": [
                    {"type": "Pods", "value": 1, "periodSeconds": 60},
                    {"type": "Percent", "value": 50, "periodSeconds": 60},
                ],
            },
            10,
            1,
            9,
            "ScaleDownLimit",
        ),
    ],
)
def test_policies_for_scaling_down(
    rules: dict[str, Any], current: int, wanted: int, replicas: int, reason: str
) -> None:
    limited = go(Memory(), current, wanted, behavior(down={"stabilizationWindowSeconds": 0, **rules}))
    assert (limited.replicas, limited.reason) == (replicas, reason)


def test_a_policy_counts_from_the_start_of_its_period() -> None:
    rules = behavior(up={"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]})
    memory = Memory()
    memory.note_change(rules, 2, 5, NOW)
    assert go(memory, 5, 50, rules, at=NOW + MINUTE - 1).replicas == 6  # three of the four pods were added
    assert go(memory, 5, 50, rules, at=NOW + MINUTE).replicas == 9


def test_replicas_removed_in_the_period_can_be_added_again() -> None:
    rules = behavior(up={"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]})
    memory = Memory()
    memory.note_change(rules, 8, 5, NOW)
    assert memory.downs == [Sample(3, NOW)]
    assert go(memory, 5, 50, rules, at=NOW + 1).replicas == 12


def test_changes_are_not_recorded_without_a_behavior() -> None:
    memory = Memory()
    memory.note_change(None, 2, 5, NOW)
    assert (memory.ups, memory.downs) == ([], [])


def test_outdated_changes_are_replaced() -> None:
    rules, memory = behavior(), Memory()
    for step in range(100):
        memory.note_change(rules, 2, 3, NOW + step * MINUTE)
    assert len(memory.ups) <= 2


def test_scaling_up_can_have_a_stabilization_window() -> None:
    rules, memory = behavior(up={"stabilizationWindowSeconds": 60}), Memory()
    memory.begin(3, NOW)
    limited = go(memory, 3, 5, rules, at=NOW + 30_000_000)
    assert (limited.replicas, limited.stabilized) == (3, "ScaleUpStabilized")
    assert go(memory, 3, 5, rules, at=NOW + 61_000_000).replicas == 5


def test_scaling_down_stabilizes_for_five_minutes_by_default() -> None:
    memory = Memory()
    memory.begin(5, NOW)
    assert go(memory, 5, 2, behavior(), at=NOW + 4 * MINUTE).stabilized == "ScaleDownStabilized"
    assert go(memory, 5, 2, behavior(down={"stabilizationWindowSeconds": 0}), at=NOW + 4 * MINUTE).replicas == 2

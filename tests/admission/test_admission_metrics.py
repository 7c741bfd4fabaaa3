"""Tests of the metrics of admission plugins and steps, whether observations are added at once or later."""

from __future__ import annotations

from itertools import accumulate

import pytest

from ctrlmgr.admission.admission_metrics import StepTimes
from ctrlmgr.metrics import REGISTRY

PREFIX = "apiserver_admission"


def read(family: str, suffix: str, operation: str, rejected: str = "false", **labels: str) -> float | None:
    sample = f"{PREFIX}_{family}_admission_duration_seconds_{suffix}"
    return REGISTRY.get_sample_value(sample, {"type": "admit", "operation": operation, "rejected": rejected, **labels})


def ends(*took: float) -> list[float]:
    return list(accumulate(took, initial=100.0))


@pytest.mark.parametrize("steps", [1, 255, 256, 700])
def test_fast_steps_are_all_counted(steps: int) -> None:
    operation = f"QUICK-{steps}"
    times = StepTimes("admit", operation, ["A", "B"])
    for _ in range(steps):
        times.count_accepted(ends(0.001, 0.002))
    assert read("controller", "count", operation, name="A") == steps
    assert read("controller", "sum", operation, name="A") == pytest.approx(0.001 * steps)
    assert read("controller", "sum", operation, name="B") == pytest.approx(0.002 * steps)
    assert read("step", "count", operation) == steps
    assert read("step", "sum", operation) == pytest.approx(0.003 * steps)
    assert read("step", "bucket", operation, le="0.005") == steps


def test_slow_steps_and_refusals_are_counted_in_their_buckets() -> None:
    times = StepTimes("admit", "MIXED", ["A", "B"])
    times.count_accepted(ends(0.001, 0.001))
    times.count_accepted(ends(0.001, 0.2))
    times.refused(ends(0.001, 0.03))
    times.refused(ends(0.03))
    assert read("controller", "count", "MIXED", name="A") == 3
    assert read("controller", "bucket", "MIXED", name="B", le="0.1") == 1
    assert read("controller", "bucket", "MIXED", name="B", le="0.5") == 2
    assert read("controller", "count", "MIXED", rejected="true", name="A") == 1
    assert read("controller", "count", "MIXED", rejected="true", name="B") == 1
    assert read("step", "count", "MIXED") == 2
    assert read("step", "count", "MIXED", rejected="true") == 2
    assert read("step", "sum", "MIXED", rejected="true") == pytest.approx(0.061)


def test_steps_of_one_name_are_summed() -> None:
    first, second = (StepTimes("admit", "SHARED", ["A"]) for _ in range(2))
    first.count_accepted(ends(0.001))
    second.count_accepted(ends(0.002))
    assert read("controller", "count", "SHARED", name="A") == 2
    assert read("controller", "sum", "SHARED", name="A") == pytest.approx(0.003)

"""Tests of the CPU and memory usage of simulated containers, which phrases in annotations set."""

from __future__ import annotations

import pytest

from ctrlmgr.simulation.behaviour import NOTHING, read
from ctrlmgr.simulation.container_usage import PERIOD, Term, Usage, read_usage

MILLI = 1_000_000


def at(phrase: str, seconds: float) -> int:
    found = read_usage(phrase)
    assert found is not None
    return found[1].at(seconds)


@pytest.mark.parametrize(
    ("phrase", "seconds", "amount"),
    [
        ("cpu 120m", 0, 120 * MILLI),
        ("cpu: 1.5", 7, 1_500 * MILLI),
        ("cpu 120m + 30m*sin", 0, 120 * MILLI),
        ("cpu 120m + 30m*sin", PERIOD / 4, 150 * MILLI),
        ("cpu 120m - 30m * sin", PERIOD / 4, 90 * MILLI),
        ("cpu 120m+30m*sin(1h)", 900, 150 * MILLI),
        ("cpu 100m + 100m*sin(4s) + 1m", 3, 1 * MILLI),
        ("cpu 10m - 30m", 0, 0),
        ("memory 64Mi", 0, 64 * 1024 * 1024 * 1_000_000_000),
        ("memory 1M", 0, 1_000_000 * 1_000_000_000),
    ],
)
def test_a_usage_is_a_sum_of_constants_and_waves(phrase: str, seconds: float, amount: int) -> None:
    assert at(phrase, seconds) == amount


@pytest.mark.parametrize("phrase", ["cpu", "exit 1", "ready after 3s"])
def test_other_phrases_are_no_usage(phrase: str) -> None:
    assert read_usage(phrase) is None


@pytest.mark.parametrize("phrase", ["cpu much", "cpu 1 2", "cpu 1 +", "cpu 3*cos", "memory 1*sin(0s)", "cpu ..m"])
def test_an_invalid_usage_is_refused(phrase: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid resource usage|must be longer|quantities must match"):
        read_usage(phrase)


def test_usage_can_be_combined_with_other_phrases() -> None:
    found = read("Ready after 3s; cpu 1; memory 64Mi")
    assert (found.ready_after, found.cpu) == (3.0, Usage((Term(1_000 * MILLI),)))
    assert found.memory is not None
    assert read("memory 1Gi").over(found).cpu == found.cpu
    assert NOTHING.cpu is None

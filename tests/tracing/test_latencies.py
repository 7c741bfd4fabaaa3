"""Tests of the latencies of a request's stages."""

from __future__ import annotations

import pytest

from ctrlmgr.testing import FakeClock
from ctrlmgr.tracing import latencies
from ctrlmgr.tracing.latencies import Latencies


def test_times_of_a_stage_are_added_but_of_parallel_stages_the_longest_counts() -> None:
    measured = Latencies(FakeClock().monotonic)
    for stage in (latencies.STORAGE, latencies.VALIDATING_WEBHOOK):
        measured.add(stage, 0.25)
        measured.add(stage, 0.5)
    assert measured.stages == {"etcd": 0.75, "validating-webhook": 0.5}


def test_only_a_slow_request_has_annotations() -> None:
    measured = Latencies(FakeClock().monotonic)
    assert measured.annotations(2.0) == {}, "nothing was measured"
    measured.add(latencies.AUTHENTICATION, 0.001)
    assert measured.annotations(0.5) == {}
    assert measured.annotations(0.75) == {
        "apiserver.latency.k8s.io/authentication": "1ms",
        "apiserver.latency.k8s.io/total": "750ms",
    }


def test_a_stage_is_measured_even_if_it_fails() -> None:
    clock = FakeClock()
    measured = latencies.begin(clock.monotonic)

    def fails() -> None:
        with latencies.measuring(latencies.STORAGE):
            clock.step(0.5)
            raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    latencies.add(latencies.STORAGE, 0.25)
    latencies.end()
    latencies.add(latencies.STORAGE, 9.0)
    with latencies.measuring(latencies.STORAGE):
        clock.step(9.0)
    assert measured.stages == {"etcd": 0.75}

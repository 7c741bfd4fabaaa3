"""Tests of the clock and queue of a replay."""

from __future__ import annotations

import threading

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.recording.replay_stage import HeldQueue
from ctrlmgr.recording.virtual_clock import LogClock, ReplayClock

START = 1_767_225_600_000_000
A, B = Key("ns", "a"), Key("ns", "b")


@pytest.fixture
def clock() -> ReplayClock:
    clock = ReplayClock()
    clock.advance_to(START)
    return clock


def test_the_first_moment_creates_the_initial_state_in_no_time(clock: ReplayClock) -> None:
    assert (clock.now(), clock.monotonic()) == (START, 0.0)


def test_time_never_decreases(clock: ReplayClock) -> None:
    clock.advance_to(START + 2_000_000)
    clock.advance_to(START + 1_000_000)
    assert (clock.now(), clock.monotonic()) == (START + 2_000_000, 2.0)


def test_waiting_advances_the_time_at_once(clock: ReplayClock) -> None:
    assert not clock.wait(threading.Condition(), 3600.0)
    assert clock.monotonic() == 3600.0


def test_waiting_without_a_deadline_is_an_error(clock: ReplayClock) -> None:
    with pytest.raises(RuntimeError, match="one thread"):
        clock.wait(threading.Condition(), None)


def test_the_log_has_timestamps_of_the_recording_and_waits_in_real_time(clock: ReplayClock) -> None:
    log_clock = LogClock(clock)
    condition = threading.Condition()
    with condition:
        assert not log_clock.wait(condition, 0.001)
    assert log_clock.now() == START
    assert log_clock.monotonic() != clock.monotonic()


def test_a_held_key_is_released_with_all_its_triggers(clock: ReplayClock) -> None:
    queue = HeldQueue("q", clock=clock)
    queue.add(A, (2,))
    queue.add(B, (3,))
    queue.add(A, (1,))
    assert (queue.held, queue.get(timeout=0)) == (2, None)
    assert queue.release(A)
    delivery = queue.get(timeout=0)
    assert delivery is not None
    assert (delivery.item, delivery.triggers) == (A, (1, 2))
    assert (queue.held, queue.release(A)) == (1, False)


def test_retries_are_not_held(clock: ReplayClock) -> None:
    queue = HeldQueue("q", clock=clock)
    queue.add_rate_limited(A)
    delay = queue.next_ready_in()
    assert delay is not None
    clock.advance(delay)
    assert queue.get(timeout=0) is not None

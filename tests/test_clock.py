"""Tests of the clocks: the guarantees of `FakeClock`, and the format of times."""

from __future__ import annotations

import threading

import pytest

from ctrlmgr.clock import OtherTime, SystemClock, format_time, format_time_seconds, parse_time
from ctrlmgr.testing import FakeClock
from tests.background import DEADLINE, background

START = 1_700_000_000_000_000


class RepeatedWaiter:
    """Waits until several points in time, one after the other, and records the clock's time after each wait."""

    def __init__(self, clock: FakeClock, moments: list[float]) -> None:
        self.condition = threading.Condition(threading.Lock())
        self.woke_at: list[float] = []
        self._clock = clock
        self._moments = moments

    def run(self) -> list[float]:
        with self.condition:
            for moment in self._moments:
                while (left := moment - self._clock.monotonic()) > 0:
                    self._clock.wait(self.condition, left)
                self.woke_at.append(self._clock.monotonic())
        return self.woke_at


def test_time_is_constant_until_stepped() -> None:
    clock = FakeClock(START)
    assert (clock.now(), clock.monotonic()) == (START, 0.0)
    clock.step(1.5)
    assert (clock.now(), clock.monotonic()) == (START + 1_500_000, 1.5)


def test_three_steps_of_a_tenth_are_three_tenths() -> None:
    clock = FakeClock()
    for _ in range(3):
        clock.step(0.1)
    assert clock.monotonic() == 0.3


def test_stepping_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().step(-1)


def test_setting_the_clock_forward_is_a_step() -> None:
    clock = FakeClock(START)
    clock.set(START + 7_000_001)
    assert (clock.now(), clock.monotonic()) == (START + 7_000_001, 7.000001)


def test_setting_the_clock_back_changes_only_the_wall_clock() -> None:
    clock = FakeClock(START)
    clock.step(5)
    clock.set(START)
    assert (clock.now(), clock.monotonic()) == (START, 5.0)
    clock.step(1)
    assert (clock.now(), clock.monotonic()) == (START + 1_000_000, 6.0)


def test_a_zero_timeout_does_not_wait() -> None:
    clock = FakeClock()
    condition = threading.Condition(threading.Lock())
    with condition:
        assert clock.wait(condition, 0) is False
        assert clock.wait(condition, -1) is False
        assert clock.wait(condition, 1e-9) is False


def test_a_notified_waiter_returns_true_and_a_timed_out_one_false() -> None:
    clock = FakeClock()
    condition = threading.Condition(threading.Lock())

    def wait() -> bool:
        with condition:
            return clock.wait(condition, 10)

    notified = background(wait)
    clock.wait_for_waiters(1)
    with condition:
        condition.notify()
    assert notified.result(DEADLINE) is True

    timed_out = background(wait)
    clock.wait_for_waiters(1)
    clock.step(10)
    assert timed_out.result(DEADLINE) is False


def test_a_step_short_of_the_deadline_wakes_no_waiter() -> None:
    clock = FakeClock()
    sleeper = RepeatedWaiter(clock, [30.0])
    done = background(sleeper.run)
    clock.wait_for_waiters(1)
    clock.step(29.999999)
    assert clock.next_deadline_in() == 0.000001
    clock.step(0.000001)
    assert done.result(DEADLINE) == [30.0]


def test_one_large_step_fires_the_deadlines_of_one_thread_each_at_its_time() -> None:
    clock = FakeClock()
    done = background(RepeatedWaiter(clock, [30.0, 50.0, 80.0]).run)
    clock.wait_for_waiters(1)
    clock.step(100)
    assert done.result(DEADLINE) == [30.0, 50.0, 80.0]


def test_one_large_step_fires_the_deadlines_of_several_threads_in_order() -> None:
    clock = FakeClock()
    sleepers = [RepeatedWaiter(clock, [moment]) for moment in (50.0, 30.0, 70.0)]
    done = [background(sleeper.run) for sleeper in sleepers]
    clock.wait_for_waiters(3)
    clock.step(100)
    assert [future.result(DEADLINE) for future in done] == [[50.0], [30.0], [70.0]]


def test_a_woken_waiter_counts_only_after_it_blocks_again() -> None:
    clock = FakeClock()
    condition = threading.Condition(threading.Lock())
    awake, go_on = threading.Event(), threading.Event()

    def run() -> None:
        with condition:
            clock.wait(condition, 30)
        awake.set()
        go_on.wait(DEADLINE)
        with condition:
            clock.wait(condition, 20)

    done = background(run)
    clock.wait_for_waiters(1)
    clock.step(30)
    with pytest.raises(TimeoutError, match="0 of 1 threads"):
        clock.wait_for_waiters(1, timeout=0)
    assert awake.wait(DEADLINE)
    go_on.set()
    clock.wait_for_waiters(1)
    clock.step(20)
    done.result(DEADLINE)
    assert clock.monotonic() == 50


def test_a_waiter_woken_for_another_deadline_blocks_again() -> None:
    clock = FakeClock()
    condition = threading.Condition(threading.Lock())

    def until(moment: float) -> float:
        with condition:
            while (left := moment - clock.monotonic()) > 0:
                clock.wait(condition, left)
            return clock.monotonic()

    early, late = background(lambda: until(30)), background(lambda: until(50))
    clock.wait_for_waiters(2)
    clock.step(30)
    assert early.result(DEADLINE) == 30
    clock.wait_for_waiters(1)
    clock.step(20)
    assert late.result(DEADLINE) == 50


def test_a_woken_waiter_is_removed_before_it_runs() -> None:
    clock = FakeClock()
    go_on = threading.Event()

    class SlowCondition(threading.Condition):
        """A condition whose waiters wake up late."""

        def wait(self, timeout: float | None = None) -> bool:
            notified = super().wait(timeout)
            go_on.wait(DEADLINE)
            return notified

    condition = SlowCondition(threading.Lock())

    def wait(timeout: float) -> bool:
        with condition:
            return clock.wait(condition, timeout)

    due, not_due = background(lambda: wait(30)), background(lambda: wait(50))
    clock.wait_for_waiters(2)
    clock.step(30)
    with pytest.raises(TimeoutError, match="0 of 1 threads"):
        clock.wait_for_waiters(1, timeout=0)
    go_on.set()
    assert (due.result(DEADLINE), not_due.result(DEADLINE)) == (False, True)


def test_a_step_waits_only_briefly_for_a_working_thread() -> None:
    clock = FakeClock(patience=0.02)
    condition = threading.Condition(threading.Lock())
    go_on = threading.Event()

    def run() -> None:
        with condition:
            clock.wait(condition, 1)
        go_on.wait(DEADLINE)

    done = background(run)
    clock.wait_for_waiters(1)
    clock.step(2)
    assert clock.monotonic() == 2
    go_on.set()
    done.result(DEADLINE)


def test_waiting_without_a_timeout_has_no_deadline_and_counts_as_waiting() -> None:
    clock = FakeClock()
    condition = threading.Condition(threading.Lock())

    def run() -> bool:
        with condition:
            return clock.wait(condition, None)

    done = background(run)
    clock.wait_for_waiters(1)
    assert clock.next_deadline_in() is None
    clock.step(1e6)
    with condition:
        condition.notify()
    assert done.result(DEADLINE) is True


def test_the_system_clock_waits_on_the_condition_and_is_monotonic() -> None:
    clock = SystemClock()
    condition = threading.Condition(threading.Lock())
    before = clock.monotonic()
    with condition:
        assert clock.wait(condition, 0.001) is False
    assert clock.monotonic() > before
    assert clock.now() > 1_600_000_000_000_000


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        pytest.param("1970-01-01T00:00:01Z", 1_000_000, id="whole seconds in UTC"),
        pytest.param("2026-01-02T03:04:05.123456Z", 1_767_323_045_123_456, id="microseconds"),
        pytest.param("2026-01-02T05:04:05.123456+02:00", 1_767_323_045_123_456, id="another time zone"),
    ],
)
def test_rfc_3339_times_are_parsed(text: str, microseconds: int) -> None:
    assert parse_time(text) == microseconds


def test_times_are_formatted_like_kubernetes() -> None:
    moment = 1_767_323_045_123_456
    assert format_time(moment) == "2026-01-02T03:04:05.123456Z"
    assert format_time_seconds(moment) == "2026-01-02T03:04:05Z"
    assert parse_time(format_time(moment)) == moment


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        parse_time("2026-01-02T03:04:05")


def test_another_wall_time_is_returned_while_waiting_follows_the_clock() -> None:
    clock = FakeClock()
    there = OtherTime(lambda: 1_000_000, clock)
    assert (there.now(), there.monotonic()) == (1_000_000, clock.monotonic())

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.loop_monitor import LONG, PERIOD, TurnWatch, described
from ctrlmgr.metrics import TURNS
from ctrlmgr.testing import FakeClock


class Loop:
    """Clocks that a test sets: the clock of the machine, and the CPU clock of the event loop's thread."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.used = 0.0
        self.watch = TurnWatch(self.clock, cpu=lambda: self.used)
        self.watch.begin()

    def turn(self, *, works: float, waits: float = 0.0) -> None:
        """Run a step of the event loop that uses this CPU time and waits this long for a processor, and then run the
        next tick.
        """
        self.used += works
        self.clock.step(PERIOD + works + waits)
        self.watch.sample(threading.get_ident())
        self.watch.tick()


@pytest.fixture(autouse=True)
def turns() -> Iterator[None]:
    before = TURNS.longest, TURNS.long
    TURNS.longest, TURNS.long = 0.0, 0
    yield
    TURNS.longest, TURNS.long = before


def test_a_long_callback_is_logged_with_its_stack() -> None:
    loop = Loop()
    with capture_logs() as logged:
        loop.turn(works=PERIOD + 3 * LONG)
    [line] = logged
    assert (line["event"], line["cpu_seconds"], line["seconds"]) == ("event loop blocked", 0.3, 0.32)
    assert "test_a_long_callback_is_logged_with_its_stack" in line["where"]
    assert (round(TURNS.longest, 6), TURNS.long) == (0.3, 1)


def test_short_callbacks_and_a_busy_machine_are_not_logged() -> None:
    loop = Loop()
    with capture_logs() as logged:
        for _ in range(50):
            loop.turn(works=PERIOD / 2)
        loop.turn(works=0.001, waits=5.0)
    assert logged == []
    assert (TURNS.longest, TURNS.long) == (0.0, 0)


def test_a_callback_above_the_period_is_measured_and_not_logged() -> None:
    loop = Loop()
    with capture_logs() as logged:
        loop.turn(works=PERIOD + LONG / 2)
    assert logged == []
    assert (round(TURNS.longest, 6), TURNS.long) == (LONG / 2, 0)


def test_a_running_loop_is_monitored() -> None:
    async def work() -> None:
        async with TurnWatch(SystemClock()).watching():
            await asyncio.sleep(2 * PERIOD)
            sum(range(20_000_000))  # some tenths of a second of CPU time, in one step
            await asyncio.sleep(2 * PERIOD)

    asyncio.run(work())
    assert TURNS.longest > 0


def test_a_stack_is_described_by_its_innermost_frames() -> None:
    assert described(None) == ""
    last = described(sys._getframe()).split(";")[-1]
    assert last.startswith("test_a_stack_is_described_by_its_innermost_frames:")

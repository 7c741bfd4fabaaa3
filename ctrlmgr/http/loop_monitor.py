"""Measures the turns (iterations) of the event loop, and logs the stack of a long turn.

Guarantees:
- A turn is measured in CPU time of the loop's thread, so turns are not longer on a busy machine.
- A turn of more than `LONG` seconds is counted, and logged with its stack. The duration of the longest turn is a
  metric.
- The measured CPU time is not exact. Every `PERIOD` seconds, a callback reads the CPU time that the thread has used
  since the last callback. Up to `PERIOD` seconds of this time may belong to earlier turns. Therefore only turns that
  take longer than `PERIOD` seconds are measured.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import islice
from types import FrameType

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.interpreter import frames
from ctrlmgr.metrics import TURNS

log = structlog.get_logger(__name__)

PERIOD = 0.02
"""Seconds between two measurements of the CPU time."""

LONG = 0.1
"""A turn of the event loop that takes at least this CPU time, in seconds, is logged."""

_SAMPLE = 0.05
"""Seconds between two samples of the loop's delay."""

_FRAMES = 8
"""The number of innermost stack frames that are logged."""


class TurnWatch:
    """Measures the turns of one event loop."""

    def __init__(self, clock: Clock, *, cpu: Callable[[], float] = time.thread_time) -> None:
        """Create a monitor; `cpu` returns the CPU time of the calling thread in seconds."""
        self._clock = clock
        self._cpu = cpu
        self._used = 0.0
        self._ticked_at = 0.0
        self._where = ""  # the stack when the loop was late; the sampling thread writes this field

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Measure the turns of the running loop while the context is open."""
        stop = threading.Event()
        thread = threading.get_ident()
        self.begin()
        threads.start("event loop watch", lambda: self._sample(thread, stop))
        ticking = asyncio.ensure_future(self._tick_for_ever())
        try:
            yield
        finally:
            stop.set()
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            self.tick()

    def begin(self) -> None:
        """Start measuring, on the loop's thread."""
        self._ticked_at, self._used = self._clock.monotonic(), self._cpu()

    def tick(self) -> None:
        """Measure the CPU time since the last call, and log the turn if it was long; runs on the loop's thread."""
        now, used = self._clock.monotonic(), self._cpu()
        turn, waited = used - self._used - PERIOD, now - self._ticked_at - PERIOD
        self._ticked_at, self._used, where = now, used, self._where
        self._where = ""
        if turn > 0:
            TURNS.observe(turn, is_long=turn > LONG)
        if turn > LONG:
            log.warning("event loop blocked", cpu_seconds=round(turn, 3), seconds=round(waited, 3), where=where)

    def _sample(self, thread: int, stop: threading.Event) -> None:
        """Record the stack of the loop's thread whenever the loop is late."""
        pause = threading.Condition()
        while not stop.is_set():
            with pause:
                self._clock.wait(pause, _SAMPLE)
            self.sample(thread)

    def sample(self, thread: int) -> None:
        """Record the stack of the thread with the identifier `thread` if the loop is late."""
        if self._clock.monotonic() - self._ticked_at > LONG + PERIOD:
            self._where = described(frames().get(thread))


def described(frame: FrameType | None) -> str:
    """Format the innermost frames of a stack, with the outermost of these first, as `function:line;function:line`."""
    walked = traceback.walk_stack(frame) if frame is not None else iter(())
    inner = [f"{each.f_code.co_qualname}:{line}" for each, line in islice(walked, _FRAMES)]
    return ";".join(reversed(inner))

"""Watches how long the event loop works in one turn, and logs which code ran in a long one.

Guarantees:
- A turn is measured by the processor time of the loop's thread, so a busy machine alone makes no turn long.
- A turn of more than `LONG` seconds is logged with the code that ran in it, and counted; the longest is a metric.
- Measured are turns of more than `PERIOD` seconds: a callback due every `PERIOD` seconds sees how much processor time
  passed since its last run, of which at most `PERIOD` can belong to turns before the one that delayed it.
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
"""Seconds between two measurements."""

LONG = 0.1
"""Seconds of processor time from which on a turn is logged."""

_SAMPLE = 0.05
"""Seconds between two looks at whether the loop is late."""

_FRAMES = 8
"""Frames of the running code that are logged, the innermost ones."""


class TurnWatch:
    """Measures the turns of one event loop."""

    def __init__(self, clock: Clock, *, cpu: Callable[[], float] = time.thread_time) -> None:
        """Measure with `cpu`, which returns the processor time of the calling thread in seconds."""
        self._clock = clock
        self._cpu = cpu
        self._used = 0.0
        self._ticked_at = 0.0
        self._where = ""  # the code that ran when the loop was found late; written by the sampling thread

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Measure the running loop until the block ends."""
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
        """Begin to measure; on the loop's thread."""
        self._ticked_at, self._used = self._clock.monotonic(), self._cpu()

    def tick(self) -> None:
        """Measure what passed since the last call, and report it if it was long; on the loop's thread."""
        now, used = self._clock.monotonic(), self._cpu()
        turn, waited = used - self._used - PERIOD, now - self._ticked_at - PERIOD
        self._ticked_at, self._used, where = now, used, self._where
        self._where = ""
        if turn > 0:
            TURNS.observe(turn, is_long=turn > LONG)
        if turn > LONG:
            log.warning("event loop was busy", cpu_seconds=round(turn, 3), seconds=round(waited, 3), where=where)

    def _sample(self, thread: int, stop: threading.Event) -> None:
        """Note what the loop's thread does whenever the loop is late."""
        pause = threading.Condition()
        while not stop.is_set():
            with pause:
                self._clock.wait(pause, _SAMPLE)
            self.sample(thread)

    def sample(self, thread: int) -> None:
        """Keep the code that `thread` (its identifier) runs if the loop is late by now."""
        if self._clock.monotonic() - self._ticked_at > LONG + PERIOD:
            self._where = described(frames().get(thread))


def described(frame: FrameType | None) -> str:
    """Return the innermost frames of a stack, outermost first, as `function:line` joined by `;`."""
    walked = traceback.walk_stack(frame) if frame is not None else iter(())
    inner = [f"{each.f_code.co_qualname}:{line}" for each, line in islice(walked, _FRAMES)]
    return ";".join(reversed(inner))

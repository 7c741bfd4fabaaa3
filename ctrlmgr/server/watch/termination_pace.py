"""Ends watches one after another while the server stops, so that not all clients reconnect at once.

Guarantees:
- If the server ends watches within a grace period, the watches end evenly, and at least `LEAST_RATE` watches end in a
  second.
- A watch that would end after the grace period ends at once. The server waits for the end of all watches at most until
  the end of the grace period.
- If the server has no grace period for watches, all watches end at once.

Source: apimachinery `pkg/util/waitgroup/ratelimited_waitgroup.go`; for the rate apiserver
`pkg/server/genericapiserver.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.server.filters.running_requests import RunningRequests

LEAST_RATE: Final = 200.0
"""Minimum number of watches that end in a second."""


class TerminationPace:
    """Counts the watches of a server, and paces their ends. Used on the event loop's thread only."""

    def __init__(self, clock: Clock) -> None:
        """Create an instance without watches."""
        self._clock = clock
        self._watches = RunningRequests()
        self._interval = 0.0  # seconds between the ends of two watches; 0 if watches end at once
        self._next_at = 0.0
        self._ends_at = 0.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count a watch while the context is open."""
        with self._watches:
            yield

    def begin(self, grace: float) -> None:
        """Let the watches that end from now on end evenly within `grace` seconds."""
        self._interval = 1 / max(self._watches.count / grace, LEAST_RATE)
        self._next_at = self._clock.monotonic()
        self._ends_at = self._next_at + grace

    async def turn(self) -> None:
        """Wait until the watch of the caller may end."""
        if seconds := self.delay():
            await asyncio.sleep(seconds)

    def delay(self) -> float:
        """Return the seconds until the watch of the caller may end, and move the turn of the next watch."""
        now = self._clock.monotonic()
        ends_at = max(now, self._next_at)
        if not self._interval or ends_at > self._ends_at:
            return 0.0
        self._next_at = ends_at + self._interval
        return ends_at - now

    async def all_ended(self) -> None:
        """Wait until no watch runs, or until the grace period is over."""
        await self._watches.ended(self._ends_at - self._clock.monotonic())

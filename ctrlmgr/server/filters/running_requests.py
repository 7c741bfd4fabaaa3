"""Counts the running requests, so that a stopping server can wait until they have ended.

Guarantees:
- A request is counted from its start until its handler has ended, also if the handler raises an error.
- The wait ends after the given patience, even if a handler never ends.

Source: apiserver `pkg/server/filters/waitgroup.go`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


class RunningRequests:
    """A context manager that each request enters once; counts the running requests. Not thread-safe."""

    __slots__ = ("_none_left", "count")

    def __init__(self) -> None:
        """Create an instance that counts no request yet."""
        self.count = 0
        """The number of running requests."""
        self._none_left: asyncio.Event | None = None  # set when no request runs; None while no caller waits

    def __enter__(self) -> None:
        """Add a request to the count."""
        self.count += 1

    def __exit__(self, *error: object) -> None:
        """Remove a request from the count."""
        self.count -= 1
        if not self.count and self._none_left is not None:
            self._none_left.set()

    async def ended(self, patience: float) -> None:
        """Wait until no request runs, for at most `patience` seconds."""
        if not self.count:
            return
        self._none_left = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._none_left.wait()

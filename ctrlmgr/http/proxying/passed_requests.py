"""The requests that a server passes on, which all end when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ctrlmgr.http.response_stream import Disconnected


class PassedRequests:
    """Requests that are being passed on. Used on the event loop's thread only."""

    def __init__(self) -> None:
        """Create an instance without requests."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = False

    def end(self) -> None:
        """End all requests; requests that start later end immediately."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which passes one request on; raises its errors, and `Disconnected` once `end` is called."""
        if self._has_ended:
            work.close()
            raise Disconnected
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        try:
            await task
        except asyncio.CancelledError:
            if self._has_ended:
                raise Disconnected from None
            raise
        finally:
            self._tasks.discard(task)
            task.cancel()

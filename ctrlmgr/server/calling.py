"""Calls other processes over HTTPS: what the engine's `CallOut` asks for.

Guarantees:
- A call ends within its timeout, from connecting to the last byte; one that may be tried again within as many.
- A server that says when to come again (429 or 5xx with `Retry-After`) is asked again then, within the same timeout.
- Nothing is raised: what goes wrong is told in the words that Go's HTTP client has for it.
- A process that calls no other pays nothing for it: what makes connections is loaded with the first call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Final, Protocol

from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.calls.replies import comes_again, is_passing
from ctrlmgr.server.go_words import DEADLINE

_AGAIN: Final = 10
"""How often a server is asked again that says when to come again (client-go `rest/request.go`)."""


class _Connections(Protocol):
    async def answer(self, call: Call) -> Reply: ...

    async def close(self) -> None: ...


async def _answered(connections: _Connections, call: Call) -> Reply:
    """Return the answer to a call, made again as often as a server asks for that, within reason."""
    for _ in range(_AGAIN):
        reply = await connections.answer(call)
        if not comes_again(reply):
            return reply
        await asyncio.sleep(max(reply.retry_after or 0, 0))
    return await connections.answer(call)


class Caller:
    """Makes calls; used on one event loop."""

    def __init__(self, clock: Clock) -> None:
        """Start without connections; `clock` measures calls."""
        self._clock = clock
        self._connections: _Connections | None = None

    async def call(self, calls: Sequence[Call]) -> list[Reply]:
        """Make calls, all at the same time, and return their replies in the same order."""
        connections = self._connections
        if connections is None:
            connections = await self._connected()
        tasks = [asyncio.ensure_future(self._call(connections, each)) for each in calls]
        if len(tasks) == 1:  # which ends with it when this is cancelled
            return [await tasks[0]]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [task.result() for task in tasks]

    async def close(self) -> None:
        """Close all connections."""
        if self._connections is not None:
            await self._connections.close()
            self._connections = None

    async def _connected(self) -> _Connections:
        module = await asyncio.to_thread(import_module, "ctrlmgr.server.connections")
        if self._connections is None:  # another call may have been faster
            self._connections = module.Connections()
        return self._connections

    async def _call(self, connections: _Connections, call: Call) -> Reply:
        tries = call.tries
        pause = tries.pause
        for _ in range(tries.most - 1):
            reply = await self._try(connections, call)
            if not is_passing(reply):
                return reply
            await asyncio.sleep(pause)
            pause *= tries.factor
        return await self._try(connections, call)

    async def _try(self, connections: _Connections, call: Call) -> Reply:
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(call.timeout):
                reply = await _answered(connections, call)
        except TimeoutError:
            reply = Reply(problem=DEADLINE)
        return reply._replace(seconds=self._clock.monotonic() - began)

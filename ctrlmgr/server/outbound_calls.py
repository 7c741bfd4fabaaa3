"""Calls other processes over HTTPS; an operation of the engine requests calls with `CallOut` commands.

Guarantees:
- A call ends within its timeout, which covers the time from connecting to the last byte. If a call is retried, each
  attempt has its own timeout.
- If a server responds with 429 or 5xx and `Retry-After`, the caller sends the call again after the time in
  `Retry-After`, within the call's timeout.
- A failed call raises no error; the reply contains the error message of Go's HTTP client.
- The HTTP client library is imported at the first call, so that a process without calls does not load the library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Final, Protocol

from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.calls.replies import comes_again, is_passing
from ctrlmgr.server.go_http_errors import DEADLINE
from ctrlmgr.tracing import spans

_AGAIN: Final = 10
"""The maximum number of retries of a call whose response has `Retry-After` (client-go `rest/request.go`)."""


class _Connections(Protocol):
    async def answer(self, call: Call) -> Reply: ...

    async def close(self) -> None: ...


async def _answered(connections: _Connections, call: Call) -> Reply:
    """Return the reply to a call; send the call again while the response has `Retry-After`, at most `_AGAIN` times."""
    for _ in range(_AGAIN):
        reply = await connections.answer(call)
        if call.is_plain or not comes_again(reply):
            return reply
        await asyncio.sleep(max(reply.retry_after or 0, 0))
    return await connections.answer(call)


class Caller:
    """Calls other processes. An instance is used on one event loop."""

    def __init__(self, clock: Clock) -> None:
        """Create an object without connections; `clock` measures the duration of calls."""
        self._clock = clock
        self._connections: _Connections | None = None

    async def call(self, calls: Sequence[Call]) -> list[Reply]:
        """Make all calls concurrently and return their replies in the same order."""
        connections = self._connections
        if connections is None:
            connections = await self._connected()
        tasks = [asyncio.ensure_future(self._call(connections, each)) for each in calls]
        if len(tasks) == 1:  # cancelling this coroutine cancels the awaited task as well
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
        if self._connections is None:  # another call may have created the connections during the import
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
        with spans.span("call", **({"url": call.url, "method": call.method} if spans.is_on() else {})) as span:
            try:
                async with asyncio.timeout(call.timeout):
                    reply = await _answered(connections, call)
            except TimeoutError:
                reply = Reply(problem=DEADLINE)
            if span is not None:
                span.add(code=reply.code, problem=reply.problem)
        return reply._replace(seconds=self._clock.monotonic() - began)

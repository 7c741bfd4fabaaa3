"""What the connections of one server share: who answers, what bounds them, and what they hold together."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ctrlmgr.clock import Clock
from ctrlmgr.server.http.bounds import Bounds
from ctrlmgr.server.http.budget import Budget
from ctrlmgr.server.http.exchange import Handler
from ctrlmgr.server.http.framing import Header

_BUFFER = 64 * 1024


class Connected(Protocol):
    """A connection, as its server sees it."""

    def leave(self) -> None:
        """Let the client have one more answer, which says that it is the last."""

    def shutdown(self) -> None:
        """Close an idle connection, and any other once what is under way has been answered."""

    def abort(self) -> None:
        """Drop the connection and what has not been read."""


class ServerContext:
    """See the module's docstring; used on the event loop only."""

    def __init__(self, handler: Handler, bounds: Bounds, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        """Have `handler` answer requests."""
        self.handler = handler
        self.bounds = bounds
        self.loop = loop
        self.clock = clock
        self.connections: set[Connected] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Of the requests that are being answered."""
        self.date: Header = (b"date", b"")
        """The header that says what time it is; the server renews it."""
        self.buffer = memoryview(bytearray(_BUFFER))
        """What connections read into.

        uvloop reads TLS into a fresh 256 KiB for each piece that comes, unless the protocol lends it a buffer. All
        connections share one, since what is read is handed on before anything else is read: that spares each request
        the allocation, and each idle watcher the heap that would be torn by it.
        """
        self.heads = Budget(bounds.heads_bytes)
        """What the heads of requests under way may take."""
        self._bodies = 0

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of bodies may be held besides those that are, and count them if so."""
        if self._bodies + count > self.bounds.bodies_bytes:
            return False
        self._bodies += count
        return True

    def release(self, count: int) -> None:
        """Count them no longer."""
        self._bodies -= count

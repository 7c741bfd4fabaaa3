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
        self._bodies = Budget(bounds.bodies_bytes)
        self._peers: dict[str, Budget] = {}  # by the address of clients of whose bodies anything is held

    def reserve(self, count: int, peer: str) -> bool:
        """Say whether so many bytes of a body from `peer` may be held besides those that are, and count them if so."""
        own = self._peers.get(peer) or Budget(self.bounds.peer_bodies_bytes)
        if not own.reserve(count):
            return False
        if not self._bodies.reserve(count):
            own.release(count)
            return False
        self._peers[peer] = own
        return True

    def release(self, count: int, peer: str) -> None:
        """Count them no longer."""
        self._bodies.release(count)
        own = self._peers[peer]
        own.release(count)
        if not own.held:
            del self._peers[peer]

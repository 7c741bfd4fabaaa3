"""The state that all connections of a server share: handler, limits, and memory budgets."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ctrlmgr.clock import Clock
from ctrlmgr.http.budget import Budget
from ctrlmgr.http.exchange import Handler
from ctrlmgr.http.framing import Header
from ctrlmgr.http.size_limits import Bounds

_BUFFER = 64 * 1024


class Connected(Protocol):
    """The interface of a connection that its server uses."""

    @property
    def idle_for(self) -> float:
        """The seconds since the last request has ended; 0 while a request is running."""

    def leave(self) -> None:
        """Notify the client that its next answer is the last on this connection."""

    def shutdown(self) -> None:
        """Close the connection now if it is idle, otherwise after the current requests."""

    def abort(self) -> None:
        """Close the connection at once, and drop pending output."""


class ServerContext:
    """The state that all connections of a server share. Used on the event loop only."""

    def __init__(self, handler: Handler, bounds: Bounds, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        """Create the state; `handler` answers requests."""
        self.handler = handler
        self.bounds = bounds
        self.loop = loop
        self.clock = clock
        self.connections: set[Connected] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks of requests that are being answered."""
        self.date: Header = (b"date", b"")
        """The Date header; the server updates it every second."""
        self.buffer = memoryview(bytearray(_BUFFER))
        """The buffer into which connections read.

        Without a buffer from the protocol, uvloop allocates 256 KiB for each read of TLS. All connections can share
        this buffer, because its content is copied before the next read. The shared buffer saves an allocation for each
        request, and avoids fragmentation of the heap.
        """
        self._room = memoryview(b"")
        self.heads = Budget(bounds.heads_bytes)
        """The budget for the heads of running requests."""
        self._bodies = Budget(bounds.bodies_bytes)
        self._peers: dict[str, Budget] = {}  # the budgets by client address, for addresses with reserved bytes

    def room(self, size: int = 0) -> memoryview:
        """Return the buffer of connections that have switched protocols, with room for at least `size` bytes."""
        if len(self._room) < size:
            self._room = memoryview(bytearray(size))
        return self._room

    def reserve(self, count: int, peer: str) -> bool:
        """Reserve `count` bytes of a body from `peer`; return False if that exceeds the peer's or server's budget."""
        own = self._peers.get(peer) or Budget(self.bounds.peer_bodies_bytes)
        if not own.reserve(count):
            return False
        if not self._bodies.reserve(count):
            own.release(count)
            return False
        self._peers[peer] = own
        return True

    def release(self, count: int, peer: str) -> None:
        """Release bytes that `reserve` has reserved."""
        self._bodies.release(count)
        own = self._peers[peer]
        own.release(count)
        if not own.held:
            del self._peers[peer]

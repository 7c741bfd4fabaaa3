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

    def announce_close(self) -> None:
        """Tell the client that its next response is the last on this connection."""

    def shutdown(self) -> None:
        """Close the connection now if it is idle; if not, close it after the current requests have ended."""

    def abort(self) -> None:
        """Close the connection at once, and drop pending output."""


class ServerContext:
    """The state that all connections of a server share. Used on the event loop's thread only."""

    def __init__(self, handler: Handler, bounds: Bounds, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        """Create the state of a server; `handler` processes requests."""
        self.handler = handler
        self.bounds = bounds
        self.loop = loop
        self.clock = clock
        self.connections: set[Connected] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks of running requests."""
        self.date: Header = (b"date", b"")
        """The value of the Date header, which the server updates every second."""
        self.buffer = memoryview(bytearray(_BUFFER))
        """The buffer into which all connections read.

        Without a buffer of the application, uvloop allocates 256 KiB for each read of TLS. All connections can share
        this buffer, because its content is copied before the next read. The shared buffer saves an allocation for each
        request, and avoids fragmentation of the heap.
        """
        self._room = memoryview(b"")
        self.heads = Budget(bounds.heads_bytes)
        """The budget for the heads of running requests."""
        self._bodies = Budget(bounds.bodies_bytes)
        self._peers: dict[str, Budget] = {}  # the budgets by client address, for addresses with reserved bytes

    def room(self, size: int = 0) -> memoryview:
        """Return the read buffer for connections that have switched protocols, with room for at least `size` bytes."""
        if len(self._room) < size:
            self._room = memoryview(bytearray(size))
        return self._room

    def reserve(self, count: int, peer: str) -> bool:
        """Reserve `count` bytes for a body from `peer`.

        Return False if that exceeds the budget of the peer or the server.
        """
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

"""A tunnel: relays raw bytes between two connections that have switched protocols.

Guarantees:
- All bytes that one side of a tunnel sends before it closes reach the other side, in order, even if reading was paused
  when the side closed. Bytes in a tunnel are lost only if a side is aborted.
- Memory is bounded, because a side is read only while the other side accepts output.
- After one side has closed, the other side receives the remaining bytes and is then closed (apimachinery
  `pkg/util/proxy/upgradeaware.go`).
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

ROOM: Final = 32 * 1024
"""The additional room, in bytes, that a read buffer needs beyond the number of bytes that a TLS transport announces.

The announced number does not include the part of a TLS record that the transport has read earlier. Bytes that do not
fit into the buffer stay in the transport, and are lost if the connection ends while reading is paused.
"""


class Receiver(Protocol):
    """Receives the input of a side of a tunnel, and the changes of its state.

    The methods are called on the event loop.
    """

    def receive(self, data: bytes) -> None:
        """Process bytes that the peer has sent."""

    def resume(self) -> None:
        """Continue with output, because the side accepts more bytes."""

    def end(self) -> None:
        """Handle the end of the side; all of its bytes were received before this call."""


class Side(Protocol):
    """A connection that has switched protocols. Used on the event loop's thread only."""

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not read its pending output.

        If so, callers should write nothing until `Receiver.resume`.
        """

    def attach(self, receiver: Receiver) -> None:
        """Pass all input to `receiver`, beginning with the bytes that have been received already.

        `attach` must be called only once.
        """

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the peer does not read; a closed side drops them."""

    def pause_reading(self) -> None:
        """Stop reading from the peer."""

    def resume_reading(self) -> None:
        """Continue reading from the peer."""

    def finish(self) -> None:
        """Close the side after the peer has accepted all pending output. The tunnel drops further input."""

    def abort(self) -> None:
        """Close the side at once, and drop pending output."""


class Tunnel:
    """Relays bytes between two sides of a tunnel until both are closed."""

    def __init__(self, first: Side, second: Side) -> None:
        """Start to relay bytes between both sides."""
        self._sides = (first, second)
        self._open = 2
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        first.attach(_Relay(first, second, self))
        second.attach(_Relay(second, first, self))

    async def run(self) -> None:
        """Wait until both sides of the tunnel are closed.

        A cancellation of the coroutine aborts both sides of the tunnel.
        """
        try:
            await self._over
        finally:
            self.abort()

    def abort(self) -> None:
        """Close both sides of the tunnel at once."""
        for side in self._sides:
            side.abort()

    def note_end(self) -> None:
        """Handle the end of one of the sides of the tunnel."""
        self._open -= 1
        if not self._open and not self._over.done():
            self._over.set_result(None)


class _Relay:
    """The receiver for one side of a tunnel, which writes the side's bytes to the other side."""

    __slots__ = ("_other", "_own", "_tunnel")

    def __init__(self, own: Side, other: Side, tunnel: Tunnel) -> None:
        self._own = own
        self._other = other
        self._tunnel = tunnel

    def receive(self, data: bytes) -> None:
        self._other.write(data)
        if self._other.is_paused:
            self._own.pause_reading()

    def resume(self) -> None:
        self._other.resume_reading()

    def end(self) -> None:
        self._tunnel.note_end()
        self._other.finish()


def read_all(transport: asyncio.Transport) -> None:
    """Make a transport deliver all received bytes before it reports its end, also after a pause.

    A uvloop transport with TLS drops decoded bytes if the peer closes while reading is paused. With these limits, the
    transport does not read from the socket while it holds decoded bytes, so it cannot detect the connection's end
    before they are delivered.
    """
    limit = getattr(transport, "set_read_buffer_limits", None)  # only transports with TLS have this method
    if limit is not None:
        limit(high=1, low=0)


def close_when_written(transport: asyncio.Transport) -> None:
    """Close a transport after its output is written.

    If output is pending, the protocol must close the transport in `resume_writing`. A TLS transport that is closed at
    once would drop pending output after its shutdown timeout.
    """
    if transport.get_write_buffer_size():
        # the transport then calls `pause_writing`, and `resume_writing` when all output is written
        transport.set_write_buffer_limits(high=1, low=0)
    else:
        transport.close()

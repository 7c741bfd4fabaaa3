"""Responses that are written piece by piece for as long as somebody reads: watches, and lists too long for one piece.

Guarantees:
- A piece costs one write to the connection, of bytes that may be shared, and no task: an event for a thousand
  watchers is a thousand writes and nothing more (through ASGI's `send`, each in its task, it takes about twice that).
- What nobody reads is bounded: a connection says when its buffer is full (`paused`), and who heeds that never has
  more than a piece beyond it.
- A reader who has stopped reading can be cut off (`abort`) without being waited for.

Whoever answers finds the way in through `scope["extensions"]`, where `StreamingProtocol` has put it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.protocol import Protocol
from ctrlmgr.server.responses import Header, Scope, Send

_EXTENSION = "ctrlmgr.stream"


class Disconnected(CtrlmgrError):
    """The client has gone away, or has not read for too long."""


class StreamingProtocol(Protocol):
    """A connection whose responses can be streams."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start with no stream open."""
        super().__init__(*args, **kwargs)
        self._stream: Stream | None = None
        self._extensions = {_EXTENSION: self._open}

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]  # ASGI leaves their values open

    def resume_writing(self) -> None:
        """Let the stream go on: its reader has read."""
        super().resume_writing()
        if self._stream is not None:
            self._stream.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the stream."""
        super().connection_lost(exc)
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.lose()

    def timeout_keep_alive_handler(self) -> None:
        """Drop a connection that has been idle for long, even if its last answer has not been read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def close_stream(self) -> None:
        """Forget the stream: its response is complete."""
        self._stream = None

    def _open(self) -> Stream:
        self._stream = Stream(self)
        return self._stream


class Stream:
    """The body of one response, in chunks; used on the event loop only."""

    __slots__ = ("_on_lost", "_protocol", "_resumed", "_send", "cut_off", "lost")

    def __init__(self, protocol: StreamingProtocol) -> None:
        """Write to the connection of `protocol`."""
        self.lost = False
        """Whether the client has gone away; what is written then goes nowhere."""
        self.cut_off = False
        """Whether that is because it did not read."""
        self._protocol = protocol
        self._send: Send | None = None
        self._on_lost: Callable[[], None] | None = None
        self._resumed: asyncio.Future[None] | None = None

    @classmethod
    async def begin(cls, scope: Scope, send: Send, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of a response, at once, and return the stream of its body."""
        stream: Stream = scope["extensions"][_EXTENSION]()
        stream._send = send
        await send({"type": "http.response.start", "status": code, "headers": headers})
        return stream

    @property
    def paused(self) -> bool:
        """Whether the reader is behind, so that nothing should be written until `drain` returns."""
        return self._protocol.flow.write_paused

    def on_lost(self, call: Callable[[], None]) -> None:
        """Have `call` called when the client goes away, at once if it has."""
        self._on_lost = call
        if self.lost:
            call()

    def write(self, chunks: bytes) -> None:
        """Write one or more pieces that `chunk` has made."""
        if not self.lost:
            self._protocol.transport.write(chunks)

    async def send(self, piece: bytes) -> None:
        """Write a piece as it is, framed as the response's head has it."""
        if self._send is not None and not self.lost:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def drain(self, patience: float) -> None:
        """Return when the reader has caught up; raises `Disconnected` if it goes away.

        One that has read nothing `patience` seconds from now is cut off.
        """
        if self.paused and not self.lost:
            loop = asyncio.get_running_loop()
            self._resumed = loop.create_future()
            timer = loop.call_later(patience, self.abort)
            try:
                await self._resumed
            finally:
                timer.cancel()
                self._resumed = None
        if self.lost:
            raise Disconnected

    async def end(self) -> None:
        """Complete the response, so that the connection can be used again."""
        self._protocol.close_stream()
        if self._send is not None and not self.lost:
            await self._send({"type": "http.response.body", "body": b""})

    def abort(self) -> None:
        """Cut the reader off: drop the connection and what has not been read; `lose` follows."""
        self.cut_off = True
        self._protocol.transport.abort()

    def wake(self) -> None:
        """Wake whoever drains."""
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def lose(self) -> None:
        """Note that the client has gone away."""
        self.lost = True
        self.wake()
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()


def chunk(body: bytes) -> bytes:
    """Frame a piece of a body (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(body), body)

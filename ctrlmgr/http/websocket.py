"""Implements WebSocket (RFC 6455) as a server, on a connection that has switched protocols.

Guarantees:
- A WebSocket message has at most `_LONGEST` bytes. A longer or malformed message closes the connection with the status
  code that the RFC defines.
- The WebSocket answers pings. A close frame is answered with a close frame, and the connection then ends.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Final, Protocol

from ctrlmgr.http.framing import Header
from ctrlmgr.http.tunnel import Receiver, Side

TEXT: Final = 1
BINARY: Final = 2
_CONTINUATION: Final = 0
_CLOSE: Final = 8
_PING: Final = 9
_PONG: Final = 10

NORMAL: Final = 1000
_PROTOCOL_ERROR: Final = 1002
_TOO_LARGE: Final = 1009
_LONGEST: Final = 1 << 22
"""Maximum size of a WebSocket message in bytes."""
_LONGEST_CONTROL: Final = 125
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Messages(Protocol):
    """Receives the messages of a WebSocket. The methods are called on the event loop."""

    def message(self, data: bytes) -> None:
        """Process one message of the client."""

    def resume(self) -> None:
        """Continue with output, because the client accepts more bytes."""

    def end(self) -> None:
        """Record that the connection is closed."""


def accepting(key: bytes, protocol: str) -> list[Header]:
    """Return the headers of the response that accepts a WebSocket with the client's key.

    `protocol` is the selected WebSocket subprotocol, which may be empty.
    """
    proof = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    headers = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", proof)]
    return [*headers, (b"Sec-WebSocket-Protocol", protocol.encode())] if protocol else headers


def offered_protocols(headers: Sequence[Header]) -> list[str]:
    """Return the subprotocols that a client offers, in the client's order."""
    values = [value.decode("latin-1") for name, value in headers if name == b"sec-websocket-protocol"]
    return [each.strip() for value in values for each in value.split(",") if each.strip()]


class WebSocket(Receiver):
    """The server's endpoint of a WebSocket connection. Used on the event loop's thread only."""

    def __init__(self, side: Side) -> None:
        """Create a WebSocket on `side`; `open` starts it."""
        self._side = side
        self._messages: Messages | None = None
        self._held = bytearray()
        self._parts: list[bytes] = []
        self._size = 0
        self._is_closing = False

    @property
    def is_paused(self) -> bool:
        """Whether the client does not read its pending output."""
        return self._side.is_paused

    def open(self, messages: Messages) -> None:
        """Pass all messages to `messages`. `open` must be called only once."""
        self._messages = messages
        self._side.attach(self)

    def send(self, data: bytes, kind: int = BINARY) -> None:
        """Send one message to the client."""
        if not self._is_closing:
            self._side.write(_frame(kind, data))

    def pause_reading(self) -> None:
        """Stop reading from the client."""
        self._side.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the client."""
        self._side.resume_reading()

    def finish(self, code: int = NORMAL) -> None:
        """Close the WebSocket after the client has read all output."""
        if not self._is_closing:
            self._side.write(_frame(_CLOSE, code.to_bytes(2, "big")))
            self._is_closing = True
            self._side.finish()

    def abort(self) -> None:
        """Close the WebSocket at once."""
        self._side.abort()

    # The side calls the following methods.

    def receive(self, data: bytes) -> None:
        """Process bytes that the peer has sent."""
        self._held += data
        while not self._is_closing and self._take():
            pass

    def resume(self) -> None:
        """Continue with output."""
        if self._messages is not None:
            self._messages.resume()

    def end(self) -> None:
        """Report the end of the connection to the receiver of messages."""
        self._is_closing = True
        messages, self._messages = self._messages, None
        if messages is not None:
            messages.end()

    def _take(self) -> bool:
        """Process the next frame; return False if the frame is incomplete."""
        held = self._held
        if len(held) < 2:
            return False
        size, begins = held[1] & 0x7F, 2
        if size >= 126:
            begins += 2 if size == 126 else 8
            if len(held) < begins:
                return False
            size = int.from_bytes(held[2:begins], "big")
        if not held[1] & 0x80 or held[0] & 0x70:
            self.finish(_PROTOCOL_ERROR)  # a client masks its frames, and no extension was negotiated
            return False
        if self._size + size > _LONGEST:
            self.finish(_TOO_LARGE)
            return False
        ends = begins + 4 + size
        if len(held) < ends:
            return False
        mask, payload = bytes(held[begins : begins + 4]), bytes(held[begins + 4 : ends])
        first = held[0]
        del held[:ends]
        self._frame(first & 0x0F, _unmasked(payload, mask), is_last=bool(first & 0x80))
        return True

    def _frame(self, kind: int, payload: bytes, *, is_last: bool) -> None:
        if kind in (_CONTINUATION, TEXT, BINARY):
            self._data(payload, is_last=is_last)
        elif not is_last or len(payload) > _LONGEST_CONTROL:
            self.finish(_PROTOCOL_ERROR)
        elif kind == _PING:
            self._side.write(_frame(_PONG, payload))
        elif kind == _CLOSE:
            self.finish(NORMAL)

    def _data(self, payload: bytes, *, is_last: bool) -> None:
        self._parts.append(payload)
        self._size += len(payload)
        if is_last:
            message = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            if self._messages is not None:
                self._messages.message(message)


class WebSocketSide(Messages):
    """A WebSocket as a side of a tunnel, which joins the contents of its messages to one sequence of bytes."""

    def __init__(self, side: Side) -> None:
        """Create a side that relays raw bytes as binary messages on `side`."""
        self._socket = WebSocket(side)
        self._receiver: Receiver | None = None

    @property
    def is_paused(self) -> bool:
        """Whether the client does not read its pending output."""
        return self._socket.is_paused

    def attach(self, receiver: Receiver) -> None:
        """Pass the content of all messages to `receiver`."""
        self._receiver = receiver
        self._socket.open(self)

    def write(self, data: bytes) -> None:
        """Send bytes as one message."""
        self._socket.send(data)

    def pause_reading(self) -> None:
        """Stop reading from the client."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the client."""
        self._socket.resume_reading()

    def finish(self) -> None:
        """Close the WebSocket after the client has read all output."""
        self._socket.finish()

    def abort(self) -> None:
        """Close the WebSocket at once."""
        self._socket.abort()

    def message(self, data: bytes) -> None:
        """Pass the content of a message to the receiver."""
        if self._receiver is not None and data:
            self._receiver.receive(data)

    def resume(self) -> None:
        """Continue with output."""
        if self._receiver is not None:
            self._receiver.resume()

    def end(self) -> None:
        """Report the end of the WebSocket to the receiver."""
        if self._receiver is not None:
            self._receiver.end()


def _frame(kind: int, payload: bytes) -> bytes:
    """Return a WebSocket frame without mask and fragmentation."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | kind, size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 127)) + size.to_bytes(8, "big")
    return head + payload


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    """Return the payload of a WebSocket frame without its mask.

    Payload and mask are converted to two large integers, because Python computes the XOR of integers fast.
    """
    size = len(payload)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")

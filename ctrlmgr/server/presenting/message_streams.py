"""Sends a stream as WebSocket messages to a client that requests a WebSocket, as a browser does.

Guarantees:
- The server sends a watch as one text message for each event. The server sends a log as binary messages, or as text
  messages in base64.
- The server ignores messages from the client. If the client closes the WebSocket, the stream ends.
- If a client does not read, the stream waits. If the client reads nothing for a long time, the server disconnects the
  client.

Source: apimachinery `pkg/util/httpstream/wsstream` (`Reader`), apiserver `pkg/endpoints/handlers/watch.go`
(`HandleWS`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ctrlmgr.errors import Forbidden
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.hop_headers import is_upgrade
from ctrlmgr.http.response_stream import Framing, Stream
from ctrlmgr.http.websocket import BINARY, TEXT, WebSocket, accepting, offered_protocols
from ctrlmgr.server.aggregating.user_headers import without_credentials
from ctrlmgr.server.request import Request

Encode: TypeAlias = Callable[[bytes], Iterator[tuple[int, bytes]]]
"""A function that yields the messages for a piece of a stream: their kinds and contents."""


def _as_lines(piece: bytes) -> Iterator[tuple[int, bytes]]:
    return ((TEXT, line) for line in piece.splitlines(keepends=True))


def _as_binary(piece: bytes) -> Iterator[tuple[int, bytes]]:
    yield BINARY, piece


def _as_base64(piece: bytes) -> Iterator[tuple[int, bytes]]:
    yield TEXT, base64.b64encode(piece)


_LOG_PROTOCOLS: Final[Mapping[str, Encode]] = {
    "": _as_binary,
    "binary.k8s.io": _as_binary,
    "base64.binary.k8s.io": _as_base64,
}


def asks_for_messages(request: Request) -> bool:
    """Return whether the client requests WebSocket messages and its request allows them."""
    is_websocket = request.header(b"upgrade").lower() == b"websocket"
    return is_websocket and is_upgrade(request.raw_headers) and request.upgrades


async def begin_watch(request: Request, headers: Sequence[Header]) -> Stream:
    """Begin the response to a watch: WebSocket messages if the client requests them, or a stream with `headers`."""
    if not asks_for_messages(request):
        return await request.begin_stream(200, headers)
    return _switched(request, next(iter(_offered(request)), ""), _as_lines)


async def begin_log(request: Request, headers: Sequence[Header]) -> Stream:
    """Begin the response to a log request: WebSocket messages if the client requests them, or a stream with `headers`.

    Raises `Forbidden` if the client offers no subprotocol for logs.
    """
    if not asks_for_messages(request):
        return await request.begin_stream(200, headers)
    offered = _offered(request) or [""]
    protocol = next((each for each in offered if each in _LOG_PROTOCOLS), None)
    if protocol is None:
        supported = " ".join(_LOG_PROTOCOLS).strip()
        raise Forbidden(f"requested protocol(s) are not supported: [{' '.join(offered)}]; supports [{supported}]")
    encode = _LOG_PROTOCOLS[protocol]
    return _switched(request, protocol, encode, *encode(b""))  # an empty message marks the beginning of the log


def _offered(request: Request) -> list[str]:
    """Return the client's WebSocket subprotocols, without the one that contains its token."""
    return offered_protocols([*without_credentials(request.raw_headers)])


def _switched(request: Request, protocol: str, encode: Encode, *first: tuple[int, bytes]) -> Stream:
    """Switch to WebSocket, send the `first` messages, and return the stream for further messages."""
    socket = WebSocket(request.switch(accepting(request.header(b"sec-websocket-key"), protocol)))
    stream = Stream(_Outlet(socket, encode), Framing.PLAIN, None, socket.finish)
    socket.open(_Events(stream))
    for kind, message in first:
        socket.send(message, kind)
    return stream


class _Outlet:
    """Writes the pieces of a stream as messages."""

    def __init__(self, socket: WebSocket, encode: Encode) -> None:
        self._socket = socket
        self._encode = encode

    @property
    def is_paused(self) -> bool:
        return self._socket.is_paused

    def write(self, data: bytes) -> None:
        for kind, message in self._encode(data):
            self._socket.send(message, kind)

    def abort(self) -> None:
        self._socket.abort()


class _Events:
    """Passes the events of a WebSocket to the stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def message(self, data: bytes) -> None:
        """Ignore a message of the client."""

    def resume(self) -> None:
        self._stream.wake()

    def end(self) -> None:
        self._stream.lose()

"""One HTTP connection: uvicorn's, with the bounds it leaves to a proxy and the client certificate it does not pass on.

Guarantees:
- A client that has not sent its whole head `HEAD_TIMEOUT` seconds after it connected, or after it began a request,
  is disconnected (net/http's ReadHeaderTimeout in kube-apiserver).
- A head of more than `HEAD_LIMIT` bytes is answered 431 without being kept.
- A server that stops is not held up by clients that are idle, or that have their answer.
- `scope["client_certificate"]` is the verified certificate of the client as `ssl` decodes it, None without one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT = 32.0
"""Seconds for the head of a request."""

HEAD_LIMIT = 1 << 20
"""Bytes of request line and headers together."""

LINGER = 0.5
"""Seconds that a client has, when the server stops, to read the last of its answer."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"connection: close\r\ncontent-length: 35\r\n\r\n431 Request Header Fields Too Large"
)


class Protocol(HttpToolsProtocol):
    """See the module's docstring. One instance a connection, used on the event loop only."""

    def __init__(self, config: uvicorn.Config, *args: Any, **kwargs: Any) -> None:
        """Start with nothing received."""
        super().__init__(config, *args, **kwargs)
        self._certificate: dict[str, Any] | None = None
        self._in_head = True  # whether the head of a request is awaited
        self._head_size = 0  # how much of it has come
        self._is_leaving = False  # whether the server stops
        # Ends the wait; a head that comes in one piece, as most do, needs none.
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._certificate = transport.get_extra_info("peercert") or None
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come; a head that is still not over must not grow too large, nor take too long."""
        super().data_received(data)
        if not self._in_head:
            return
        self._head_size += len(data)
        if self._head_size > HEAD_LIMIT:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._head_timer is None:
            self._time_head()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["client_certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]  # ours
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Hand the request to the application."""
        self._in_head = False
        self._head_size = 0
        self._forget_timer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Go on to the next request, unless the server stops."""
        super().on_response_complete()
        if self._is_leaving:
            self._drop_soon()

    def shutdown(self) -> None:
        """Close the connection because the server stops; first answer what is under way."""
        self._is_leaving = True
        super().shutdown()
        self._drop_soon()

    def _drop_soon(self) -> None:
        """See a closing connection closed: TLS would wait half a minute for the client to say goodbye as well.

        A client that is idle, as in every pool of connections, does not read and so does not answer.
        """
        if self.transport.is_closing():
            self.loop.call_later(LINGER, self.transport.abort)

    def _time_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

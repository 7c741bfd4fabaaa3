"""A connection that has just been opened over TLS: the handshake decides which HTTP version it speaks.

Guarantees: what is negotiated (ALPN, RFC 7301) is what is spoken; a client that negotiates nothing speaks HTTP/1.
"""

from __future__ import annotations

import asyncio

from ctrlmgr.server.http.connection import Connection
from ctrlmgr.server.http.context import ServerContext
from ctrlmgr.server.http.http2.connection import Http2Connection
from ctrlmgr.server.http.tls import HTTP2


class Newcomer(asyncio.BufferedProtocol):
    """The protocol of a transport until its handshake is over; then it is a `Connection` or an `Http2Connection`."""

    __slots__ = ("_context",)

    def __init__(self, context: ServerContext) -> None:
        """Connect to a server."""
        self._context = context

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Leave the transport to who speaks what has been negotiated."""
        negotiated = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        connection = Http2Connection(self._context) if negotiated == HTTP2 else Connection(self._context)
        transport.set_protocol(connection)
        connection.connection_made(transport)

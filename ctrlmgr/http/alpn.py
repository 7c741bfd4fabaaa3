"""Selects the HTTP version of a new TLS connection from the handshake.

Guarantees: the protocol is the one that the handshake negotiated (ALPN, RFC 7301), or HTTP/1.1 if the handshake
negotiated no protocol.
"""

from __future__ import annotations

import asyncio

from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.tls_context import HTTP2


class AlpnProtocol(asyncio.BufferedProtocol):
    """The asyncio protocol of a connection until its TLS handshake ends; then another protocol replaces it.

    The new protocol is an HTTP/1.1 or an HTTP/2 connection, as the handshake has negotiated.
    """

    __slots__ = ("_context",)

    def __init__(self, context: ServerContext) -> None:
        """Create a protocol whose connections get `context`."""
        self._context = context

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Replace this protocol with a connection of the negotiated protocol."""
        negotiated = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        connection = Http2Connection(self._context) if negotiated == HTTP2 else Connection(self._context)
        transport.set_protocol(connection)
        connection.connection_made(transport)

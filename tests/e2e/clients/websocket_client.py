"""Connects to a server with a WebSocket of the package websocket-client, in the way in which browsers connect."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import websocket

from tests.e2e.serving import DEADLINE, Server


@contextmanager
def connected(server: Server, path: str, *protocols: str, token: str = "") -> Iterator[websocket.WebSocket]:
    """Connect with the token in a header, or, if `token` is set, with the token as a subprotocol, as browsers do."""
    header = [] if token else [f"Authorization: Bearer {server.token}"]
    carried = [f"base64url.bearer.authorization.k8s.io.{token}"] if token else []
    parts = urlsplit(server.url)
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE) as raw,
        server._trust.wrap_socket(raw, server_hostname=parts.hostname) as secure,
    ):
        client = websocket.create_connection(
            server.url.replace("https", "wss") + path,
            header=header,
            subprotocols=[*carried, *protocols],
            socket=secure,
        )
        try:
            yield client
        finally:
            client.close()


def messages(client: websocket.WebSocket) -> Iterator[tuple[int, bytes]]:
    """Yield the types and contents of all WebSocket messages until the server closes the connection."""
    while True:
        kind, data = client.recv_data()
        if kind == websocket.ABNF.OPCODE_CLOSE:
            return
        yield kind, data

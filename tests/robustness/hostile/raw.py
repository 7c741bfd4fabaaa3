"""Sends requests byte by byte, including requests that no client library sends, and reads the responses."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.robustness.serving import Site

PATIENCE = 30.0
"""Timeout for a response, in seconds."""

JSON = "application/json"


class Reply(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        return json.loads(self.body)


def connect(site: Site, trust: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """Return a TLS connection to a server; `trust` may contain a client certificate."""
    plain = socket.create_connection((site.host, site.port), timeout=PATIENCE)
    return (trust or site.trust).wrap_socket(plain, server_hostname=site.host)


def receive(connection: ssl.SSLSocket) -> Reply:
    """Return the next response on the connection."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    body = response.read()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def exchange(site: Site, pieces: Iterable[bytes]) -> Reply:
    """Send bytes on a new connection and return the response, which may arrive before all bytes are sent."""
    with connect(site) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            pass  # a server that answers early may also close early
        return receive(connection)


def head(site: Site, method: str, path: str, headers: Mapping[str, str | None] | None = None) -> bytes:
    """Return the header of a request by the administrator; a header with the value None is left out."""
    given = {
        "host": site.host,
        "authorization": f"Bearer {site.token}",
        "content-type": JSON,
        "user-agent": "robustness",
        **(headers or {}),
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def ask(
    site: Site, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
) -> Reply:
    """Send a request and return the response."""
    given = {"content-length": str(len(body)), **(headers or {})}
    return exchange(site, [head(site, method, path, given), body])

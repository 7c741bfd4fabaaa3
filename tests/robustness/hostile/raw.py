"""Requests byte by byte, for requests that no client sends; and their responses."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.robustness.serving import Site

PATIENCE = 30.0
"""Seconds after which an answer is overdue."""

JSON = "application/json"


class Reply(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        return json.loads(self.body)


def connect(site: Site, trust: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """Return a connection over TLS; `trust` may have a client certificate."""
    plain = socket.create_connection((site.host, site.port), timeout=PATIENCE)
    return (trust or site.trust).wrap_socket(plain, server_hostname=site.host)


def receive(connection: ssl.SSLSocket) -> Reply:
    """Return the next answer."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    body = response.read()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def exchange(site: Site, pieces: Iterable[bytes]) -> Reply:
    """Send bytes on a connection of their own and return the answer, which may come before all have been sent."""
    with connect(site) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            pass  # whoever answers early may also hang up early
        return receive(connection)


def head(site: Site, method: str, path: str, headers: Mapping[str, str | None] | None = None) -> bytes:
    """Return the head of a request by the administrator; a header that is None is left out."""
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
    """Send a request and return the answer."""
    given = {"content-length": str(len(body)), **(headers or {})}
    return exchange(site, [head(site, method, path, given), body])

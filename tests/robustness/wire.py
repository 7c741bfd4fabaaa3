"""A minimal HTTPS client: it sends one request at a time on a connection, and reads responses whole or line by line.

The client distinguishes requests that were certainly not sent (`RequestNotSent`) from requests that may have been sent
(`ConnectionLost`), because a history must record the difference.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.robustness.serving import Site

PATIENCE = 20.0
"""Timeout for a response, in seconds; a server that is paused or waits for its database may be slow."""

_LONGEST_HEAD = 1 << 20


class RequestNotSent(Exception):
    """Raised if there is no connection, so that the request was not sent."""


class ConnectionLost(Exception):
    """Raised if the connection broke, or if no byte arrived within the timeout."""


class Response(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> Any:
        return json.loads(self.body)


class Connection:
    """A connection that is opened when the first request needs it, and reused for later requests."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(
        self, method: str, path: str, body: object = None, *, agent: str = "robustness", content_type: str = ""
    ) -> Response:
        """Return the response to a request; raises `RequestNotSent` if the request was not sent, and
        `ConnectionLost` if the response did not arrive.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                reader = await self._send(method, path, body, agent, content_type)
                code, headers = await _head(reader)
                content = b"".join([piece async for piece in _body(reader, headers)])
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise ConnectionLost(repr(error)) from error
        if headers.get("connection") == "close":
            self.close()
        return Response(code, headers, content)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the status code as a string, then each line of the body when it arrives; raise `RequestNotSent` if the
        request was not sent, or `ConnectionLost` if the connection breaks.
        """
        try:
            reader = await self._send("GET", path, None, "robustness", "")
            code, headers = await _head(reader)
            yield str(code).encode()
            rest = b""
            async for piece in _body(reader, headers):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line
        except (OSError, EOFError) as error:
            raise ConnectionLost(repr(error)) from error
        finally:
            self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _send(self, method: str, path: str, body: object, agent: str, content_type: str) -> asyncio.StreamReader:
        content = b"" if body is None else json.dumps(body).encode()
        reader, writer = await self._connected()
        head = [
            f"{method} {path} HTTP/1.1",
            f"host: {self._site.host}",
            f"authorization: Bearer {self._site.token}",
            f"user-agent: {agent}",
            f"content-type: {content_type or 'application/json'}",
            f"content-length: {len(content)}",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode() + content)
        await writer.drain()
        return reader

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None or self._reader.at_eof():
            self.close()
            try:
                self._reader, self._writer = await asyncio.open_connection(
                    self._site.host, self._site.port, ssl=self._site.trust, limit=_LONGEST_HEAD
                )
            except OSError as error:
                raise RequestNotSent(repr(error)) from error
        return self._reader, self._writer


@contextmanager
def closing(connections: Sequence[Connection]) -> Iterator[None]:
    """Close the open connections when the block ends."""
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if "chunked" not in headers.get("transfer-encoding", ""):
        yield await reader.readexactly(int(headers.get("content-length", "0")))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")


def path_of(resource: str, namespace: str = "", name: str = "", query: Mapping[str, str] | None = None) -> str:
    """Return the URL path of a resource in the core group, or of an object of the resource, with a query."""
    path = f"/api/v1/namespaces/{namespace}/{resource}" if namespace else f"/api/v1/{resource}"
    path += f"/{name}" if name else ""
    return f"{path}?{urlencode(query)}" if query else path

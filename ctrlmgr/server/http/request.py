"""A request as the application sees it: what ASGI hands over, read once and only as far as somebody asks.

Guarantees:
- A body is never held beyond `BODY_LIMIT` bytes, however it is sent, and must be there within `BODY_PATIENCE`.
- A query is read as Go's `url.Values`: pairs that do not parse are dropped, names keep all their values in order.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from ctrlmgr.authentication.user import User
from ctrlmgr.engine.options import Requester
from ctrlmgr.errors import RequestEntityTooLarge, RequestTimeout, StatusDetails, UnsupportedMediaType
from ctrlmgr.metrics import RequestMetrics
from ctrlmgr.server.http.responses import Header, Receive, Response, Scope, Send, send_whole
from ctrlmgr.server.http.stream import Disconnected, Stream, StreamingProtocol
from ctrlmgr.server.presenting.negotiation import is_pretty
from ctrlmgr.server.routes import Location

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body (kube-apiserver's MaxRequestBodyBytes)."""

BODY_PATIENCE = 60.0
"""Seconds in which a body must have come (kube-apiserver's --request-timeout)."""

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NO_QUERY: dict[str, list[str]] = {}
_ANONYMOUS = User("system:anonymous")


class Request:
    """One request, and the way to answer it."""

    __slots__ = (
        "_headers",
        "_query",
        "_receive",
        "_scope",
        "_send",
        "code",
        "headers",
        "location",
        "method",
        "metrics",
        "user",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, location: Location) -> None:
        """Wrap what ASGI hands over; `location` is where the path leads."""
        self.method: str = scope["method"]
        self.location = location
        self.user = _ANONYMOUS
        """Who sent it, once that has been found out."""
        self.code = 0
        """The status of the answer, once that has been begun: nothing else can be said from then on."""
        self.metrics: RequestMetrics | None = None
        """What it is counted with, if at all."""
        self.headers: Sequence[Header] = ()
        """What the answer has besides its own headers, whatever it is."""
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers: dict[bytes, bytes] | None = None
        self._query: dict[str, list[str]] | None = None

    @property
    def raw_headers(self) -> Sequence[Header]:
        """The headers as they came, names in lower case."""
        headers: Sequence[Header] = self._scope["headers"]
        return headers

    def header(self, name: bytes) -> bytes:
        """Return a header, empty if it is not there; of several the first counts, as in Go."""
        headers = self._headers
        if headers is None:
            headers = self._headers = dict(reversed(self._scope["headers"]))
        return headers.get(name, b"")

    @property
    def query(self) -> dict[str, list[str]]:
        """The query's parameters."""
        query = self._query
        if query is None:
            raw: bytes = self._scope["query_string"]
            query = self._query = parse_query(raw) if raw else _NO_QUERY
        return query

    @property
    def wants_pretty(self) -> bool:
        """Whether a person is going to read the answer: `?pretty` says so, or what they use."""
        return is_pretty(self.query, self.header(b"user-agent"))

    @property
    def accepts_gzip(self) -> bool:
        """Whether the answer may be packed with gzip."""
        return any(part.strip() == b"gzip" for part in self.header(b"accept-encoding").split(b","))

    @property
    def accepts_chunks(self) -> bool:
        """Whether the answer may be sent in chunks, its length untold (RFC 9112, section 6.1)."""
        return bool(self._scope["http_version"] != "1.0")

    @property
    def requester(self) -> Requester:
        """Who asks, as the log remembers it."""
        agent = self.header(b"user-agent").decode("utf-8", "replace")
        return Requester(self.user.name, tuple(self.user.groups), agent)

    async def body(self) -> bytes:
        """Read the body; raises `RequestEntityTooLarge`, `UnsupportedMediaType` if it is packed, `RequestTimeout`."""
        encoding = self.header(b"content-encoding")
        if encoding and encoding.lower() != b"identity":
            raise UnsupportedMediaType("the body of the request must not be encoded (Content-Encoding)")
        length = self.header(b"content-length")
        if length.isdigit() and int(length) > BODY_LIMIT:
            raise _too_large()
        connection = StreamingProtocol.of(self._scope)
        body = connection.body() if connection is not None else None
        if body is not None:
            if len(body) > BODY_LIMIT:
                raise _too_large()
            return body
        try:
            async with asyncio.timeout(BODY_PATIENCE):
                return await self._read()
        except TimeoutError as error:
            words = "Timeout: request did not complete within the allotted timeout"
            raise RequestTimeout(words, details=StatusDetails()) from error

    async def _read(self) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
            size += len(parts[-1])
            if size > BODY_LIMIT:
                raise _too_large()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def respond(self, response: Response, more: Sequence[Header] = ()) -> None:
        """Send an answer, with `more` headers besides its own."""
        code, body, headers = response
        self.code = code
        if more or self.headers:
            headers = (*headers, *self.headers, *more)
        connection = StreamingProtocol.of(self._scope)
        if connection is None or not connection.answer(code, headers, body):
            await send_whole(self._send, code, headers, body)

    async def begin_stream(self, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of an answer whose body is a stream."""
        self.code = code
        return await Stream.begin(self._scope, self._send, code, (*self.headers, *headers))

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The client's verified certificate as `ssl` decodes it, None if there is none."""
        certificate: Mapping[str, Any] | None = self._scope.get("client_certificate")
        return certificate


def _too_large() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity is too large: limit is {BODY_LIMIT}")


def parse_query(raw: bytes) -> dict[str, list[str]]:
    """Read a query; see the module's docstring."""
    query: dict[str, list[str]] = {}
    for pair in raw.split(b"&"):
        if not pair or b";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, value = pair.partition(b"=")
        query.setdefault(_unescaped(name), []).append(_unescaped(value))
    return query


def _unescaped(text: bytes) -> str:
    if b"+" in text:
        text = text.replace(b"+", b" ")
    if b"%" in text:
        text = unquote_to_bytes(text)
    return text.decode("utf-8", "replace")

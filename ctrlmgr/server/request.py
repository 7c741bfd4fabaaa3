"""Defines the API's form of a request; a `Request` parses its `Exchange` only when necessary.

Guarantees:
- At most `BODY_LIMIT` bytes of a request body are held in memory. The request body must arrive within `BODY_PATIENCE`
  seconds.
- A response needs no memory except its own bytes and the TLS buffer of one piece. The server sends a response as fast
  as the client reads.
- The query is parsed as Go's `url.Values`: malformed pairs are dropped, and names keep all their values in order. A
  query with too many pairs counts as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from urllib.parse import unquote_to_bytes

from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.header_lines import HeaderLines, by_name
from ctrlmgr.authentication.user import User
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import (
    ApiError,
    CtrlmgrError,
    RequestEntityTooLarge,
    RequestTimeout,
    StatusDetails,
    TooManyRequests,
    UnsupportedMediaType,
)
from ctrlmgr.http.exchange import BodyTooLarge, BodyTooSlow, Exchange, TooManyBodies
from ctrlmgr.http.framing import Header
from ctrlmgr.http.response_stream import ONE_WRITE, Disconnected, Stream
from ctrlmgr.http.tunnel import Side
from ctrlmgr.metrics import RequestMetrics
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.filters.in_flight_limits import FREE, Seat
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.presenting.negotiation import is_pretty
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.routes import Location
from ctrlmgr.tracing.latencies import RESPONSE_WRITE, Latencies
from ctrlmgr.tracing.spans import ActiveSpan

BODY_LIMIT = 3 * 1024 * 1024
"""Maximum size of a request body in bytes (kube-apiserver's MaxRequestBodyBytes)."""

AGENT_LENGTH = 256
"""Maximum length of the User-Agent that is stored in events, in bytes."""

BODY_PATIENCE = 60.0
"""Seconds within which a request body must arrive (kube-apiserver's --request-timeout)."""

PATIENCE = 30.0
"""Seconds within which the client must read at least a part of a long response."""

MOST_PARAMETERS = 10_000
"""Maximum number of pairs in a query; a longer query is ignored (Go 1.25 `net/url`, `urlmaxqueryparams`)."""

_TIMED_OUT = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_TIMED_OUT_HEADERS: Sequence[Header] = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-cache, private"),
)
_MOST_ENCODINGS = 1_000
_ID = b"audit-id"
_NOT_MEASURED: AbstractContextManager[None] = nullcontext()
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NO_QUERY: dict[str, list[str]] = {}
_ANONYMOUS = User("system:anonymous")


class Request:
    """One HTTP request, with methods that answer the request."""

    __slots__ = (
        "_exchange",
        "_id",
        "_ids",
        "_query",
        "answered_at",
        "audit",
        "code",
        "has_timed_out",
        "headers",
        "latencies",
        "location",
        "logged_seat",
        "method",
        "metrics",
        "monotonic",
        "notes",
        "performed_at",
        "seat",
        "span",
        "user",
    )

    def __init__(
        self, exchange: Exchange, location: Location, ids: RequestIds, monotonic: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Create a request from an exchange.

        `location` is the parsed URL path, and `ids` generates ids for requests without an id. `monotonic` returns the
        time in seconds.
        """
        self._ids = ids
        self._id = b""
        self.method = exchange.method
        self.location = location
        self.user = _ANONYMOUS
        """The user of the request, which authentication sets."""
        self.notes = AuthenticationNotes()
        """Warnings and annotations that the authenticators returned."""
        self.code = 0
        """The HTTP status of the response; 0 until the response's head is sent."""
        self.metrics: RequestMetrics | None = None
        """The metrics in which the request is counted; None if it is not counted."""
        self.seat: Seat = FREE
        """The request's place among the concurrent requests; the request returns the place while the server waits for
        the body.
        """
        self.has_timed_out = False
        """Whether the request has taken too long, so that the output of its handler is dropped."""
        self.headers: Sequence[Header] = ()
        """Headers that are added to every response to the request."""
        self.audit: Record | None = None
        """The audit record of the request; None if the request is not audited."""
        self.span: ActiveSpan | None = None
        """The span of the request; None if tracing is off."""
        self.latencies: Latencies | None = None
        """The latencies of the request's stages; None if they are not measured."""
        self.performed_at = 0.0
        """The time at which the request had passed all filters; 0 if it has not."""
        self.answered_at = 0.0
        """The time at which the response began; 0 if it has not begun."""
        self.monotonic = monotonic
        self.logged_seat: Seat = FREE
        """The place of the request among the concurrent requests, as the request log shows it."""
        self._exchange = exchange
        self._query: dict[str, list[str]] | None = None

    @property
    def raw_headers(self) -> HeaderLines:
        """The request headers, with names in lower case."""
        return self._exchange.headers

    def header(self, name: bytes) -> bytes:
        """Return the first value of a header; empty if it is missing."""
        return self._exchange.headers.read(by_name).get(name, b"")

    @property
    def query(self) -> dict[str, list[str]]:
        """The parsed query parameters of the request."""
        query = self._query
        if query is None:
            raw = self._exchange.query
            query = self._query = parse_query(raw) if raw else _NO_QUERY
        return query

    @property
    def wants_pretty(self) -> bool:
        """Return whether JSON is indented, which depends on `?pretty` or the user agent."""
        return is_pretty(self.query, self.header(b"user-agent"))

    @property
    def accepts_gzip(self) -> bool:
        """Return whether the client accepts responses that are compressed with gzip."""
        return any(part.strip() == b"gzip" for part in self.header(b"accept-encoding").split(b",", _MOST_ENCODINGS))

    @property
    def accepts_chunks(self) -> bool:
        """Return whether the client supports chunks of unknown total length (RFC 9112, section 6.1)."""
        return self._exchange.version != "1.0"

    @property
    def requester(self) -> Requester:
        """The author of the request, in the form that the log stores."""
        user, agent = self.user, self._exchange.headers.read(_agent)
        return Requester(user.name, tuple(user.groups), agent, user.uid, user.extra)

    async def body(self) -> bytes:
        """Read the body of the request.

        Raises `RequestEntityTooLarge`, `UnsupportedMediaType` for a compressed body, `RequestTimeout` for a slow
        client, and `TooManyRequests` if the server's memory budget is exceeded.
        """
        encoding = self.header(b"content-encoding")
        if encoding and encoding.lower() != b"identity":
            raise UnsupportedMediaType("the body of the request must not be encoded (Content-Encoding)")
        if (self._exchange.length or 0) > BODY_LIMIT:
            raise _too_large()
        try:
            if self._exchange.is_complete:
                return await self._exchange.body(BODY_LIMIT, BODY_PATIENCE)
            self.seat.pause()
            body = await self._exchange.body(BODY_LIMIT, BODY_PATIENCE)
            await self.seat.take()
            return body
        except (BodyTooLarge, BodyTooSlow, TooManyBodies) as error:
            raise body_refusal(error) from error

    @property
    def exchange(self) -> Exchange:
        """The exchange with the HTTP request and its response."""
        return self._exchange

    def answers(self, code: int) -> None:
        """Record the HTTP status of a response just before its head is sent.

        Raises `Disconnected` if the request has timed out.
        """
        if self.has_timed_out:
            raise Disconnected
        self.code = code
        self.answered_at = self.monotonic()
        if self.audit is not None and self.audit.started is not None:
            self.audit.begun(code)

    async def respond(self, response: Response, more: Sequence[Header] = ()) -> None:
        """Send a response with `more` headers in addition to the response's own headers."""
        code, body, headers = response
        self.answers(code)
        if self.headers or more:
            headers = (*headers, *self.headers, *more)
        with self.stage(RESPONSE_WRITE):
            await self._send(code, headers, body)

    async def _send(self, code: int, headers: Sequence[Header], body: bytes) -> None:
        if len(body) <= ONE_WRITE:
            self._exchange.answer(code, headers, body, (_ID, self.id))
        else:
            with suppress(Disconnected):
                await self._answer_in_pieces(code, headers, body)

    def stage(self, stage: str) -> AbstractContextManager[object]:
        """Return a context manager that measures a stage of the request, if latencies are measured."""
        return _NOT_MEASURED if self.latencies is None else self.latencies.measuring(stage)

    async def _answer_in_pieces(self, code: int, headers: Sequence[Header], body: bytes) -> None:
        length = (b"content-length", b"%d" % len(body))
        stream = self._exchange.begin(code, (*headers, (_ID, self.id), length))
        await stream.send_all((body[at : at + ONE_WRITE] for at in range(0, len(body), ONE_WRITE)), PATIENCE)
        stream.end()

    async def begin_stream(self, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of a response, and return the stream for its body."""
        self.answers(code)
        return self._exchange.begin(code, ((_ID, self.id), *self.headers, *headers))

    @property
    def upgrades(self) -> bool:
        """Whether the client asks to switch to another protocol."""
        return self._exchange.switching is not None

    @property
    def is_disconnected(self) -> bool:
        """Whether the client has disconnected."""
        return self._exchange.is_disconnected

    def on_lost(self, call: Callable[[], object] | None) -> None:
        """Call `call` when the client disconnects, or now if the client has disconnected already.

        If `call` is None, the callback of an earlier call is removed.
        """
        self._exchange.on_lost(call)

    def switch(self, headers: Sequence[Header]) -> Side:
        """Answer with 101 Switching Protocols, and return the connection for raw bytes.

        Raises `Disconnected` if the client has disconnected.
        """
        self.code = 101
        if self.audit is not None and self.audit.started is not None:
            self.audit.begun(101)
        return self._exchange.switch(headers)

    @property
    def id(self) -> bytes:
        """The request's id, from the client or generated, which the response (`Audit-Id`) and the audit log contain."""
        if not self._id:
            self._id = self.header(_ID) or self._ids.new()
        return self._id

    @property
    def uri(self) -> str:
        """The request target as it was sent: the path and the query."""
        path, query = self._exchange.path, self._exchange.query
        return (b"%s?%s" % (path, query) if query else path).decode("utf-8", "replace")

    def time_out(self) -> None:
        """Answer with 504 because the request has taken too long, or abort a response that has begun.

        As in Kubernetes, the response has the content type that Go detects for JSON, and is not encoded as the client
        asks.
        """
        if self._exchange.is_answered or self._exchange.is_disconnected:
            return
        if self.code:
            self._exchange.abandon()
        else:
            self.answers(504)
            if self.audit is not None:
                self.audit.answered(504, _TIMED_OUT)
            self._exchange.answer(504, (*_TIMED_OUT_HEADERS, *self.headers), _TIMED_OUT, (_ID, self.id))
        self.has_timed_out = True
        self._exchange.stop_waiting()

    def cut_off(self) -> None:
        """Abort the response if it is a stream or tunnel that has begun; otherwise do nothing."""
        if self._exchange.stream is not None:
            self._exchange.stream.abort()
        elif self._exchange.side is not None:
            self._exchange.side.abort()

    @property
    def certificates(self) -> Sequence[bytes]:
        """The client's certificates (DER), beginning with the client's own; their chain is not verified yet."""
        return self._exchange.certificates

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""
        return self._exchange.peer


def _agent(lines: Sequence[Header]) -> str:
    return by_name(lines).get(b"user-agent", b"")[:AGENT_LENGTH].decode("utf-8", "replace")


def body_refusal(error: CtrlmgrError) -> ApiError:
    """Return the response to a request whose body could not be read."""
    match error:
        case BodyTooLarge():
            return _too_large()
        case BodyTooSlow():
            words = "Timeout: request did not complete within the allotted timeout"
            return RequestTimeout(words, details=StatusDetails())
    return TooManyRequests("too many requests, please try again later", details=StatusDetails(retry_after_seconds=1))


def _too_large() -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity is too large: limit is {BODY_LIMIT}")


def parse_query(raw: bytes) -> dict[str, list[str]]:
    """Return the name-value pairs of a query, parsed as Go's `url.Values`."""
    query: dict[str, list[str]] = {}
    if raw.count(b"&") >= MOST_PARAMETERS:
        return query
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

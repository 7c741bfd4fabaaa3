"""Passes a request on to another server, and the response back to the client.

Guarantees:
- Request and response bodies are passed on in pieces. If one side does not read, the other side must wait, so the
  number of bytes in memory is bounded in each direction.
- If the client disconnects, the request to the other server is aborted. If the other server fails before it responds,
  `UpstreamFailed` is raised. If the other server fails within its response, the client can detect that the response is
  incomplete.
- If the other server has closed a reused connection, a request without a body is sent again on a new connection.
- Links to the other server, in HTML and in the header Location, are rewritten to links to this server.
- An upgrade is passed on if the client's connection supports it. After an upgrade, both sides exchange bytes until one
  side closes.

Source: apimachinery `pkg/util/proxy/upgradeaware.go`, Go's `net/http/httputil` (`ReverseProxy`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ctrlmgr.http.framing import LAST_CHUNK, Header, chunk
from ctrlmgr.http.proxying.hop_headers import (
    ExternalAddress,
    forwarded_for,
    is_upgrade,
    with_location,
    without_cors,
    without_hops,
)
from ctrlmgr.http.proxying.html_body import HtmlBody, is_rewritable
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed, UpstreamRefused, UpstreamTimeout
from ctrlmgr.http.proxying.upstream_connection import ResponseHead, UpstreamConnection
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.http.response_stream import ONE_WRITE, Disconnected, Stream
from ctrlmgr.http.tunnel import Side, Tunnel

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Maximum seconds that a client may take to read at least a part of the pending response."""
_OWN: Final = frozenset({b"date", b"audit-id"})
"""Headers that this server writes itself, instead of the other server's headers."""
_SWITCHING: Final = 101
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"


class ForwardedRequest(NamedTuple):
    """A request in the form that the other server receives."""

    upstream: Upstream
    host: str
    """The Host header of the request."""
    path: str
    """The URL path of the request, with percent escapes."""
    query: str
    """The query without the question mark; empty if the request has no query."""
    headers: Sequence[Header]
    """The client's headers that may be passed on, and the proxy's own headers, such as credentials."""
    outside: ExternalAddress = ExternalAddress()
    timeout: float | None = None
    """Maximum seconds until the whole response has been passed on; None for no limit."""
    refuses_redirects: bool = False
    """Whether a redirect is answered with 502 instead of being passed on (`RejectForwardingRedirects`)."""

    @property
    def target(self) -> bytes:
        """The target in the request line."""
        return (f"{self.path}?{self.query}" if self.query else self.path).encode("latin-1")


class Losable(Protocol):
    """A request whose client can disconnect. Used on the event loop's thread only."""

    @property
    def is_disconnected(self) -> bool:
        """Whether the client has disconnected."""

    def on_lost(self, call: Callable[[], object] | None) -> None:
        """Call `call` when the client disconnects, or now if it has disconnected."""


class Downstream(Losable, Protocol):
    """The request of a client that the proxy forwards. Used on the event loop's thread only."""

    method: str

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""

    @property
    def length(self) -> int | None:
        """The Content-Length in bytes; None if the request has no such header."""

    @property
    def may_have_body(self) -> bool:
        """Whether the request has a body, or may have a body that has not arrived yet."""

    @property
    def may_switch(self) -> bool:
        """Whether the client asks for an upgrade that the server can accept."""

    async def piece(self) -> bytes:
        """Return the next part of the body, empty at its end."""

    async def begin_stream(self, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of a response, and return the stream for its body."""

    def switch(self, headers: Sequence[Header]) -> Side:
        """Accept the upgrade, and return the connection for raw bytes."""


async def pass_on(pool: UpstreamPool, passing: ForwardedRequest, client: Downstream) -> None:
    """Pass a request on, and the response back.

    Raises `UpstreamFailed` if the other server fails before it responds, and `Disconnected` if the client has
    disconnected.
    """
    switches = is_upgrade(passing.headers) and client.may_switch
    work = (_tunnelled if switches else _answered)(pool, passing, client)
    await unless_lost(work, client)


async def unless_lost(work: Coroutine[Any, Any, T], client: Losable) -> T:
    """Return the result of `work`; raises `Disconnected` as soon as the client disconnects."""
    task = asyncio.get_running_loop().create_task(work)
    client.on_lost(task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        if client.is_disconnected:
            raise Disconnected from None
        raise
    finally:
        client.on_lost(None)


async def _answered(pool: UpstreamPool, passing: ForwardedRequest, client: Downstream) -> None:
    request = _Request(pool, passing, client)
    try:
        async with asyncio.timeout(passing.timeout):
            await request.answer()
    except TimeoutError as error:
        if request.stream is None:
            raise UpstreamTimeout from error
        request.stream.abort()
    finally:
        request.close()


class _Request:
    """One request that is passed on to another server."""

    def __init__(self, pool: UpstreamPool, passing: ForwardedRequest, client: Downstream) -> None:
        self.stream: Stream | None = None
        self._pool = pool
        self._passing = passing
        self._client = client
        self._connection: UpstreamConnection | None = None
        self._sending: asyncio.Task[None] | None = None

    async def answer(self) -> None:
        """Send the request, and pass the response back."""
        head, connection = await self._sent()
        if self._passing.refuses_redirects and _redirects(head):
            await _whole(self._client, 502, _REDIRECTED.encode())
            return
        body = self._rewritten(head)
        headers = _passed_back(head.headers, self._passing)
        if body is not None:
            headers = [header for header in headers if header[0] != b"content-length"]
        self.stream = await self._client.begin_stream(head.code, headers)
        try:
            await copy_body(connection, self.stream, body)
        except UpstreamFailed:
            self.stream.abort()

    def _rewritten(self, head: ResponseHead) -> HtmlBody | None:
        """Return the response body with rewritten links if it is HTML, otherwise None."""
        if self._client.method == "HEAD" or not is_rewritable(head):
            return None
        outside, inside, host = self._passing.outside, self._passing.upstream.authority, self._passing.host
        return HtmlBody(head, lambda link: outside.rewritten(link, inside, host))

    def close(self) -> None:
        """Give the connection back to the pool, which closes a connection that cannot be reused."""
        is_sent = self._sending is None or self._sending.done()
        if self._sending is not None:
            self._sending.cancel()
        if self._connection is not None:
            if is_sent:
                self._pool.put(self._passing.upstream, self._connection)
            else:
                self._connection.close()

    async def _sent(self) -> tuple[ResponseHead, UpstreamConnection]:
        """Send the request and return the head of the response; use an idle connection if one exists."""
        pool, upstream, client = self._pool, self._passing.upstream, self._client
        head = _head(self._passing, client)
        if client.may_have_body:
            self._connection = pool.reused(upstream) or await pool.connected(upstream)
            return await self._with_body(self._connection, head), self._connection
        answer, self._connection = await pool.ask(upstream, client.method, head)
        return answer, self._connection

    async def _with_body(self, connection: UpstreamConnection, head: bytes) -> ResponseHead:
        connection.begin(self._client.method, head)
        self._sending = asyncio.get_running_loop().create_task(_send_body(self._client, connection))
        try:
            return await connection.head()
        except UpstreamFailed:
            if self._sending.done():
                self._sending.result()  # raises the error of the client, if the client caused the failure
            raise


async def _send_body(client: Downstream, connection: UpstreamConnection) -> None:
    """Pass the request's body on.

    If the client fails to send the body, close the connection and raise the client's error.
    """
    chunked = client.length is None
    try:
        while piece := await client.piece():
            connection.write(chunk(piece) if chunked else piece)
            await connection.drain()
        if chunked:
            connection.write(LAST_CHUNK)
    except UpstreamFailed:
        return  # either the server has answered before the end of the body, or reading its answer raises the error
    except Exception:
        connection.close()
        raise


async def copy_body(connection: UpstreamConnection, stream: Stream, html: HtmlBody | None = None) -> None:
    """Send the rest of a response to the client, with rewritten links if it is `html`.

    Raises `UpstreamFailed` if the other server fails.
    """
    while piece := await connection.piece():
        for part in (piece,) if html is None else html.feed(piece):
            await stream.send_all((part[at : at + ONE_WRITE] for at in range(0, len(part), ONE_WRITE)), PATIENCE)
    if html is not None:
        stream.send(html.end())
    stream.end()


async def _whole(client: Downstream, code: int, body: bytes) -> None:
    text = (b"content-type", b"text/plain; charset=utf-8")
    stream = await client.begin_stream(code, (text, (b"content-length", b"%d" % len(body))))
    stream.send(body)
    stream.end()


async def _tunnelled(pool: UpstreamPool, passing: ForwardedRequest, client: Downstream) -> None:
    """Pass an upgrade request on; if the other server refuses the upgrade, pass its response back."""
    connection = await pool.connected(passing.upstream)
    try:
        connection.begin(client.method, _upgrading(passing, client))
        head = await connection.head()
        if head.code == _SWITCHING:
            side = client.switch(head.headers)
            client.on_lost(None)  # the tunnel passes on the client's last bytes before it ends
            await Tunnel(side, connection).run()
        elif head.code < 400:
            raise UpstreamRefused(f"invalid upgrade response: status code {head.code}")
        else:
            await copy_body(connection, await client.begin_stream(head.code, _passed_back(head.headers, passing)))
    finally:
        connection.close()


def _head(passing: ForwardedRequest, client: Downstream) -> bytes:
    """Return the head of the request to the other server."""
    headers = passing.outside.forwarded(without_hops(passing.headers), passing.path)
    if client.length is not None:
        headers.append((b"content-length", b"%d" % client.length))
    elif client.may_have_body:
        headers.append((b"transfer-encoding", b"chunked"))
    return _encoded(passing, client, headers)


def _upgrading(passing: ForwardedRequest, client: Downstream) -> bytes:
    """Return the head of an upgrade request, which keeps headers such as Connection and Upgrade."""
    return _encoded(passing, client, passing.headers)


def _encoded(passing: ForwardedRequest, client: Downstream, headers: Iterable[Header]) -> bytes:
    lines = forwarded_for((header for header in headers if header[0] != b"host"), client.peer)
    begin = b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (client.method.encode(), passing.target, passing.host.encode())
    return begin + b"".join([b"%b: %b\r\n" % line for line in lines]) + b"\r\n"


def _passed_back(headers: Sequence[Header], passing: ForwardedRequest) -> list[Header]:
    """Return the headers of the response that the client receives."""
    kept = [header for header in without_cors(without_hops(headers)) if header[0] not in _OWN]
    return with_location(kept, passing.outside, passing.upstream.authority, passing.host)


def _redirects(head: ResponseHead) -> bool:
    return 300 <= head.code <= 399 and any(name == b"location" and value for name, value in head.headers)

"""Handles requests for containers on nodes with a kubelet: forwards logs, and tunnels exec, attach and portforward.

Guarantees:
- The server does not send the client's credentials to the kubelet. The kubelet authenticates this server instead of the
  client.
- If the kubelet refuses to switch protocols, the client receives the kubelet's response.
- If the client or the kubelet disconnects, the server closes the connection to the other peer. All connections to
  kubelets end when the server stops.

Source: apimachinery `pkg/util/proxy/upgradeaware.go`, apiserver `pkg/registry/generic/rest` (streamer.go,
response_checker.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import Clock
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.errors import BadRequest, UnknownError
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.hop_headers import forwarded_for
from ctrlmgr.http.proxying.reverse_proxy import copy_body, unless_lost
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed
from ctrlmgr.http.proxying.upstream_connection import ResponseHead, UpstreamConnection
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.http.spdy.spdy_connection import PROTOCOL as SPDY
from ctrlmgr.http.tunnel import Tunnel
from ctrlmgr.http.websocket import WebSocketSide, accepting, offered_protocols
from ctrlmgr.server.aggregating.user_headers import without_credentials
from ctrlmgr.server.go_http_errors import failure_words
from ctrlmgr.server.kubelets.channels import SPDY_PROTOCOLS, V5, SpdyChannels, WebSocketChannels, wanted_channels
from ctrlmgr.server.kubelets.kubelet_credentials import Credentials, Issue
from ctrlmgr.server.kubelets.kubelet_refusals import refused_by_kubelet
from ctrlmgr.server.kubelets.kubelet_urls import KubeletUrl, log_url, node_url, stream_url
from ctrlmgr.server.kubelets.shares import TunnelShares
from ctrlmgr.server.kubelets.translation import Translation
from ctrlmgr.server.presenting.message_streams import begin_log
from ctrlmgr.server.presenting.responses import NO_CACHE, Response
from ctrlmgr.server.request import Request
from ctrlmgr.settings.kubelet_settings import KubeletSettings

_LOG_HEADERS: Final = ((b"content-type", b"text/plain"), NO_CACHE)
_MOST_OF_REFUSAL: Final = 50_000
"""Maximum number of bytes of a kubelet's error response that are read (`maxReadLength`)."""
_DROPPED: Final = frozenset({b"transfer-encoding", b"expect"})
_UPGRADING: Final = frozenset({b"connection", b"upgrade", b"x-stream-protocol-version"})
_TUNNELLED: Final = "SPDY/3.1+"
"""The prefix of the WebSocket protocols whose messages carry SPDY (`pkg/util/portforward`)."""
_FRAMING: Final = frozenset({b"connection", b"content-length", b"keep-alive", b"transfer-encoding", b"date"})


class KubeletProxy:
    """Forwards requests for containers to kubelets. An instance is used on one event loop."""

    def __init__(self, settings: KubeletSettings, issue: Issue, *, clock: Clock) -> None:
        """Create connections to kubelets from the settings.

        `issue` issues the client certificate if the settings name none.

        Raises `SettingsError` if a certificate cannot be used.
        """
        self._settings = settings
        self._credentials = Credentials(settings, issue, clock=clock)
        self._pool: UpstreamPool | None = None
        self._shares = TunnelShares()
        self._tunnels: set[Tunnel | Translation] = set()
        self._is_closing = False

    @property
    def pool(self) -> UpstreamPool:
        """The connections to kubelets."""
        if self._pool is None:
            self._pool = UpstreamPool(self._settings.timeout)
        return self._pool

    def close(self) -> None:
        """Close all connections to kubelets, which aborts the requests that use them."""
        self._is_closing = True
        for tunnel in list(self._tunnels):
            tunnel.abort()
        if self._pool is not None:
            self._pool.close()

    def url(self, node: Object) -> KubeletUrl:
        """Return the address of a node's kubelet; raises `UnknownError` if the node has no address."""
        return node_url(node, self._settings.preferred_address_types, self._settings.port)

    def upstream(self, url: KubeletUrl, *, is_checked: bool = True) -> Upstream:
        """Return the kubelet in a URL as an upstream; `is_checked` says whether its certificate is verified."""
        return Upstream(url.host, url.port, self._credentials.context(is_checked=is_checked))

    async def log(self, request: Request, pod: Object, node: Object, options: LogOptions, *, is_checked: bool) -> None:
        """Answer with a container's log.

        Raises `ApiError` if the kubelet fails, and `Disconnected` if the client disconnects.
        """
        settings = self._settings
        url = log_url(pod, node, options, settings.preferred_address_types, settings.port)
        await unless_lost(self._log(request, pod, url, self.upstream(url, is_checked=is_checked)), request)

    async def _log(self, request: Request, pod: Object, url: KubeletUrl, upstream: Upstream) -> None:
        lines = f"GET {url.target} HTTP/1.1\r\nHost: {url.authority}\r\nUser-Agent: Go-http-client/1.1\r\n\r\n"
        try:
            answer, connection = await self.pool.ask(upstream, "GET", lines.encode())
        except UpstreamFailed as error:
            raise UnknownError(f'Get "{url}": {failure_words(error, url.host, url.port)}') from error
        try:
            if not 200 <= answer.code <= 206:
                raise refused_by_kubelet(answer.code, await _read(connection), pod.name)
            await self._pass_on(request, connection)
        finally:
            self.pool.put(upstream, connection)

    async def _pass_on(self, request: Request, connection: UpstreamConnection) -> None:
        stream = await begin_log(request, _LOG_HEADERS)
        try:
            await copy_body(connection, stream)
        except UpstreamFailed:
            if self._is_closing:
                stream.end()
            else:
                stream.abort()

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Tunnel exec, attach or portforward (`part`) from the client to the kubelet.

        Raises `ApiError` if the request is invalid.
        """
        settings = self._settings
        url = stream_url(pod, node, part, options, settings.preferred_address_types, settings.port)
        if not request.upgrades:
            raise BadRequest("Upgrade request required")
        with self._shares.held(request.user):
            await unless_lost(self._stream(request, url, part, options), request)

    async def _stream(self, request: Request, url: KubeletUrl, part: str, options: Unstructured) -> None:
        try:
            connection = await self.pool.connected(self.upstream(url))
        except UpstreamFailed as error:
            raise UnknownError(f"error dialing backend: {failure_words(error, url.host, url.port)}") from error
        try:
            await self._tunnelled(request, url, connection, part, options)
        finally:
            connection.close()

    async def _tunnelled(
        self, request: Request, url: KubeletUrl, connection: UpstreamConnection, part: str, options: Unstructured
    ) -> None:
        """Tunnel an upgrade request. If the kubelet does not accept the client's protocol, translate the protocol."""
        offered = [] if url.has_websockets else offered_protocols(request.raw_headers)
        prefixed = [each.removeprefix(_TUNNELLED) for each in offered if each.startswith(_TUNNELLED)]
        if part == "portforward" and prefixed:
            await self._forward(request, url, connection, prefixed)
        elif part != "portforward" and V5 in offered:
            await self._translate(request, url, connection, wanted_channels(_flags(options)))
        else:
            answer = await self._requested(request, url, connection, request.method, request.raw_headers)
            if answer is not None:
                await self._run(Tunnel(request.switch(answer.headers), connection))

    async def _forward(
        self, request: Request, url: KubeletUrl, connection: UpstreamConnection, protocols: Sequence[str]
    ) -> None:
        """Tunnel SPDY in a WebSocket (apiserver `pkg/util/proxy/streamtunnel.go`)."""
        answer = await self._requested(request, url, connection, "POST", spdy_headers(request.raw_headers, protocols))
        if answer is not None:
            chosen = answer.header(b"x-stream-protocol-version").strip().decode("latin-1")
            side = request.switch(accepting(request.header(b"sec-websocket-key"), chosen and _TUNNELLED + chosen))
            await self._run(Tunnel(WebSocketSide(side), connection))

    async def _translate(
        self, request: Request, url: KubeletUrl, connection: UpstreamConnection, requested: Sequence[int]
    ) -> None:
        """Translate version 5 of the WebSocket protocol for remote commands to SPDY."""
        answer = await self._requested(
            request, url, connection, "POST", spdy_headers(request.raw_headers, SPDY_PROTOCOLS)
        )
        if answer is not None:
            side = request.switch(accepting(request.header(b"sec-websocket-key"), V5))
            kubelet = SpdyChannels(connection, wanted=requested, is_client=True)
            await self._run(Translation(WebSocketChannels(side, V5), kubelet, requested))

    async def _requested(
        self, request: Request, url: KubeletUrl, connection: UpstreamConnection, method: str, headers: Sequence[Header]
    ) -> ResponseHead | None:
        """Return the kubelet's response if it has switched protocols.

        If the kubelet refuses to switch protocols, send its refusal to the client and return None.
        """
        try:
            connection.begin(method, upgrade_head(method, url.target, headers, request.peer))
            answer = await connection.head()
            if answer.code == 101:
                request.on_lost(None)  # a tunnel passes on the client's last bytes before it ends
                return answer
            await self._echo(request, answer, await _read(connection))
        except UpstreamFailed as error:
            raise UnknownError(failure_words(error, url.host, url.port)) from error
        return None

    async def _run(self, tunnel: Tunnel | Translation) -> None:
        self._tunnels.add(tunnel)
        try:
            await tunnel.run()
        finally:
            self._tunnels.discard(tunnel)

    async def _echo(self, request: Request, answer: ResponseHead, body: bytes) -> None:
        """Send the client the kubelet's refusal to switch protocols."""
        if answer.code < 400:
            raise UnknownError(f"invalid upgrade response: status code {answer.code}")
        await request.respond(Response(answer.code, body, [each for each in answer.headers if each[0] not in _FRAMING]))


async def _read(connection: UpstreamConnection) -> bytes:
    """Return the first bytes of the body of a kubelet's response; raises `UpstreamFailed` if the kubelet fails."""
    body = bytearray()
    while len(body) <= _MOST_OF_REFUSAL and (piece := await connection.piece()):
        body += piece
    return bytes(body[:_MOST_OF_REFUSAL])


def upgrade_head(method: str, target: str, headers: Sequence[Header], peer: str) -> bytes:
    """Return the head of a client's upgrade request, as it is sent to the kubelet: without the client's credentials."""
    lines = [f"{method} {target} HTTP/1.1".encode(), *_lines(headers, peer)]
    if method != "GET":
        lines.append(b"Content-Length: 0")
    return b"\r\n".join((*lines, b"", b""))


def spdy_headers(headers: Sequence[Header], protocols: Sequence[str]) -> list[Header]:
    """Return the headers of a WebSocket request, converted to headers of a SPDY request with one of these protocols."""
    kept = [each for each in headers if not each[0].startswith(b"sec-websocket-") and each[0] not in _UPGRADING]
    offered = [(b"x-stream-protocol-version", each.encode("latin-1")) for each in protocols]
    return [*kept, (b"connection", b"Upgrade"), (b"upgrade", SPDY.encode()), *offered]


def _flags(options: Unstructured) -> list[str]:
    return [flag for flag in ("stdin", "stdout", "stderr", "tty") if options.get(flag)]


def _lines(headers: Sequence[Header], peer: str) -> Iterator[bytes]:
    hosts = (header for header in headers if header[0] == b"host")
    kept = (header for header in without_credentials(headers) if header[0] not in _DROPPED)
    yield from (b"%b: %b" % header for header in (*hosts, *forwarded_for(kept, peer)))

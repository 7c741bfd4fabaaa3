"""Answers requests for containers on nodes with a kubelet: passes on logs, and tunnels exec, attach and portforward.

Guarantees:
- The client's credentials are not sent to the kubelet. The kubelet authenticates this server.
- If the kubelet refuses to switch protocols, the client receives the kubelet's answer.
- A client that disconnects ends its connection to the kubelet, and the reverse. All end when the server stops.

Rules: apimachinery `pkg/util/proxy/upgradeaware.go`, apiserver `pkg/registry/generic/rest` (streamer.go,
response_checker.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.impersonation import PREFIX as IMPERSONATION
from ctrlmgr.clock import Clock
from ctrlmgr.engine.log_options import LogOptions
from ctrlmgr.errors import BadRequest, UnknownError
from ctrlmgr.http.framing import Header
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.http.spdy.spdy_connection import PROTOCOL as SPDY
from ctrlmgr.http.tunnel import Tunnel
from ctrlmgr.http.upstream import Answer, Broken, Upstream
from ctrlmgr.http.websocket import WebSocketSide, accepting, offered_protocols
from ctrlmgr.server.kubelets.channels import SPDY_PROTOCOLS, V5, SpdyChannels, WebSocketChannels, wanted_channels
from ctrlmgr.server.kubelets.kubelet_credentials import Credentials, Issue
from ctrlmgr.server.kubelets.kubelet_refusals import refused_by_kubelet
from ctrlmgr.server.kubelets.kubelet_urls import KubeletUrl, log_url, stream_url
from ctrlmgr.server.kubelets.link import KubeletLink
from ctrlmgr.server.kubelets.shares import TunnelShares
from ctrlmgr.server.kubelets.translation import Translation
from ctrlmgr.server.presenting.responses import NO_CACHE, Response
from ctrlmgr.server.request import PATIENCE, Request
from ctrlmgr.settings.kubelet_settings import KubeletSettings

T = TypeVar("T")

_LOG_HEADERS: Final = ((b"content-type", b"text/plain"), NO_CACHE)
_MOST_OF_REFUSAL: Final = 50_000
"""Maximum number of bytes that are read of a kubelet's error (`maxReadLength`)."""
_DROPPED: Final = frozenset({b"x-forwarded-for", b"transfer-encoding", b"expect"})
_UPGRADING: Final = frozenset({b"connection", b"upgrade", b"x-stream-protocol-version"})
_TUNNELLED: Final = "SPDY/3.1+"
"""The prefix of WebSocket protocols whose messages carry SPDY (`pkg/util/portforward`)."""
_CREDENTIALS: Final = (b"authorization", b"x-remote-")
_FRAMING: Final = frozenset({b"connection", b"content-length", b"keep-alive", b"transfer-encoding", b"date"})


class KubeletProxy:
    """Passes requests for containers to kubelets. Used on one event loop."""

    def __init__(self, settings: KubeletSettings, issue: Issue, *, clock: Clock) -> None:
        """Connect as the settings say; `issue` issues the client certificate if they name none.

        Raises `SettingsError` for certificates that cannot be used.
        """
        self._settings = settings
        self._link = KubeletLink(Credentials(settings, issue, clock=clock), settings.timeout, clock=clock)
        self._shares = TunnelShares()
        self._tunnels: set[Tunnel | Translation] = set()
        self._is_closing = False

    def close(self) -> None:
        """Close all connections to kubelets, which ends the requests that use them."""
        self._is_closing = True
        for tunnel in list(self._tunnels):
            tunnel.abort()
        self._link.close()

    async def log(self, request: Request, pod: Object, node: Object, options: LogOptions, *, is_checked: bool) -> None:
        """Answer with a container's log; raises `ApiError`, and `Disconnected` if the client disconnects."""
        settings = self._settings
        url = log_url(pod, node, options, settings.preferred_address_types, settings.port)
        upstream, answer = await _unless_lost(request, self._link.get(url, is_checked=is_checked))
        try:
            if not 200 <= answer.code <= 206:
                raise refused_by_kubelet(answer.code, await _read(upstream), pod.name)
            await self._pass_on(request, upstream)
        finally:
            self._link.release(url, upstream)

    async def _pass_on(self, request: Request, upstream: Upstream) -> None:
        stream = await request.begin_stream(200, _LOG_HEADERS)
        stream.on_lost(upstream.abort)
        try:
            async for piece in upstream.pieces():
                stream.send(piece)
                await stream.drain(PATIENCE)
        except Broken:
            if stream.lost:
                raise Disconnected from None
            if not self._is_closing:
                stream.abort()
                return
        stream.end()

    async def stream(self, request: Request, pod: Object, node: Object, part: str, options: Unstructured) -> None:
        """Answer exec, attach or portforward (`part`): tunnel the client to the kubelet; raises `ApiError`."""
        settings = self._settings
        url = stream_url(pod, node, part, options, settings.preferred_address_types, settings.port)
        if not request.upgrades:
            raise BadRequest("Upgrade request required")
        with self._shares.held(request.user):
            upstream = await _unless_lost(request, self._dialled(url))
            try:
                request.on_lost(upstream.abort)
                await self._tunnelled(request, url, upstream, part, options)
            finally:
                self._link.release(url, upstream)

    async def _dialled(self, url: KubeletUrl) -> Upstream:
        try:
            return await self._link.connect(url)
        except UnknownError as error:
            raise UnknownError(f"error dialing backend: {error}") from error

    async def _tunnelled(
        self, request: Request, url: KubeletUrl, upstream: Upstream, part: str, options: Unstructured
    ) -> None:
        """Tunnel an upgrade request; translate it if the kubelet does not accept the client's protocol."""
        offered = [] if url.has_websockets else offered_protocols(request.raw_headers)
        prefixed = [each.removeprefix(_TUNNELLED) for each in offered if each.startswith(_TUNNELLED)]
        if part == "portforward" and prefixed:
            await self._forward(request, url, upstream, prefixed)
        elif part != "portforward" and V5 in offered:
            await self._translate(request, url, upstream, wanted_channels(_flags(options)))
        else:
            answer = await self._asked(request, url, upstream, request.method, request.raw_headers)
            if answer is not None:
                await self._run(Tunnel(request.switch(answer.headers), upstream))

    async def _forward(self, request: Request, url: KubeletUrl, upstream: Upstream, protocols: Sequence[str]) -> None:
        """Tunnel SPDY in a WebSocket (apiserver `pkg/util/proxy/streamtunnel.go`)."""
        answer = await self._asked(request, url, upstream, "POST", spdy_headers(request.raw_headers, protocols))
        if answer is not None:
            chosen = answer.header(b"x-stream-protocol-version").strip().decode("latin-1")
            side = request.switch(accepting(request.header(b"sec-websocket-key"), chosen and _TUNNELLED + chosen))
            await self._run(Tunnel(WebSocketSide(side), upstream))

    async def _translate(self, request: Request, url: KubeletUrl, upstream: Upstream, wanted: Sequence[int]) -> None:
        """Translate version 5 of the WebSocket protocol to SPDY."""
        answer = await self._asked(request, url, upstream, "POST", spdy_headers(request.raw_headers, SPDY_PROTOCOLS))
        if answer is not None:
            side = request.switch(accepting(request.header(b"sec-websocket-key"), V5))
            kubelet = SpdyChannels(upstream, wanted=wanted, is_client=True)
            await self._run(Translation(WebSocketChannels(side, V5), kubelet, wanted))

    async def _asked(
        self, request: Request, url: KubeletUrl, upstream: Upstream, method: str, headers: Sequence[Header]
    ) -> Answer | None:
        """Return the kubelet's answer if it has switched protocols; else pass its refusal on and return None."""
        try:
            answer = await upstream.ask(upgrade_head(method, url.target, headers, request.peer))
            if answer.code == 101:
                return answer
            await self._echo(request, answer, await _read(upstream))
        except Broken as error:
            if request.is_lost:
                raise Disconnected from None
            raise UnknownError(str(error)) from error
        return None

    async def _run(self, tunnel: Tunnel | Translation) -> None:
        self._tunnels.add(tunnel)
        try:
            await tunnel.run()
        finally:
            self._tunnels.discard(tunnel)

    async def _echo(self, request: Request, answer: Answer, body: bytes) -> None:
        """Send the client the kubelet's refusal to switch protocols."""
        if answer.code < 400:
            raise UnknownError(f"invalid upgrade response: status code {answer.code}")
        headers = [(name.lower(), value) for name, value in answer.headers]
        await request.respond(Response(answer.code, body, [each for each in headers if each[0] not in _FRAMING]))


async def _unless_lost(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, or raise `Disconnected` once the client disconnects."""
    task = asyncio.ensure_future(work)
    request.on_lost(task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        if request.is_lost:
            raise Disconnected from None
        task.cancel()
        raise


async def _read(upstream: Upstream) -> bytes:
    """Return the first bytes of an answer's body."""
    body = bytearray()
    async for piece in upstream.pieces():
        body += piece
        if len(body) > _MOST_OF_REFUSAL:
            break
    return bytes(body[:_MOST_OF_REFUSAL])


def upgrade_head(method: str, target: str, headers: Sequence[Header], peer: str) -> bytes:
    """Return the head of a client's upgrade request as it is sent on, without the client's credentials."""
    lines = [f"{method} {target} HTTP/1.1".encode(), *_lines(headers, peer)]
    if method != "GET":
        lines.append(b"Content-Length: 0")
    return b"\r\n".join((*lines, b"", b""))


def spdy_headers(headers: Sequence[Header], protocols: Sequence[str]) -> list[Header]:
    """Return the headers of a WebSocket request as those of a request for SPDY with one of these protocols."""
    kept = [each for each in headers if not each[0].startswith(b"sec-websocket-") and each[0] not in _UPGRADING]
    offered = [(b"x-stream-protocol-version", each.encode("latin-1")) for each in protocols]
    return [*kept, (b"connection", b"Upgrade"), (b"upgrade", SPDY.encode()), *offered]


def _flags(options: Unstructured) -> list[str]:
    return [flag for flag in ("stdin", "stdout", "stderr", "tty") if options.get(flag)]


def _lines(headers: Sequence[Header], peer: str) -> Iterator[bytes]:
    forwarded = [value for name, value in headers if name == b"x-forwarded-for"]
    for name, value in headers:
        if not name.startswith((*_CREDENTIALS, IMPERSONATION)) and name not in _DROPPED:
            yield b"%b: %b" % (name, value)
    yield b"X-Forwarded-For: " + b", ".join((*forwarded, peer.encode()))

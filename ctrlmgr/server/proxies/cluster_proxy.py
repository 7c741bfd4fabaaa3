"""Serves the subresource `proxy` of nodes, pods and Services by forwarding the requests.

Guarantees:
- The other server never receives the client's credentials. Kubelets authenticate this server by its client certificate.
- If a server cannot be reached, the response is a 503 with the reason. The proxy changes links and redirects in
  responses, so that they lead through the proxy.
- The simulation serves requests for simulated nodes, and for pods on simulated nodes.
- All proxied requests end when the server stops.

Source: apimachinery `pkg/util/proxy/upgradeaware.go`, `pkg/registry/core/node/strategy.go` (`ResourceLocation`).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import cached_property
from ipaddress import ip_address
from random import Random
from typing import Final, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import BadRequest, ServiceUnavailable, UnknownError
from ctrlmgr.http.proxying.hop_headers import ExternalAddress, escaped, is_upgrade
from ctrlmgr.http.proxying.passed_requests import PassedRequests
from ctrlmgr.http.proxying.reverse_proxy import ForwardedRequest, pass_on
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.server.aggregating.user_headers import without_credentials
from ctrlmgr.server.connect_subresources import Runtime, no_kubelet, node_of
from ctrlmgr.server.go_http_errors import proxy_failure_words
from ctrlmgr.server.kubelets.kubelet_urls import KubeletUrl
from ctrlmgr.server.kubelets.shares import TunnelShares
from ctrlmgr.server.kubelets.simulated_ports import answer_of
from ctrlmgr.server.presenting.responses import TEXT_TYPE, Response
from ctrlmgr.server.proxied_request import ProxiedRequest
from ctrlmgr.server.proxies.proxy_backends import (
    NOT_ALLOWED,
    Backend,
    ProxyName,
    backend_of_pod,
    backend_of_service,
    is_proxyable,
)
from ctrlmgr.server.proxies.simulated_kubelet import SimulatedKubelet
from ctrlmgr.server.request import Request
from ctrlmgr.settings.kubeconfig import trusting

_KINDS: Final = {"nodes": "node", "pods": "pod", "services": "service"}
_LARGEST: Final = 65535


class KubeletServers(Protocol):
    """The connections to kubelets."""

    @property
    def pool(self) -> UpstreamPool:
        """The connections to kubelets, and the connections of proxies to other servers."""

    def url(self, node: Object) -> KubeletUrl:
        """Return the address of a node's kubelet; raises `UnknownError` if the node has no address."""

    def upstream(self, url: KubeletUrl) -> Upstream:
        """Return a node's kubelet as the server to which a request is forwarded."""


class ClusterProxy:
    """Forwards requests to nodes, pods and Services. Used on the event loop's thread only."""

    def __init__(
        self,
        view: View,
        runtime: Runtime | None,
        kubelets: KubeletServers | None,
        pages: SimulatedKubelet,
        random: Random,
    ) -> None:
        """Create a proxy that connects to nodes with `kubelets`; None means that no kubelet is reachable.

        `runtime` and `pages` serve simulated nodes.
        """
        self._view = view
        self._runtime = runtime
        self._kubelets = kubelets
        self._pages = pages
        self._random = random
        self._shares = TunnelShares()
        self._passed = PassedRequests()

    def close(self) -> None:
        """End all proxied requests, and end requests that start later at once."""
        self._passed.end()

    async def answer(self, request: Request, target: Target, name: str, obj: Object, path: str) -> None:
        """Forward a request to `obj`; `name` is the name in the request, and `path` is the path for the other server.

        Raises `ApiError` if the response is an error, and `Disconnected` if the client disconnects.
        """
        resource = target.kind.resource
        requested = ProxyName.of(name, _KINDS[resource.plural])
        if resource == NODES:
            await self._answer_node(request, obj, requested, path)
        else:
            is_pod = resource == PODS
            backend = (
                backend_of_pod(obj, requested)
                if is_pod
                else backend_of_service(obj, requested, name, self._view, self._random)
            )
            await self._answer_pod(request, backend, path)

    async def _answer_node(self, request: Request, node: Object, requested: ProxyName, path: str) -> None:
        if self._runtime is not None and self._runtime.is_simulated(node):
            if not await _redirected(request, path):
                await self._pages.answer(request, node, path)
            return
        if self._kubelets is None:
            raise no_kubelet(node.name)
        url = self._kubelets.url(node)
        await _check(url.host)
        if requested.port in ("", str(url.port)):
            upstream = self._kubelets.upstream(url)
        else:
            upstream = self._upstream(url.host, requested.port, is_secure=requested.scheme == "https")
        await self._pass_on(request, self._kubelets.pool, upstream, path)

    async def _answer_pod(self, request: Request, backend: Backend, path: str) -> None:
        node = node_of(backend.pod, self._view)
        if self._runtime is not None and self._runtime.is_simulated(node):
            if not await _redirected(request, path):
                await self._answer_simulated(request, self._runtime, backend)
            return
        if self._kubelets is None:
            raise no_kubelet(node.name if node is not None else "")
        upstream = self._upstream(backend.host, backend.port, is_secure=backend.is_secure)
        await self._pass_on(request, self._kubelets.pool, upstream, path)

    async def _answer_simulated(self, request: Request, runtime: Runtime, backend: Backend) -> None:
        """Serve the request in the same way as a forwarded port of the simulated pod."""
        port = backend.port
        if not (port.isdecimal() and runtime.executions.listens(backend.pod, int(port))):
            where = f"{backend.host}:{port}"
            raise ServiceUnavailable(f"error trying to reach service: dial tcp {where}: connect: connection refused")
        if request.upgrades:
            raise UnknownError("invalid upgrade response: status code 200")
        await request.respond(Response(200, answer_of(backend.pod), (TEXT_TYPE,)))

    async def _pass_on(self, request: Request, pool: UpstreamPool, upstream: Upstream, path: str) -> None:
        if await _redirected(request, path):
            return
        with self._shares.held(request.user):
            work = pass_on(pool, _passing(request, upstream, path), ProxiedRequest(request))
            try:
                await self._passed.run(work)
            except UpstreamFailed as error:
                raise _failed(error, request, upstream) from error

    def _upstream(self, host: str, port: str, *, is_secure: bool) -> Upstream:
        """Return the address of a pod, a Service's endpoint or another server that is not a kubelet.

        Raises `ServiceUnavailable` if the requested port does not exist.
        """
        if not port.isdecimal():
            raise ServiceUnavailable(f"error trying to reach service: dial tcp: lookup tcp/{port}: unknown port")
        if int(port) > _LARGEST:
            raise ServiceUnavailable(f"error trying to reach service: dial tcp: address {port}: invalid port")
        return Upstream(host, int(port), self._unverified if is_secure else None)

    @cached_property
    def _unverified(self) -> ssl.SSLContext:
        """The TLS context for connections to pods, whose certificates are not verified (`CreateProxyTransport`)."""
        return trusting(b"", b"", False)


async def _check(host: str) -> None:
    """Raise `BadRequest` if requests may not be forwarded to a node's address (`isProxyableHostname`)."""
    try:
        addresses = [str(ip_address(host))]
    except ValueError:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise BadRequest(f"lookup {host}: no such host") from error
        addresses = [str(each[4][0]) for each in found]
    if not all(map(is_proxyable, addresses)):
        raise BadRequest(NOT_ALLOWED)


async def _redirected(request: Request, path: str) -> bool:
    """If a request has no path for the other server, redirect the client to `/`, so that relative links work.

    If the request has a path, return False without sending a response.
    """
    if path or request.method not in ("GET", "HEAD") or request.upgrades:
        return False
    query = request.exchange.query
    mounted_at = request.exchange.mounted_at
    location = mounted_at + escaped(request.location.path).encode() + b"/" + (b"?" + query if query else b"")
    await request.respond(Response(301, b"", ((b"location", location),)))
    return True


def _passing(request: Request, upstream: Upstream, path: str) -> ForwardedRequest:
    """Return the request in the form in which the other server receives it."""
    whole = request.exchange.mounted_at.decode("ascii") + request.location.path
    host = request.header(b"host").decode("latin-1") or upstream.authority
    return ForwardedRequest(
        upstream,
        host,
        escaped(path) or "/",
        request.exchange.query.decode("latin-1"),
        tuple(without_credentials(request.raw_headers)),
        ExternalAddress(prefix=whole.removesuffix(path)),
    )


def _failed(error: UpstreamFailed, request: Request, upstream: Upstream) -> ServiceUnavailable | UnknownError:
    """Return the error for a request if the other server failed before it responded."""
    upgrades = is_upgrade(request.raw_headers) and request.upgrades
    words = proxy_failure_words(error, upstream, upgrades=upgrades)
    return UnknownError(words) if upgrades else ServiceUnavailable(words)

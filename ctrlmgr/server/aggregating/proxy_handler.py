"""Passes a client's request for a version that an extension server serves on to that server.

Guarantees:
- Authentication, impersonation, authorization and audit have processed the request like any other request. The
  extension server receives the request's user in headers, on a connection with this server's client certificate.
- If an extension server is not available, not reachable or not trusted, requests for its versions get a 503 response.
- A request that is not long-running ends after the server's maximum duration of requests, a request for discovery after
  `DISCOVERY_TIMEOUT` seconds.
- Redirects are not passed on, unless `refuses_redirects` is False.

Source: kube-aggregator `pkg/apiserver/handler_proxy.go`, apiserver `pkg/util/proxy/proxy.go`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlencode

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.errors import RequestTimeout, StatusDetails
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.hop_headers import ExternalAddress, escaped, is_upgrade
from ctrlmgr.http.proxying.passed_requests import PassedRequests
from ctrlmgr.http.proxying.reverse_proxy import ForwardedRequest, pass_on
from ctrlmgr.http.proxying.upstream_address import (
    Upstream,
    UpstreamFailed,
    UpstreamTimeout,
)
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers, TransportUnusable
from ctrlmgr.server.aggregating.remote_discovery import RemoteDiscovery
from ctrlmgr.server.aggregating.remote_openapi import RemoteOpenAPI
from ctrlmgr.server.aggregating.remote_swagger import RemoteSwaggers
from ctrlmgr.server.aggregating.user_headers import passed_headers
from ctrlmgr.server.filters.in_flight_limits import LONG_RUNNING
from ctrlmgr.server.filters.request_deadlines import REQUEST_TIMEOUT
from ctrlmgr.server.go_http_errors import proxy_failure_words
from ctrlmgr.server.presenting.responses import Response, text
from ctrlmgr.server.proxied_request import ProxiedRequest
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import Location
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.trace_context import TRACEPARENT

DISCOVERY_TIMEOUT: Final = 5.0
"""Maximum duration of a request for the discovery document of a version, in seconds (`aggregatedDiscoveryTimeout`)."""
_DISCOVERY: Final = 3
"""The number of segments in the URL path of a version's discovery document."""
_UNAVAILABLE: Final = "service unavailable\n"


class Aggregator:
    """Passes requests on to extension servers. Used on the event loop's thread only."""

    def __init__(
        self, servers: ExtensionServers, *, refuses_redirects: bool = True, longest: float = REQUEST_TIMEOUT
    ) -> None:
        """Create a handler that passes requests on to `servers`.

        A request that is not long-running may take at most `longest` seconds.
        """
        self._longest = longest
        self.discovery = RemoteDiscovery(servers)
        """The discovery documents of the extension servers."""
        self.openapi = RemoteOpenAPI(servers)
        """The OpenAPI v3 documents of the extension servers."""
        self.swaggers = RemoteSwaggers(servers)
        """The OpenAPI v2 documents of the extension servers."""
        self.servers = servers
        self._refuses_redirects = refuses_redirects
        self._pool: UpstreamPool | None = None
        self._long = PassedRequests()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections on the current event loop while the context is open."""
        self._pool = UpstreamPool()
        try:
            async with self.discovery.running(), self.openapi.running(), self.swaggers.running():
                yield
        finally:
            self._pool.close()

    def is_running(self) -> bool:
        """Return whether requests are passed on, and the documents of extension servers are requested."""
        return self._pool is not None

    def drain(self) -> None:
        """End watches and tunnels, because the server is stopping; later ones end immediately."""
        self._long.end()

    def find(self, location: Location) -> RemoteService | None:
        """Return the extension server to which requests for a path are passed on.

        The method returns None if this server serves the path itself.
        """
        return self.servers.find(location.parts)

    async def answer(self, request: Request, remote: RemoteService, attributes: Attributes) -> None:
        """Pass one request on to its extension server.

        Raises `Disconnected` if the client disconnects, and `RequestTimeout` if the request takes too long.
        """
        if not remote.is_available:
            await request.respond(text(503, _UNAVAILABLE))
            return
        try:
            upstream = self.servers.upstream(remote)
        except Unresolved:
            await request.respond(text(503, _UNAVAILABLE))
            return
        except TransportUnusable as error:
            await request.respond(text(500, f"{error}\n"))
            return
        await self.pass_on(request, upstream, attributes)

    async def pass_on(self, request: Request, upstream: Upstream, attributes: Attributes, *more: Header) -> None:
        """Pass a request on to a server, with the headers `more`; raises the errors of `answer`."""
        assert self._pool is not None, "requests are answered only while it runs"
        passing = self._passing(request, upstream, attributes, more)
        work = pass_on(self._pool, passing, ProxiedRequest(request))
        try:
            await (work if passing.timeout is not None else self._long.run(work))
        except UpstreamTimeout as error:
            if passing.timeout == self._longest:
                words = "Timeout: request did not complete within the allotted timeout"
                raise RequestTimeout(words, details=StatusDetails()) from error
            await request.respond(_failed(error, passing))
        except UpstreamFailed as error:
            await request.respond(_failed(error, passing))

    def _passing(
        self, request: Request, upstream: Upstream, attributes: Attributes, more: Sequence[Header]
    ) -> ForwardedRequest:
        headers = [header for header in passed_headers(request.raw_headers, request.user) if header[0] != b"audit-id"]
        if context := spans.current():
            headers = [*(header for header in headers if header[0] != TRACEPARENT), (TRACEPARENT, context.encode())]
        return ForwardedRequest(
            upstream,
            upstream.authority,
            escaped(request.location.path),
            urlencode([(name, value) for name in sorted(request.query) for value in request.query[name]]),
            (*headers, *more, (b"audit-id", request.id)),
            ExternalAddress("https", upstream.authority),
            self._timeout(request.location, attributes, upgrades=is_upgrade(request.raw_headers)),
            self._refuses_redirects,
        )

    def _timeout(self, location: Location, attributes: Attributes, *, upgrades: bool) -> float | None:
        """Return the seconds that a request may take; None if the request is long-running."""
        if location.resource is None:
            return DISCOVERY_TIMEOUT if len(location.parts or ()) == _DISCOVERY else self._longest
        is_long = attributes.verb in ("watch", "proxy") or attributes.subresource in LONG_RUNNING or upgrades
        return None if is_long else self._longest


def _failed(error: UpstreamFailed, passing: ForwardedRequest) -> Response:
    """Return the response for a request if the extension server failed before it responded."""
    words = proxy_failure_words(error, passing.upstream, upgrades=is_upgrade(passing.headers))
    return text(503, f"{words}\n")

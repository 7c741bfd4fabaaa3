"""Forwards a client's request for a resource that only a peer serves to such a peer.

Guarantees:
- This server has authenticated and authorized the request. The peer receives the user in headers, on a connection with
  this server's client certificate, and authorizes the request again.
- A request is forwarded at most once. A resource that this server serves is never forwarded.

Source: apiserver `pkg/util/peerproxy/peerproxy_handler.go`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import structlog
from prometheus_client import Counter

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.server.aggregating.extension_servers import TransportUnusable
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.peers.excluded_versions import ExcludedVersions
from ctrlmgr.server.peers.merged_groups import merged_groups, without_versions
from ctrlmgr.server.peers.peer_discovery import PROXIED, PeerDiscovery
from ctrlmgr.server.peers.peer_servers import Peer, PeerServers
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import ResourcePath

log = structlog.get_logger(__name__)

_NO_ADDRESS: Final = "Error getting ip and port info of the remote server while proxying"
_LABELS: Final = ["group", "version", "resource"]
_rerouted = Counter(
    "apiserver_rerouted_request",
    "Total number of requests that were proxied to a peer kube-apiserver because the local apiserver was not capable "
    "of serving it",
    ["code", *_LABELS],
)
_errors = Counter(
    "apiserver_peer_proxy_errors",
    "Total number of errors encountered while proxying requests to a peer kube apiserver",
    ["type", *_LABELS],
)


class PeerProxy:
    """Forwards requests to peers. Used on the event loop's thread only, except for discovery."""

    def __init__(
        self,
        servers: PeerServers,
        excluded: ExcludedVersions,
        aggregator: Aggregator,
        kinds: Kinds,
        own: str,
        random: Random,
    ) -> None:
        """Create a proxy for resources that are not in `kinds`.

        `own` is the name of this process's identity Lease. `aggregator` passes requests on.
        """
        self.servers = servers
        self.excluded = excluded
        self.discovery = PeerDiscovery(servers)
        self.is_running = False
        """Whether the discovery documents of peers are requested."""
        self._aggregator = aggregator
        self._kinds = kinds
        self._own = own
        self._random = random

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Request the discovery documents of peers on the current event loop while the context is open."""
        self.servers.refresh()
        async with self.discovery.running():
            self.is_running = True
            yield

    def refresh(self) -> None:
        """Follow the peers and the excluded versions; the server calls this about once a second."""
        self.servers.refresh()
        self.excluded.refresh()

    def find(self, request: Request, path: ResourcePath | None) -> Sequence[Peer]:
        """Return the peers that serve the resource of a request; none if this server must answer the request."""
        if path is None or not self.servers.services or request.header(PROXIED[0]) == PROXIED[1]:
            return ()
        resource = path.group, path.version, path.resource
        if resource[:2] in self.excluded or self._kinds.find(*resource) is not None:
            return ()
        serving = (key for key, each in self.discovery.versions.items() if resource in each.resources)
        return [self.servers.services[key] for key in serving if key in self.servers.services]

    async def answer(self, request: Request, peers: Sequence[Peer], path: ResourcePath, attributes: Attributes) -> None:
        """Pass a request on to one of `peers`; raises `ServiceUnavailable` if no peer has an address."""
        labels = path.group, path.version, path.resource
        alive = [each for each in peers if self.servers.is_alive(each)]
        if not alive:
            _errors.labels("endpoint_resolution", *labels).inc()
            raise ServiceUnavailable(_NO_ADDRESS)
        try:
            upstream = self.servers.upstream(self._random.choice(alive))
        except (Unresolved, TransportUnusable) as error:
            _errors.labels("proxy_transport", *labels).inc()
            raise ServiceUnavailable(_NO_ADDRESS) from error
        log.debug("forwarding a request to a peer", path=request.location.path, peer=upstream.authority)
        try:
            await self._aggregator.pass_on(request, upstream, attributes, PROXIED)
        finally:
            _rerouted.labels(str(request.code), *labels).inc()

    @property
    def epoch(self) -> int:
        """A number that increases whenever the groups of the peers change."""
        return self.discovery.epoch + self.excluded.epoch

    def merged(self, groups: Sequence[Unstructured]) -> Sequence[Unstructured]:
        """Return this server's `groups` (APIGroupDiscovery) merged with those of all peers; any thread may call it."""
        peers = {key[0]: without_versions(each.groups, self.excluded) for key, each in self.discovery.versions.items()}
        return merged_groups(self._own, groups, peers)

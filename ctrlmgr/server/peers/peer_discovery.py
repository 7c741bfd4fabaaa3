"""Stores the resources that each peer serves, from the peer's discovery documents.

Guarantees: no client's request waits for a discovery document. If a peer does not respond, its last documents stay in
use until its Lease is deleted.

Source: apiserver `pkg/util/peerproxy/peer_discovery.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from prometheus_client import Counter

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.fetching import Fetcher
from ctrlmgr.server.aggregating.remote_documents import RemoteDocuments, Version
from ctrlmgr.server.peers.peer_servers import Peer, PeerServers

PROXIED: Final[Header] = (b"x-kubernetes-peer-proxied", b"true")
"""The header of requests that a peer has forwarded, which are not forwarded again (`PeerProxiedHeader`)."""
TIMEOUT: Final = 5.0
"""Maximum seconds of a request for one discovery document."""
_V2: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT: Final[Header] = (b"accept", f"{_V2};profile=nopeer,{_V2},application/json".encode())
_USER: Final = User("system:apiserver", "system:apiserver", (AUTHENTICATED,))
_errors = Counter(
    "apiserver_peer_discovery_sync_errors",
    "Total number of errors encountered while syncing discovery information from a peer kube-apiserver",
    ["type"],
)


class _Resource(msgspec.Struct):
    resource: str = ""


class _Served(msgspec.Struct):
    version: str = ""
    resources: list[_Resource] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: list[_Served] | None = None


class _List(msgspec.Struct):
    items: list[_Group] | None = None


class PeerResources(NamedTuple):
    """The resources and API groups that a peer serves."""

    resources: frozenset[tuple[str, str, str]] = frozenset()
    """The group, version and name of each resource."""
    groups: Sequence[Unstructured] = ()
    """The peer's API groups except the core group, as APIGroupDiscovery."""


class PeerDiscovery(RemoteDocuments[Peer, PeerResources]):
    """The discovery documents of all peers, by the name and the holder of their Leases."""

    def __init__(self, servers: PeerServers) -> None:
        """Create an instance that requests the discovery documents of `servers`."""
        super().__init__(servers)

    def without_answer(self, before: PeerResources | None) -> PeerResources:
        """Return the resources that the peer served at last."""
        return before or PeerResources()

    async def ask(self, key: Version, remote: Peer, fetcher: Fetcher[Peer]) -> PeerResources:
        """Return the resources that a peer serves."""
        try:
            bodies = [await _fetched(remote, path, fetcher) for path in ("/api", "/apis")]
            return PeerResources(
                frozenset(resource for body in bodies for resource in _resources(body)),
                msgspec.json.decode(bodies[1], type=dict[str, Any]).get("items") or (),
            )
        except Unresolved:
            _errors.labels("hostport_resolution").inc()
            raise
        except (UpstreamFailed, ValueError, msgspec.MsgspecError):
            _errors.labels("fetch_discovery").inc()
            raise


async def _fetched(peer: Peer, path: str, fetcher: Fetcher[Peer]) -> bytes:
    answer = await fetcher.fetch(peer, path, [_ACCEPT, PROXIED], TIMEOUT, _USER)
    if answer.code != 200 or "as=APIGroupDiscoveryList" not in answer.header(b"content-type"):
        raise UpstreamFailed(f"the response of server {peer.name} to GET {path} has the status {answer.code}")
    return answer.body


def _resources(body: bytes) -> list[tuple[str, str, str]]:
    return [
        (group.metadata.name, version.version, each.resource)
        for group in msgspec.json.decode(body, type=_List).items or ()
        for version in group.versions or ()
        for each in version.resources or ()
    ]

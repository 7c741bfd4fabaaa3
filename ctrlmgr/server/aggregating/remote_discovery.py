"""Stores the discovery documents of extension servers, which become part of the merged discovery document.

Guarantees: no client's request waits for an extension server, because the merged document contains the last known
resources. If the server of a version does not respond, the version is listed as stale, without resources.

Source: kube-aggregator `pkg/apiserver/handler_discovery.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import User
from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.discovered_resources import aggregated_resources, legacy_resources
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.fetching import Fetcher
from ctrlmgr.server.aggregating.remote_documents import RemoteDocuments, Version

TIMEOUT: Final = 5.0
"""Maximum seconds of a request for one discovery document."""
_TYPES: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
_AGGREGATED: Final[Header] = (b"accept", _TYPES.encode())
_JSON: Final[Header] = (b"accept", b"application/json")
_UNPRIVILEGED: Final = User("system:kube-aggregator")
"""The user of requests for the discovery document of one version; this user has no special permissions."""


class RemoteVersion(NamedTuple):
    """A version that an extension server serves, as its last discovery document describes it."""

    resources: Sequence[Unstructured] = ()
    is_current: bool = False


class _Cached(NamedTuple):
    etag: str
    found: Mapping[Version, Sequence[Unstructured]]


class RemoteDiscovery(RemoteDocuments[RemoteService, RemoteVersion]):
    """The discovery documents of all extension servers."""

    def __init__(self, servers: ExtensionServers) -> None:
        """Create an instance that requests discovery documents from `servers`."""
        self._cached: dict[tuple[str, str, int], _Cached] = {}
        super().__init__(servers)

    def without_answer(self, before: RemoteVersion | None) -> RemoteVersion:
        """Return a stale version without resources."""
        return RemoteVersion()

    async def ask(self, key: Version, remote: RemoteService, fetcher: Fetcher[RemoteService]) -> RemoteVersion:
        """Return the version as its extension server's discovery document describes it."""
        return RemoteVersion(await self._resources(key, remote, fetcher), is_current=True)

    async def _resources(
        self, key: Version, remote: RemoteService, fetcher: Fetcher[RemoteService]
    ) -> Sequence[Unstructured]:
        cached = self._cached.get(remote.where)
        headers = [_AGGREGATED, *([(b"if-none-match", cached.etag.encode())] if cached and cached.etag else [])]
        answer = await fetcher.fetch(remote, "/apis", headers, TIMEOUT)
        if answer.code == 304 and cached is not None:
            return cached.found.get(key, ())
        if answer.code == 503:
            raise UpstreamFailed(f"service {remote.service} returned non-success response code: 503")
        if answer.code == 200 and "as=APIGroupDiscoveryList" in answer.header(b"content-type"):
            found = aggregated_resources(answer.body)
            self._keep(remote, _Cached(answer.header(b"etag"), found))
            return found.get(key, ())
        legacy = await fetcher.fetch(remote, remote.path, [_JSON], TIMEOUT, _UNPRIVILEGED)
        if legacy.code != 200:
            raise UpstreamFailed(f"failed to download legacy discovery for {remote.path}: {legacy.code}")
        return legacy_resources(legacy.body)

    def _keep(self, remote: RemoteService, cached: _Cached) -> None:
        used = {each.where for each in self.servers.services.values()}
        self._cached = {where: each for where, each in self._cached.items() if where in used}
        self._cached[remote.where] = cached

"""Finds the extension servers that APIServices name, and resolves the servers' addresses.

Guarantees:
- The extension servers are those in the newest APIServices that the cache contains. A look-up of a server takes one
  dictionary access.
- The Service of an extension server is resolved again for each request, to a ready endpoint or the cluster address of
  the Service.
- Servers with equal certificate authorities share a TLS context. Requests share a connection only if their TLS context
  is the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.calls.endpoint import Unresolved, resolve_cluster, resolve_endpoint
from ctrlmgr.engine.calls.remote_services import RemoteService, remote_services
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.proxying.upstream_address import Upstream
from ctrlmgr.settings.kubeconfig import trusting

_CONTEXTS: Final = 64
_CONTEXT_BYTES: Final = 16 * 1024 * 1024
_LEGACY: Final = ("", "v1")


class TransportUnusable(CtrlmgrError):
    """Raised if the authorities in an APIService, or the client certificate of this server, cannot be used."""


class ExtensionServers:
    """Finds and resolves extension servers. Used on the event loop's thread only."""

    def __init__(
        self, cacher: Cacher, certificate: Callable[[], bytes], random: Random, *, by_endpoints: bool = True
    ) -> None:
        """Create an instance that follows the APIServices in the cache `cacher`.

        `certificate` returns the client certificate and its key as PEM.

        Services are resolved to an endpoint if `by_endpoints` is set, and otherwise to their cluster address.
        """
        self._cacher = cacher
        self._certificate = certificate
        self._random = random
        self._by_endpoints = by_endpoints
        self._services: Mapping[tuple[str, str], RemoteService] = {}
        self._contexts: BoundedCache[tuple[bytes, bytes, bool], ssl.SSLContext] = BoundedCache(
            "extension-tls-contexts", entries=_CONTEXTS, size=_CONTEXT_BYTES
        )
        self._listeners: list[Callable[[], None]] = []
        cacher.follow(API_SERVICES, self._update)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the extension servers have changed."""
        self._listeners.append(listener)

    def _update(self) -> None:
        found = remote_services(self._cacher.list(API_SERVICES))
        if found != self._services:
            self._services = found
            for listener in self._listeners:
                listener()

    @property
    def services(self) -> Mapping[tuple[str, str], RemoteService]:
        """The extension servers by API group and version."""
        return self._services

    def find(self, parts: Sequence[str] | None) -> RemoteService | None:
        """Return the extension server for a URL path, given its segments.

        The method returns None if this server serves the path itself.
        """
        if not self._services or not parts:
            return None
        if parts[0] == "apis" and len(parts) > 2:
            return self._services.get((parts[1], parts[2]))
        return self._services.get(_LEGACY) if parts[0] == "api" else None

    def upstream(self, remote: RemoteService) -> Upstream:
        """Return the address of an extension server.

        Raises `Unresolved` if the server's Service has no address, and `TransportUnusable` if a certificate cannot be
        used.
        """
        where = remote.namespace, remote.service, remote.port
        if self._by_endpoints:
            address = resolve_endpoint(self._cacher, *where, self._random)
            if address is None:
                raise Unresolved(f'all endpoints of service "{remote.service}" are on simulated nodes')
        else:
            address = resolve_cluster(self._cacher, *where)
        return Upstream(*address, self._context(remote), remote.server_name)

    def _context(self, remote: RemoteService) -> ssl.SSLContext:
        key = (remote.ca_bundle, self._certificate(), remote.is_checked)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = trusting(*key)
            except (OSError, ValueError) as error:
                words = "unable to load root certificates: unable to parse bytes as PEM block"
                raise TransportUnusable(words) from error
            self._contexts.put(key, context, sum(map(len, key[:2])))
        return context

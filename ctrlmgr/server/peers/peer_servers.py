"""Finds the other serving processes of this log by their identity Leases.

Guarantees:
- A process whose Lease was not renewed for `LIFETIME` seconds has no address. The time is measured on this machine's
  clock from the moment at which a renewal is seen, so the clocks of other machines do not matter.
- The certificate of each peer must have the name `kubernetes.default.svc` and an authority in the given file.

Source: apiserver `pkg/reconcilers/peer_endpoint_lease.go`, `pkg/controlplane/apiserver/peer.go`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.apiserver_identity.identity_lease import NAMESPACE, PEER_ADDRESS, is_identity
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.http.proxying.upstream_address import Upstream
from ctrlmgr.server.aggregating.extension_servers import TransportUnusable
from ctrlmgr.settings.kubeconfig import trusting

LIFETIME: Final = 15.0
"""Seconds after the renewal of a Lease in which its process has an address (`DefaultPeerEndpointReconcilerTTL`)."""
_SERVER_NAME: Final = "kubernetes.default.svc"


class Peer(NamedTuple):
    """Another serving process of the same log."""

    name: str
    """The name of its identity Lease."""
    holder: str
    """The holder of the Lease, which differs after each start of the process."""
    host: str
    """The IP address; empty if the Lease has no valid address."""
    port: int

    @property
    def server_name(self) -> str:
        """The name that the peer's certificate must have."""
        return _SERVER_NAME


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Renewal(NamedTuple):
    time: str
    """The time in the Lease."""
    seen: float
    """The time on this process's monotonic clock at which the renewal was seen."""


class PeerServers:
    """The peers of this process. Used on the event loop's thread only."""

    def __init__(
        self,
        cacher: Cacher,
        own: str,
        certificate: Callable[[], bytes],
        authorities: str,
        *,
        clock: Clock,
    ) -> None:
        """Create an instance that reads identity Leases from `cacher`.

        `own` is the name of this process's Lease. `certificate` returns the client certificate and its key as PEM;
        `authorities` are the certificate authorities of the peers as PEM.
        """
        self._cacher = cacher
        self._own = own
        self._certificate = certificate
        self._authorities = authorities
        self._clock = clock
        self._peers: Mapping[tuple[str, str], Peer] = {}
        self._renewals: dict[str, _Renewal] = {}
        self._listeners: list[Callable[[], None]] = []
        self._context: tuple[bytes, ssl.SSLContext] | None = None
        self._read_at = -1

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the peers have changed."""
        self._listeners.append(listener)

    @property
    def services(self) -> Mapping[tuple[str, str], Peer]:
        """The peers by the name and the holder of their Leases."""
        return self._peers

    def refresh(self) -> None:
        """Read the identity Leases if a Lease has changed; the server calls this about once a second."""
        revision = self._cacher.changed_at((LEASES,))
        if revision == self._read_at:
            return
        self._read_at = revision
        leases = [each for each in self._cacher.list(LEASES, NAMESPACE) if is_identity(each) and each.name != self._own]
        self._renewals = {each.name: self._renewal(each) for each in leases}
        found = [peer for each in leases if (peer := _peer(each)) is not None]
        peers = {(each.name, each.holder): each for each in found}
        if peers != self._peers:
            self._peers = peers
            for listener in self._listeners:
                listener()

    def _renewal(self, lease: Object) -> _Renewal:
        time, known = lease.view(_Lease).spec.renew_time or "", self._renewals.get(lease.name)
        now = self._clock.monotonic()
        if known is not None:
            return known if known.time == time else _Renewal(time, now)
        age = (self._clock.now() - parse_time(time)) / 1_000_000 if time else LIFETIME
        return _Renewal(time, now - max(0.0, age))  # a process that was killed long ago is not alive at our start

    def is_alive(self, peer: Peer) -> bool:
        """Return whether a peer has an address and has renewed its Lease recently."""
        renewal = self._renewals.get(peer.name)
        return bool(peer.host) and renewal is not None and self._clock.monotonic() - renewal.seen < LIFETIME

    def upstream(self, remote: Peer) -> Upstream:
        """Return the address of a peer.

        Raises `Unresolved` if the peer has no address, and `TransportUnusable` if a certificate cannot be used.
        """
        if not self.is_alive(remote):
            raise Unresolved(f"server {remote.name} has no address, or has not renewed its Lease for {LIFETIME:.0f} s")
        return Upstream(remote.host, remote.port, self._trusting(), remote.server_name)

    def _trusting(self) -> ssl.SSLContext:
        certificate = self._certificate()
        if self._context is None or self._context[0] != certificate:
            try:
                self._context = certificate, trusting(self._authorities.encode(), certificate, True)
            except (OSError, ValueError) as error:
                raise TransportUnusable("unable to load the certificates for peers") from error
        return self._context[1]


def _peer(lease: Object) -> Peer | None:
    """Return the peer with a Lease; None if the Lease has no holder."""
    holder = lease.view(_Lease).spec.holder_identity
    if holder is None:
        return None
    host, _, port = lease.annotations.get(PEER_ADDRESS, "").rpartition(":")
    return Peer(lease.name, holder, host.strip("[]") if port.isdecimal() else "", int(port) if port.isdecimal() else 0)

"""Decides the addresses in the `kubernetes` Service's endpoints: three reconcilers (`--endpoint-reconciler-type`).

- The reconciler `lease` publishes the addresses of the processes with valid leases.
- The reconciler `master-count` publishes this process's address and the addresses that are already published, up to a
  maximum number. The address of a crashed process stays published until another process's address replaces it.
- The reconciler `none` publishes no addresses, because another component manages the endpoints.

Source: Kubernetes' `pkg/controlplane/reconcilers`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

import structlog

from ctrlmgr.client import Client
from ctrlmgr.controllers.bootstrap.apiserver_endpoints import Publisher, addresses_of
from ctrlmgr.controllers.bootstrap.leases import Address, MasterLeases

log = structlog.get_logger(__name__)

LEASE: Final = "lease"
MASTER_COUNT: Final = "master-count"
NONE: Final = "none"


class EndpointReconciler(Protocol):
    """Keeps the Endpoints and EndpointSlices of the `kubernetes` Service; an instance is not thread-safe."""

    def reconcile(self, client: Client, *, reset_ports: bool) -> float | None:
        """Update the endpoints; return the seconds until the next lease expires, None if no lease can expire."""

    def remove(self, client: Client) -> bool:
        """Remove this process's address; return False if the address was not published."""


class LeaseReconciler:
    """Publishes the addresses of processes with valid leases."""

    def __init__(self, own: Address, leases: MasterLeases, publisher: Publisher, internal: Client) -> None:
        """Create a reconciler that writes leases through the client `internal`."""
        self._own = own
        self._leases = leases
        self._publisher = publisher
        self._internal = internal
        self._servers: set[Address] = set()  # The servers that this process published last.

    def reconcile(self, client: Client, *, reset_ports: bool) -> float | None:
        """Renew this process's lease, remove expired leases, and publish the addresses of servers with valid leases.

        The lease is renewed first, so that other processes publish this address even if this process cannot. The ports
        of the endpoints are also reset if the set of servers has changed.
        """
        self._leases.renew(self._internal)
        others = self._leases.others(self._internal)
        servers = {self._own, *others}
        self._publisher.publish(servers, client, reset_ports=reset_ports or servers != self._servers)
        self._servers = servers
        return min(others.values(), default=None)

    def remove(self, client: Client) -> bool:
        """Remove this process's lease and publish the other addresses.

        If there are no other addresses, leave the endpoints unchanged.
        """
        if not self._leases.give_up(self._internal):
            return False
        if others := self._leases.others(self._internal):
            self._publisher.publish(others, client, reset_ports=True)
        else:
            log.info("no other server is left, refusing to erase all endpoints for the kubernetes service")
        return True


class MasterCountReconciler:
    """Publishes this process's address and already published addresses, up to the configured number of servers."""

    def __init__(self, own: Address, count: int, publisher: Publisher) -> None:
        """Create a reconciler that publishes at most `count` addresses."""
        self._own = own
        self._count = count
        self._publisher = publisher

    def reconcile(self, client: Client, *, reset_ports: bool) -> None:
        """Add this process's address to the endpoints.

        If the endpoints have too many addresses, remove the addresses that follow this process's address in sorted
        order.
        """
        ips = counted(addresses_of(self._publisher.published), self._own.ip, self._count)
        self._publish(ips, client, reset_ports=reset_ports)

    def remove(self, client: Client) -> bool:
        """Remove this process's address from the endpoints, even if no other address remains."""
        there = addresses_of(self._publisher.published)
        if self._own.ip not in there:
            return False
        self._publish([ip for ip in there if ip != self._own.ip], client, reset_ports=False)
        return True

    def _publish(self, ips: Collection[str], client: Client, *, reset_ports: bool) -> None:
        self._publisher.publish({Address(ip, self._own.port) for ip in ips}, client, reset_ports=reset_ports)


def counted(there: Collection[str], own: str, count: int) -> list[str]:
    """Return the addresses to publish: `own` and the already published addresses in `there`, sorted, at most `count`.

    If there are too many addresses, those after `own` are removed first, and then those at the beginning.
    """
    ips = sorted({*there, own})
    while len(ips) > max(count, 1):
        ips.pop((ips.index(own) + 1) % len(ips))
    return ips


class NoReconciler:
    """Publishes no addresses."""

    def reconcile(self, client: Client, *, reset_ports: bool) -> None:
        """Do nothing."""

    def remove(self, client: Client) -> bool:
        """Do nothing."""
        return False

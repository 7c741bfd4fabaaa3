"""Whose addresses the `kubernetes` service leads to: three ways to know (`--endpoint-reconciler-type`).

- `lease`: those of the processes whose leases have not run out.
- `master-count`: our own and what is there already, up to a number; a dead one's stays until another needs the room.
- `none`: no addresses; another component sees to them.

Kubernetes: `pkg/controlplane/reconcilers`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

import structlog

from ctrlmgr.client import Client
from ctrlmgr.controllers.bootstrap.endpoints import Publisher, addresses_of
from ctrlmgr.controllers.bootstrap.leases import Address, MasterLeases

log = structlog.get_logger(__name__)

LEASE: Final = "lease"
MASTER_COUNT: Final = "master-count"
NONE: Final = "none"


class EndpointReconciler(Protocol):
    """Keeps Endpoints and slices true; not thread-safe."""

    def reconcile(self, client: Client, *, reset_ports: bool) -> float | None:
        """Make them say what is true now; return in how many seconds that may change by time alone, None if never."""

    def remove(self, client: Client) -> bool:
        """Take our own address out; False if it was not there."""


class LeaseReconciler:
    """The addresses of the processes that hold a lease."""

    def __init__(self, own: Address, leases: MasterLeases, publisher: Publisher, internal: Client) -> None:
        """Write leases through `internal`."""
        self._own = own
        self._leases = leases
        self._publisher = publisher
        self._internal = internal
        self._servers: set[Address] = set()  # those that were published last

    def reconcile(self, client: Client, *, reset_ports: bool) -> float | None:
        """Renew our lease, remove those that have run out, and publish those that are left.

        Our own comes first, so that others publish our address even if we cannot. Ports are reset too when the servers
        are others than before.
        """
        self._leases.renew(self._internal)
        others = self._leases.others(self._internal)
        servers = {self._own, *others}
        self._publisher.publish(servers, client, reset_ports=reset_ports or servers != self._servers)
        self._servers = servers
        return min(others.values(), default=None)

    def remove(self, client: Client) -> bool:
        """Remove our lease and publish the others'; if there are none, what is published stays."""
        if not self._leases.give_up(self._internal):
            return False
        if others := self._leases.others(self._internal):
            self._publisher.publish(others, client, reset_ports=True)
        else:
            log.info("no other server is left, refusing to erase all endpoints for the kubernetes service")
        return True


class MasterCountReconciler:
    """Our own address and others', at most as many as there are to be servers."""

    def __init__(self, own: Address, count: int, publisher: Publisher) -> None:
        """Take the number of servers."""
        self._own = own
        self._count = count
        self._publisher = publisher

    def reconcile(self, client: Client, *, reset_ports: bool) -> None:
        """Add our address; drop those that follow it in order while there are too many."""
        ips = counted(addresses_of(self._publisher.published), self._own.ip, self._count)
        self._publish(ips, client, reset_ports=reset_ports)

    def remove(self, client: Client) -> bool:
        """Remove our address, even if it is the last."""
        there = addresses_of(self._publisher.published)
        if self._own.ip not in there:
            return False
        self._publish([ip for ip in there if ip != self._own.ip], client, reset_ports=False)
        return True

    def _publish(self, ips: Collection[str], client: Client, *, reset_ports: bool) -> None:
        self._publisher.publish({Address(ip, self._own.port) for ip in ips}, client, reset_ports=reset_ports)


def counted(there: Collection[str], own: str, count: int) -> list[str]:
    """Return the addresses to publish: `own` and those that are `there`, in order, at most `count`.

    Too many: those after our own go, and then those at the beginning.
    """
    ips = sorted({*there, own})
    while len(ips) > max(count, 1):
        ips.pop((ips.index(own) + 1) % len(ips))
    return ips


class NoReconciler:
    """No addresses."""

    def reconcile(self, client: Client, *, reset_ports: bool) -> None:
        """Do nothing."""

    def remove(self, client: Client) -> bool:
        """Do nothing."""
        return False

"""Leases of the serving processes. Each server address has one lease, which is renewed while the server is alive.

Guarantees:
- An expired lease is removed only if it has not changed since this process last read it. Therefore no process removes a
  lease that its holder has just renewed.
- A process measures the age of a lease with its own clock, from the time at which its cache received the renewal.
  Clocks of two machines are never compared. A process that has just started gives every lease its full duration.

Kubernetes also stores these leases outside of its API, under `/masterleases` in etcd, and etcd deletes expired leases.
In ctrlmgr, the leases are objects of an internal resource. Objects of the internal resource are visible in the log and
in SQL, but not in the API.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION, INTERNAL_GROUP, Key, Resource, Revision
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informer

log = structlog.get_logger(__name__)

MASTER_LEASES: Final = Resource(INTERNAL_GROUP, "masterleases")
TTL: Final = 15.0
"""The number of seconds until a lease expires (`DefaultEndpointReconcilerTTL`)."""
RENEW_AFTER: Final = 5.0
"""The number of seconds after a renewal during which the lease is not renewed again: half of the renewal interval."""

_DUE: Final = 0.001
"""A lease that expires within this number of seconds counts as expired, because sums of floats are inexact."""


class Address(NamedTuple):
    """The address and the port of a server."""

    ip: str
    port: int

    @property
    def name(self) -> str:
        """The name of this server's lease: `192.0.2.1:6443`, `[2001:db8::1]:6443`."""
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"


class _Spec(msgspec.Struct, rename="camel"):
    ip: str
    port: int
    lease_duration_seconds: float = TTL


class _Lease(msgspec.Struct):
    spec: _Spec


class MasterLeases:
    """The leases of all serving processes, including the lease of this process."""

    def __init__(self, own: Address, leases: Informer, event_log: EventLog, *, clock: Clock) -> None:
        """Follow `leases`, an informer of `MASTER_LEASES` that has not synced yet.

        The address of this process is `own`.
        """
        self._own = own
        self._key = Key("", own.name)
        self._log = event_log
        self._clock = clock
        # The last seen revision of each lease, and the time when it was seen (monotonic seconds), by name.
        self._seen: dict[str, tuple[Revision, float]] = {}
        self._renewed_at: float | None = None
        leases.add_handler(self._observe, vital=True)

    def _observe(self, change: Change) -> None:
        if change.new is not None:
            self._seen[change.new.name] = change.new.revision, self._clock.monotonic()
        elif change.old is not None:
            self._seen.pop(change.old.name, None)

    def renew(self, client: Client) -> None:
        """Create or renew this process's lease, unless the lease was just renewed.

        Raises the errors of `client` if the write fails.
        """
        now = self._clock.monotonic()
        current = self._log.get(MASTER_LEASES, self._key)
        if current is None:
            client.create(self._lease({"name": self._own.name}))
        elif self._renewed_at is not None and now - self._renewed_at < RENEW_AFTER:
            return
        else:
            client.update(self._lease(current.to_dict()["metadata"]))
        self._renewed_at = now

    def _lease(self, metadata: dict[str, Any]) -> Object:
        spec = {
            "ip": self._own.ip,
            "port": self._own.port,
            "leaseDurationSeconds": TTL,
            "renewTime": format_time(self._clock.now()),
        }
        head = {"kind": "MasterLease", "apiVersion": INTERNAL_API_VERSION, "metadata": metadata}
        return Object.from_dict({**head, "spec": spec})

    def give_up(self, client: Client) -> bool:
        """Remove this process's lease; return False if the lease does not exist."""
        current = self._log.get(MASTER_LEASES, self._key)
        if current is None:
            return False
        client.delete(current)
        return True

    def others(self, client: Client) -> dict[Address, float]:
        """Return the addresses of the other servers, each with the number of seconds until its lease expires.

        The method also removes expired leases.
        """
        found: dict[Address, float] = {}
        for lease in self._log.snapshot(MASTER_LEASES).objects:
            left = self._left(lease)
            if lease.key != self._key and (left > _DUE or not _remove(lease, client)):
                spec = lease.view(_Lease).spec
                found[Address(spec.ip, spec.port)] = max(left, _DUE)
        return found

    def _left(self, lease: Object) -> float:
        """Return the seconds until a lease at this revision expires.

        If the cache does not contain the given revision of the lease yet, the result is the full duration.
        """
        now = self._clock.monotonic()
        revision, seen_at = self._seen.get(lease.name, (0, now))
        return lease.view(_Lease).spec.lease_duration_seconds - (now - seen_at if revision == lease.revision else 0.0)


def _remove(lease: Object, client: Client) -> bool:
    """Remove an expired lease; return False if its holder has renewed it meanwhile."""
    try:
        client.delete(lease)
    except Conflict:
        return False
    except NotFound:
        return True
    log.warning("server stopped unexpectedly", address=lease.name)
    return True

"""Keeps the identity Lease of a serving process, and deletes expired identity Leases of other processes.

Guarantees:
- A process creates its Lease, renews it every 10 s, and deletes it when the process stops. At the start, a process
  deletes the Lease that an earlier process with the same identity has left.
- Each hour, expired identity Leases are deleted, unless their process has renewed them meanwhile.

Source: component-helpers `apimachinery/lease/controller.go`, Kubernetes'
`pkg/controlplane/controller/apiserverleasegc/gc_controller.go`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Final, NamedTuple

import structlog

from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.apiserver_identity.identity_lease import (
    NAMESPACE,
    has_expired,
    identity_of_server,
    is_identity,
    renewed_lease,
)
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.errors import Conflict, CtrlmgrError, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.manager import Controller, Result

log = structlog.get_logger(__name__)

CONTROLLER_NAME: Final = "kube-apiserver-identity-lease-controller"
COLLECTOR_NAME: Final = "kube-apiserver-identity-lease-garbage-collector"
RENEW_EVERY: Final = 10.0
"""Seconds between renewals (`IdentityLeaseRenewIntervalPeriod`); a renewal is up to 4 % later."""
COLLECT_EVERY: Final = 3600.0
"""Seconds between searches for expired Leases (`IdentityLeaseGCPeriod`)."""
_JITTER: Final = 0.04
_SOON: Final = 0.2
_EXPIRED: Final = Key("", "expired-leases")


class Server(NamedTuple):
    """The host, the port and the address of a serving process."""

    host: str
    port: int
    peer_address: str = ""
    """The address (HOST:PORT) at which other processes reach the process; empty if they do not forward requests."""


class IdentityLease:
    """Reconciles the Lease of this process."""

    def __init__(self, server: Server, leases: EventLog, *, clock: Clock, random: Random) -> None:
        """Keep the Lease of the process `server`; `leases` is the log that contains all Leases."""
        name = identity_of_server(server.host, server.port)
        self._key = Key(NAMESPACE, name)
        self._server = server
        self._holder = f"{name}_{new_uid(random)}"
        self._leases = leases
        self._clock = clock
        self._random = random
        self.is_created = False
        """Whether this process has created its Lease."""

    def on_start(self) -> Iterable[Key]:
        """Return the key of the Lease."""
        return (self._key,)

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Create or renew the Lease; raises the errors of `client`."""
        try:
            self._renew(client)
        except NotFound:  # at the first start, the namespace does not exist yet
            return Result(_SOON)
        return Result(RENEW_EVERY * (1 + _JITTER * self._random.random()))

    def _renew(self, client: EngineClient) -> None:
        if not self.is_created:
            self.remove(client)  # the Lease of an earlier process
        current = self._leases.get(LEASES, self._key)
        lease = renewed_lease(
            self._key.name,
            self._server.host,
            self._holder,
            current,
            self._clock.now(),
            peer_address=self._server.peer_address,
        )
        if current is None:
            client.create(lease)
        else:
            client.update(lease)
        self.is_created = True

    def remove(self, client: EngineClient) -> None:
        """Delete the Lease, if it exists; raises the errors of `client`."""
        if (current := self._leases.get(LEASES, self._key)) is not None:
            with suppress(NotFound):
                client.delete(current)


class LeaseCollector:
    """Deletes expired identity Leases; the only key stands for all of them."""

    def __init__(self, leases: EventLog, clock: Clock) -> None:
        """Create a reconciler that finds Leases in the log `leases`."""
        self._leases = leases
        self._clock = clock

    def on_start(self) -> Iterable[Key]:
        """Return the only key of the controller, which represents all Leases."""
        return (_EXPIRED,)

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Delete expired Leases; raises the errors of `client`."""
        for lease in self._leases.snapshot(LEASES, namespace=NAMESPACE).objects:
            if is_identity(lease) and has_expired(lease, self._clock.now()):
                log.info("deleting the expired identity lease of a server", lease=lease.name)
                with suppress(Conflict, NotFound):  # another process has renewed or deleted it
                    client.delete(lease, "Background")  # only if it is unchanged
        return Result(COLLECT_EVERY)


class IdentityPublisher:
    """A runnable that keeps the identity Lease of this process until it is stopped."""

    name = CONTROLLER_NAME

    def __init__(self, lease: IdentityLease, controller: Controller, client: EngineClient) -> None:
        """Run `controller`, which reconciles `lease`; when it has ended, delete the Lease through `client`."""
        self._lease = lease
        self._controller = controller
        self._client = client

    @property
    def is_published(self) -> bool:
        """Whether the Lease of this process exists."""
        return self._lease.is_created

    def run(self, stop: threading.Event) -> None:
        """Renew the Lease until `stop` is set, and delete it."""
        self._controller.run(stop)
        self.stop()

    def stop(self) -> None:
        """Delete the Lease of this process; a failed deletion is logged, because the Lease expires."""
        try:
            self._lease.remove(self._client)
        except CtrlmgrError as error:
            log.warning("deleting the identity lease of this server failed", error=str(error))


def new_identity_publisher(
    server: Server, client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random
) -> IdentityPublisher:
    """Build the runnable, which writes through `client`."""
    lease = IdentityLease(server, event_log, clock=clock, random=random)
    controller = Controller(
        CONTROLLER_NAME, lease, watches=[], client=client, log=event_log, clock=clock, random=random
    )
    return IdentityPublisher(lease, controller, client)


def new_lease_collector(client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random) -> Controller:
    """Build the controller that deletes expired identity Leases."""
    collector = LeaseCollector(event_log, clock)
    return Controller(COLLECTOR_NAME, collector, watches=[], client=client, log=event_log, clock=clock, random=random)

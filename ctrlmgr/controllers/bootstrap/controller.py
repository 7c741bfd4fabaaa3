"""The bootstrap controller: what each serving process does so that there is a cluster, and that it is found.

Guarantees:
- Before anything else (`prepare`): the system namespaces and the default ServiceCIDR exist, our own address is not
  published, and both repairs have gone a round. If a repair fails, so does the process: it is never ready.
- The process being ready for the first time, the `kubernetes` service exists with the right type and ports, and leads
  to this process among others; from then on all of it is looked at in fixed periods, and a moment after a client has
  deleted or changed it.
- After `stop` this process publishes nothing any more, and its address and lease are gone; that takes at most twice
  the interval, or is given up.

Kubernetes: `pkg/controlplane/controller/kubernetesservice` and the post-start hooks of `pkg/controlplane`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from ctrlmgr import threads
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.bootstrap.cidr import DefaultServiceCIDR
from ctrlmgr.controllers.bootstrap.namespaces import SystemNamespaces
from ctrlmgr.controllers.bootstrap.reconcilers import EndpointReconciler
from ctrlmgr.controllers.bootstrap.service import KubernetesService
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.manager import Controller, Periodic, Result, Runnable

log = structlog.get_logger(__name__)

CONTROLLER_NAME: Final = "bootstrap-controller"
INTERVAL: Final = 10.0
"""Seconds between looks at the service and its endpoints (`DefaultEndpointReconcilerInterval`)."""
PATIENCE: Final = 60.0
"""Seconds for which `prepare` tries again what cannot be done yet (`start-service-ip-repair-controllers`)."""

NAMESPACES: Final = Key("", "system-namespaces")
SERVICE_CIDR: Final = Key("", "service-cidr")
SERVICE: Final = Key("", "kubernetes-service")

_LOOK_AGAIN: Final = 0.1
"""Seconds between looks at what the process waits for."""


class Presence:
    """The `kubernetes` service, and that it leads here from when the process is ready until it stops."""

    def __init__(self, service: KubernetesService, endpoints: EndpointReconciler, ready: Callable[[], bool]) -> None:
        """Begin once `ready` says so."""
        self._service = service
        self._endpoints = endpoints
        self._ready = ready
        # Held while anything is published or taken back, so that nothing is published after `stop`.
        self._lock = threading.Lock()
        self._began = self._reset = self._stopped = False

    def sync(self, client: Client) -> float | None:
        """Make it true; return in how many seconds to look again, None: when asked to."""
        with self._lock:
            if self._stopped:
                return None
            if not self._began:
                self._began = self._ready()
                if not self._began:
                    return _LOOK_AGAIN
            self._service.sync(client, reset=not self._reset)
            again = self._endpoints.reconcile(client, reset_ports=not self._reset)
            self._reset = True
            return again

    def remove(self, client: Client) -> None:
        """Take our own address back, which a process that was here before may have left."""
        with self._lock:
            if self._endpoints.remove(client):
                log.warning("this server's address was published, so the process before this one did not stop in order")

    def stop(self, client: Client) -> None:
        """Take our own address back for good."""
        with self._lock:
            self._stopped = True
            if self._began:
                self._endpoints.remove(client)


class BootstrapReconciler:
    """Does the one of its tasks that the key names."""

    def __init__(self, namespaces: SystemNamespaces, service_cidr: DefaultServiceCIDR, presence: Presence) -> None:
        """Take the tasks."""
        self._namespaces = namespaces
        self._service_cidr = service_cidr
        self._presence = presence

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Do it."""
        if key == NAMESPACES:
            self._namespaces.sync(client)
        elif key == SERVICE_CIDR:
            self._service_cidr.sync(client)
        elif (again := self._presence.sync(client)) is not None:
            return Result(requeue_after=again)
        return None

    def prepare(self, key: Key, client: Client) -> None:
        """Do what comes before everything else: of the service, that it does not lead here."""
        if key == SERVICE:
            self._presence.remove(client)
        else:
            self.reconcile(key, client)

    def stop(self, client: Client) -> None:
        """See to it that the service does not lead here any more."""
        self._presence.stop(client)


class Bootstrap:
    """A Runnable that prepares, then has the controllers look at their tasks in fixed periods, and withdraws."""

    name = "bootstrap"

    def __init__(
        self,
        reconciler: BootstrapReconciler,
        repairs: Sequence[Callable[[], object]],
        periodic: Periodic,
        controllers: Sequence[Controller],
        client: Client,
        *,
        clock: Clock,
    ) -> None:
        """Put together by `bootstrap_assembly`; `periodic` enqueues for the `controllers`.

        Each of `repairs` goes a round of one; `client` is what `prepare` and `stop` write through.
        """
        self._reconciler = reconciler
        self._repairs = repairs
        self.periodic = periodic
        """What enqueues the tasks."""
        self._client = client
        self._clock = clock
        self.runnables: Sequence[Runnable] = (self, *controllers)
        """What is to be run, in one phase."""
        # Guards what follows; notified when it changes.
        self._changed = threading.Condition()
        self._prepared = self._stopping = self._withdrawn = False

    def has_synced(self) -> bool:
        """Whether it has prepared."""
        return self._prepared

    def problem(self) -> str | None:
        """Return what is wrong, None when it has prepared."""
        return None if self._prepared else "addresses and node ports have not been checked yet"

    def run(self, stop: threading.Event) -> None:
        """Prepare, do all tasks in their periods until `stop` is set, and withdraw.

        Raises what a repair raises.
        """
        self.prepare(stop)
        if self._prepared:
            self.periodic.run(stop)
            self.stop()

    def prepare(self, stop: threading.Event) -> None:
        """Do what comes before everything else; unless `stop` is set, raises what a repair raises."""
        for key in (SERVICE, NAMESPACES, SERVICE_CIDR):
            try:
                self._patiently(partial(self._reconciler.prepare, key, self._client), stop)
            except CtrlmgrError as error:  # its period comes; the repairs are what must not fail
                log.warning("not prepared", task=key.name, error=str(error))
        for repair in self._repairs:
            self._patiently(repair, stop)
        self._prepared = not stop.is_set()

    def _patiently(self, task: Callable[[], object], stop: threading.Event) -> None:
        """Do it, again and again while it cannot be done yet; give up after `PATIENCE` seconds, or when stopped."""
        give_up_at = self._clock.monotonic() + PATIENCE
        while not stop.is_set():
            try:
                task()
                return
            except CtrlmgrError as error:
                if not error.retryable or self._clock.monotonic() >= give_up_at:
                    raise
            with self._changed:
                self._clock.wait(self._changed, _LOOK_AGAIN)

    def stop(self) -> None:
        """Publish nothing any more and take our address back; returns after at most twice the interval.

        Called by `run` at its end, and by a caller that wants it earlier: before the server stops taking requests.
        """
        with self._changed:
            is_first, self._stopping = not self._stopping, True
        if is_first:
            threads.start("bootstrap-withdrawal", self._withdraw)
        give_up_at = self._clock.monotonic() + 2 * INTERVAL
        with self._changed:
            while not self._withdrawn:
                left = give_up_at - self._clock.monotonic()
                if left <= 0 or not self._clock.wait(self._changed, left):
                    log.warning("this server's address could not be taken back in time")
                    return

    def _withdraw(self) -> None:
        try:
            self._reconciler.stop(self._client)
        except CtrlmgrError as error:
            log.warning("this server's address could not be taken back", error=str(error))
        finally:
            with self._changed:
                self._withdrawn = True
                self._changed.notify_all()

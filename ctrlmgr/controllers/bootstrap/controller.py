"""The bootstrap controller of each serving process: creates a cluster's basic objects and publishes the server.

Guarantees:
- The controller calls `prepare` before all other tasks. The preparation creates the system namespaces and the default
  ServiceCIDR, removes this server's address from the endpoints, and runs the repairs of ClusterIPs and node ports once.
  If a repair fails, the process fails and is never ready.
- When the process is ready for the first time, the `kubernetes` Service gets the right type and ports, and its
  endpoints include this process. From then on the controller checks all basic objects periodically, and shortly after a
  client has deleted or changed one of them.
- After `stop`, the process publishes no address, and the process's address and lease are removed. If the removal takes
  longer than twice `INTERVAL`, `stop` returns without waiting longer.

Source: Kubernetes' `pkg/controlplane/controller/kubernetesservice` and the post-start hooks of `pkg/controlplane`.
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
from ctrlmgr.controllers.bootstrap.reconcilers import EndpointReconciler
from ctrlmgr.controllers.bootstrap.service import KubernetesService
from ctrlmgr.controllers.bootstrap.system_namespaces import SystemNamespaces
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.manager import Controller, Periodic, Result, Runnable

log = structlog.get_logger(__name__)

CONTROLLER_NAME: Final = "bootstrap-controller"
INTERVAL: Final = 10.0
"""The number of seconds between checks of the Service and its endpoints (`DefaultEndpointReconcilerInterval`)."""
PATIENCE: Final = 60.0
"""The maximum number of seconds for which the preparation retries each task (`start-service-ip-repair-controllers`)."""

NAMESPACES: Final = Key("", "system-namespaces")
SERVICE_CIDR: Final = Key("", "service-cidr")
SERVICE: Final = Key("", "kubernetes-service")

_LOOK_AGAIN: Final = 0.1
"""The number of seconds between retries, and between checks of readiness."""


class Presence:
    """Keeps the `kubernetes` Service and this server's address in its endpoints, from readiness until `stop`."""

    def __init__(self, service: KubernetesService, endpoints: EndpointReconciler, ready: Callable[[], bool]) -> None:
        """Create the publisher, which publishes the address from the time when `ready` returns True."""
        self._service = service
        self._endpoints = endpoints
        self._ready = ready
        # This lock is held while the address is published or removed, so that no address is published after `stop`.
        self._lock = threading.Lock()
        self._began = self._reset = self._stopped = False

    def is_published(self) -> bool:
        """Return whether the Service and the endpoints have been published at least once."""
        return self._reset

    def sync(self, client: Client) -> float | None:
        """Update the `kubernetes` Service and its endpoints.

        Return the seconds until the next update; None if the next periodic update is early enough.
        """
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
        """Remove this server's address from the endpoints, where an earlier process may have left it."""
        with self._lock:
            if self._endpoints.remove(client):
                log.warning(
                    "this server's address was already published; the previous process was not shut down cleanly"
                )

    def stop(self, client: Client) -> None:
        """Remove this server's address from the endpoints, and publish no address after that."""
        with self._lock:
            self._stopped = True
            if self._began:
                self._endpoints.remove(client)


class BootstrapReconciler:
    """A reconciler that runs the bootstrap task that the key names."""

    def __init__(self, namespaces: SystemNamespaces, service_cidr: DefaultServiceCIDR, presence: Presence) -> None:
        """Create a reconciler for these tasks; each key is the name of a task."""
        self._namespaces = namespaces
        self._service_cidr = service_cidr
        self._presence = presence

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Run the task that `key` names."""
        if key == NAMESPACES:
            self._namespaces.sync(client)
        elif key == SERVICE_CIDR:
            self._service_cidr.sync(client)
        elif (again := self._presence.sync(client)) is not None:
            return Result(requeue_after=again)
        return None

    def is_published(self) -> bool:
        """Return whether the `kubernetes` Service has been published at least once."""
        return self._presence.is_published()

    def prepare(self, key: Key, client: Client) -> None:
        """Run the preparation of the task that `key` names; for the Service, remove this server's address."""
        if key == SERVICE:
            self._presence.remove(client)
        else:
            self.reconcile(key, client)

    def stop(self, client: Client) -> None:
        """Remove this server from the Service's endpoints."""
        self._presence.stop(client)


class Bootstrap:
    """A Runnable that prepares the cluster, enqueues tasks periodically, and finally removes this server's address."""

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
        """`new_bootstrap` creates the instances of this class; `periodic` enqueues tasks for the `controllers`.

        Each function in `repairs` runs one repair once. The methods `prepare` and `stop` write through `client`.
        """
        self._reconciler = reconciler
        self._repairs = repairs
        self.periodic = periodic
        """A runnable that enqueues the tasks periodically."""
        self._client = client
        self._clock = clock
        self.runnables: Sequence[Runnable] = (self, *controllers)
        """The runnables of this controller, all of which run in the same phase."""
        # The condition variable guards all attributes that follow. The condition variable is notified when one of the
        # guarded fields changes.
        self._changed = threading.Condition()
        self._prepared = self._stopping = self._withdrawn = False

    def has_synced(self) -> bool:
        """Return whether the preparation of the cluster is complete."""
        return self._prepared

    def is_published(self) -> bool:
        """Return whether the `kubernetes` Service has been published at least once since the process became ready."""
        return self._reconciler.is_published()

    def run(self, stop: threading.Event) -> None:
        """Run the preparation, enqueue all tasks periodically until `stop` is set, and remove this server's address.

        Raises an error if a repair fails.
        """
        self.prepare(stop)
        if self._prepared:
            self.periodic.run(stop)
            self.stop()

    def prepare(self, stop: threading.Event) -> None:
        """Run the preparation; raises an error if a repair fails, unless `stop` is set."""
        for key in (SERVICE, NAMESPACES, SERVICE_CIDR):
            try:
                self._patiently(partial(self._reconciler.prepare, key, self._client), stop)
            except CtrlmgrError as error:
                # The next periodic check retries the task; only the repairs must succeed now.
                log.warning("bootstrap task failed", task=key.name, error=str(error))
        for repair in self._repairs:
            self._patiently(repair, stop)
        self._prepared = not stop.is_set()

    def _patiently(self, task: Callable[[], object], stop: threading.Event) -> None:
        """Run a task, and retry it until it succeeds, `PATIENCE` seconds have passed, or `stop` is set."""
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
        """Stop publishing and remove this server's address; return after at most twice the interval.

        The method `run` calls `stop` at its end. The server may call `stop` earlier, before it stops accepting
        requests.
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
                    log.warning("removing this server's address timed out")
                    return

    def _withdraw(self) -> None:
        try:
            self._reconciler.stop(self._client)
        except CtrlmgrError as error:
            log.warning("removing this server's address failed", error=str(error))
        finally:
            with self._changed:
                self._withdrawn = True
                self._changed.notify_all()

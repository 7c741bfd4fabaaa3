"""Every controller there is, and which of them run."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

from ctrlmgr import __version__
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, Fencing, FieldMarks, LogClient, Runner
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.bootstrap import assembly as bootstrap_assembly
from ctrlmgr.controllers.bootstrap import controller as bootstrap
from ctrlmgr.controllers.clusterrole_aggregation.controller import CONTROLLER_NAME as CLUSTERROLE_AGGREGATION_CONTROLLER
from ctrlmgr.controllers.clusterrole_aggregation.controller import new_clusterrole_aggregation_controller
from ctrlmgr.controllers.compaction.controller import CompactionReconciler
from ctrlmgr.controllers.endpoint_slices.controller import CONTROLLER_NAME as ENDPOINT_SLICE_CONTROLLER
from ctrlmgr.controllers.endpoint_slices.controller import new_endpoint_slice_controller
from ctrlmgr.controllers.endpoints.controller import CONTROLLER_NAME as ENDPOINT_CONTROLLER
from ctrlmgr.controllers.endpoints.controller import new_endpoints_controller
from ctrlmgr.controllers.events.expiry import new_event_expiry
from ctrlmgr.controllers.events.recorder import EventBroadcaster, Recorder
from ctrlmgr.controllers.garbage_collector.controller import CONTROLLER_NAME as GARBAGE_COLLECTOR
from ctrlmgr.controllers.garbage_collector.controller import new_garbage_collector
from ctrlmgr.controllers.mirroring.controller import CONTROLLER_NAME as MIRRORING_CONTROLLER
from ctrlmgr.controllers.mirroring.controller import new_mirroring_controller
from ctrlmgr.controllers.namespace.controller import CONTROLLER_NAME as NAMESPACE_CONTROLLER
from ctrlmgr.controllers.namespace.controller import new_namespace_controller
from ctrlmgr.controllers.pod_garbage_collector.controller import CONTROLLER_NAME as POD_GARBAGE_COLLECTOR
from ctrlmgr.controllers.pod_garbage_collector.controller import new_pod_garbage_collector
from ctrlmgr.controllers.root_ca_publisher.controller import CONTROLLER_NAME as ROOT_CA_PUBLISHER
from ctrlmgr.controllers.root_ca_publisher.controller import new_root_ca_publisher
from ctrlmgr.controllers.service_accounts.controller import CONTROLLER_NAME as SERVICE_ACCOUNT_CONTROLLER
from ctrlmgr.controllers.service_accounts.controller import new_service_account_controller
from ctrlmgr.controllers.service_cidrs.controller import CONTROLLER_NAME as SERVICE_CIDR_CONTROLLER
from ctrlmgr.controllers.service_cidrs.controller import new_service_cidr_controller
from ctrlmgr.controllers.ttl_after_finished.controller import CONTROLLER_NAME as TTL_AFTER_FINISHED_CONTROLLER
from ctrlmgr.controllers.ttl_after_finished.controller import new_ttl_after_finished_controller
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.options import Requester
from ctrlmgr.errors import Fenced, SettingsError
from ctrlmgr.eventlog import Author, EventLog
from ctrlmgr.informer import Informers, Lister
from ctrlmgr.manager import Controller, Periodic, Runnable
from ctrlmgr.settings import Settings

_USER_AGENT = f"ctrlmgr/{__version__}"


class Parts(NamedTuple):
    """What every controller is made of."""

    settings: Settings
    informers: Informers
    event_log: EventLog
    clock: Clock
    random: Random
    namespaces: Lister
    engine: Engine
    run: Runner
    broadcaster: EventBroadcaster
    root_ca: str
    """The certificate of the authority that signs for this server, as PEM."""
    fencing: Fencing | None
    """What every write of a controller carries, None when nobody else can lead."""

    def client(self, controller: str) -> LogClient:
        """Return a client that writes straight to the log, for a controller that needs nothing of the API's."""
        return LogClient(
            self.event_log,
            author=Author(_user(controller), _USER_AGENT),
            clock=self.clock,
            new_uid=lambda: str(UUID(int=self.random.getrandbits(128), version=4)),
            namespaces=self.namespaces,
            fence=self.fencing,
            marks=FieldMarks(self.engine.kinds),
        )

    def unfenced(self, component: str) -> LogClient:
        """Return the same for what every process does, whoever leads."""
        return self._replace(fencing=None).client(component)

    def recorder(self, controller: str, component: str) -> Recorder:
        """Return what `controller` tells of things through, under the name that Kubernetes' Events have for it."""
        return self.broadcaster.recorder(component, self.unfenced(controller))

    def engine_client(self, controller: str) -> EngineClient:
        """Return a client that writes as the API does."""
        requester = Requester(_user(controller), ("system:masters",), _USER_AGENT)
        return EngineClient(self.engine, self.run, requester, fence=self.fencing, manager=CONTROLLER_MANAGER)

    def for_bootstrap(self) -> bootstrap_assembly.Parts:
        """Return what the bootstrap controller is made of."""
        requester = Requester("system:apiserver", ("system:masters",), _USER_AGENT)
        client = EngineClient(self.engine, self.run, requester, manager="kube-apiserver")
        internal = self.unfenced(bootstrap.CONTROLLER_NAME)
        return bootstrap_assembly.Parts(
            self.informers, self.event_log, client, internal, self.broadcaster, self.clock, self.random
        )


def read_root_ca(settings: Settings, own: Path) -> str:
    """Return the certificate to publish, as PEM: the one that the settings name, else `own`; raises `SettingsError`."""
    named = settings.controllers.root_ca_file
    try:
        return (Path(named).expanduser() if named else own).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"controllers.root_ca_file: {named or own} cannot be used: {error}") from error


def _user(controller: str) -> str:
    return f"system:controller:{controller}"


def _endpoints(parts: Parts) -> Controller:
    return new_endpoints_controller(
        parts.informers,
        parts.client(ENDPOINT_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.endpoints.workers,
        batch_period=parts.settings.endpoints.batch_period,
        recorder=parts.recorder(ENDPOINT_CONTROLLER, "endpoint-controller"),
    )


def _endpoint_slices(parts: Parts) -> Controller:
    return new_endpoint_slice_controller(
        parts.informers,
        parts.client(ENDPOINT_SLICE_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.controllers.concurrent_service_endpoint_syncs,
        batch_period=parts.settings.endpoints.batch_period,
        recorder=parts.recorder(ENDPOINT_SLICE_CONTROLLER, "endpoint-slice-controller"),
    )


def _mirroring(parts: Parts) -> Controller:
    return new_mirroring_controller(
        parts.informers,
        parts.client(MIRRORING_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.controllers.mirroring_concurrent_service_endpoint_syncs,
        recorder=parts.recorder(MIRRORING_CONTROLLER, "endpoint-slice-mirroring-controller"),
    )


def _namespaces(parts: Parts) -> Controller:
    kinds = [
        (kind.storage, kind.gvk.api_version)
        for kind in parts.engine.kinds
        if kind.namespaced and kind.storage == kind.resource and "delete" in kind.verbs
    ]
    return new_namespace_controller(
        parts.informers,
        dict(kinds).items(),
        parts.engine_client(NAMESPACE_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.controllers.concurrent_namespace_syncs,
        grace=parts.settings.namespace.deletion_grace,
    )


def _garbage_collector(parts: Parts) -> Controller:
    return new_garbage_collector(
        parts.informers,
        parts.engine.kinds,
        parts.engine_client(GARBAGE_COLLECTOR),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.controllers.concurrent_gc_syncs,
    )


def _clusterrole_aggregation(parts: Parts) -> Controller:
    return new_clusterrole_aggregation_controller(
        parts.informers,
        parts.engine_client(CLUSTERROLE_AGGREGATION_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
    )


def _pod_garbage_collector(parts: Parts) -> Controller:
    return new_pod_garbage_collector(
        parts.informers,
        parts.engine_client(POD_GARBAGE_COLLECTOR),
        parts.event_log,
        parts.settings.pod_garbage_collector.terminated_pod_threshold,
        clock=parts.clock,
        random=parts.random,
    )


def _root_ca_publisher(parts: Parts) -> Controller:
    return new_root_ca_publisher(
        parts.informers,
        parts.engine_client(ROOT_CA_PUBLISHER),
        parts.event_log,
        parts.root_ca,
        clock=parts.clock,
        random=parts.random,
    )


def _service_accounts(parts: Parts) -> Controller:
    return new_service_account_controller(
        parts.informers,
        parts.engine_client(SERVICE_ACCOUNT_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
    )


def _service_cidrs(parts: Parts) -> Controller:
    return new_service_cidr_controller(
        parts.informers,
        parts.engine_client(SERVICE_CIDR_CONTROLLER),
        parts.event_log,
        parts.recorder(SERVICE_CIDR_CONTROLLER, SERVICE_CIDR_CONTROLLER),
        clock=parts.clock,
        random=parts.random,
    )


def _ttl_after_finished(parts: Parts) -> Controller:
    return new_ttl_after_finished_controller(
        parts.informers,
        parts.engine_client(TTL_AFTER_FINISHED_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.controllers.concurrent_ttl_after_finished_syncs,
    )


CONTROLLERS: dict[str, Callable[[Parts], Controller]] = {
    CLUSTERROLE_AGGREGATION_CONTROLLER: _clusterrole_aggregation,
    ENDPOINT_CONTROLLER: _endpoints,
    ENDPOINT_SLICE_CONTROLLER: _endpoint_slices,
    GARBAGE_COLLECTOR: _garbage_collector,
    MIRRORING_CONTROLLER: _mirroring,
    NAMESPACE_CONTROLLER: _namespaces,
    POD_GARBAGE_COLLECTOR: _pod_garbage_collector,
    ROOT_CA_PUBLISHER: _root_ca_publisher,
    SERVICE_ACCOUNT_CONTROLLER: _service_accounts,
    SERVICE_CIDR_CONTROLLER: _service_cidrs,
    TTL_AFTER_FINISHED_CONTROLLER: _ttl_after_finished,
}
"""Every controller there is, by the name that `--controllers` knows."""


def enabled_controllers(enabled: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return which of the `known` controllers run, in their order; raises `SettingsError` for other names.

    Each entry is `name`, `-name` or `*`; a name said outright beats the star, and the first entry about a name
    counts (kube-controller-manager's `IsControllerEnabled`).
    """
    known, wanted = list(known), list(enabled)
    for entry in wanted:
        name = entry.removeprefix("-")
        if entry != "*" and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise SettingsError(f"controllers.enabled: there is no controller {name!r}; {hint}")
    return [name for name in known if _is_enabled(name, wanted)]


def _is_enabled(name: str, wanted: Sequence[str]) -> bool:
    for entry in wanted:
        if entry in (name, f"-{name}"):
            return entry == name
    return "*" in wanted


def watched(controllers: Iterable[Controller], interval: float, random: Random) -> Iterator[Watched]:
    """Yield the controllers, to be started in this order, each `interval` seconds after the one before or a bit later.

    That is kube-controller-manager's `--controller-start-interval` with its jitter: up to twice the interval.
    """
    start_after = 0.0
    for controller in controllers:
        yield Watched(controller, start_after)
        start_after += interval * (1 + random.random())


class Watched:
    """A controller that can say whether it runs."""

    def __init__(self, controller: Controller, start_after: float = 0.0) -> None:
        """Watch `controller`, which is to start so many seconds after it may."""
        self.name = controller.name
        self._controller = controller
        self._start_after = start_after
        self._running = self._failed = False

    def run(self, stop: threading.Event) -> None:
        """Run it until stopped."""
        self._running = True
        try:
            if not (self._start_after and stop.wait(self._start_after)):
                self._controller.run(stop)
        except Fenced:  # its term is over: there will be another
            raise
        except BaseException:
            self._failed = True
            raise
        finally:
            self._running = False

    def stand_by(self) -> None:
        """See `Controller`."""
        self._controller.stand_by()

    def resume(self) -> None:
        """See `Controller`."""
        self._controller.resume()

    def problem(self) -> str | None:
        """Return what is wrong, None while it runs."""
        return None if self._running else f"{self.name} is not running"

    def failure(self) -> str | None:
        """Return what is wrong, None unless it has failed."""
        return f"{self.name} has failed" if self._failed else None


def compaction(parts: Parts) -> Iterator[Runnable]:
    """Yield the compaction controller and what wakes it, if there is anything to compact."""
    settings = parts.settings.compaction
    if not settings.resources:
        return
    reconciler = CompactionReconciler(parts.event_log, settings, clock=parts.clock)
    controller = Controller(
        "compaction",
        reconciler,
        watches=[],
        client=parts.client("compaction"),
        log=parts.event_log,
        clock=parts.clock,
        random=parts.random,
    )
    periodic = Periodic()
    for key in reconciler.due():
        periodic.add(f"compact {key}", settings.every, controller.queue, key)
    yield controller
    yield periodic


def event_expiry(parts: Parts) -> Iterator[Runnable]:
    """Yield the controller that ends Events, if they are to end."""
    if parts.settings.events.ttl:
        yield new_event_expiry(
            parts.informers,
            parts.client("event-expiry"),
            parts.event_log,
            parts.settings.events.ttl,
            clock=parts.clock,
            random=parts.random,
        )

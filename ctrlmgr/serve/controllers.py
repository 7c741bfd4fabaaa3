"""Builds the controllers of this process with their dependencies, and reports whether the controllers run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

from ctrlmgr import __version__
from ctrlmgr.authentication.user import API_SERVER, MASTERS, User
from ctrlmgr.authentication.x509_verification import read_certificates
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, Fencing, LogClient, Runner
from ctrlmgr.client.controller_rights import Rights
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.apiservices.availability_controller import Calls, new_availability_controller
from ctrlmgr.controllers.apiservices.controller import new_api_service_controller
from ctrlmgr.controllers.bootstrap import bootstrap_tasks as bootstrap_assembly
from ctrlmgr.controllers.compaction.api_compaction import API, ApiCompactionReconciler
from ctrlmgr.controllers.compaction.controller import CompactionReconciler
from ctrlmgr.controllers.customresourcedefinitions.controller import new_definition_controller
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.expiry import new_event_expiry
from ctrlmgr.controllers.events.recorder import EventBroadcaster, Recorder
from ctrlmgr.controllers.flow_control.dangling_condition import new_dangling_controller
from ctrlmgr.controllers.flow_control.producer import MANAGER as PRODUCER
from ctrlmgr.controllers.flow_control.producer import ConfigurationProducer, new_configuration_producer
from ctrlmgr.controllers.gated_controllers import with_gates_on, with_served_kinds
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import Fenced, SettingsError
from ctrlmgr.eventlog import Author, EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller, Periodic, Runnable
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from ctrlmgr.serve.client_rate_limit import ThrottledRunner
from ctrlmgr.settings import Settings
from ctrlmgr.workqueue import TokenBucket

_USER_AGENT = f"ctrlmgr/{__version__}"

_AT_ONCE = 16
"""The maximum number of pods that a controller creates concurrently for one owner; the log commits such pods
together.
"""

"""The users as which the API server's own controllers, and the controllers that maintain the log, write."""


_API_SERVER: Final = "kube-apiserver"
_COMPONENT: Final = "system:kube-"
"""The prefix of components' user names.

The part after `system:` is the program's name, which Kubernetes uses as the field manager.
"""


def _field_manager(user: User) -> str:
    """Return the program name of a component; Kubernetes uses the program name as the field manager."""
    if user == API_SERVER:
        return _API_SERVER
    return user.name.removeprefix("system:") if user.name.startswith(_COMPONENT) else CONTROLLER_MANAGER


class Parts(NamedTuple):
    """The dependencies with which every controller is built: the `ControllerContext` of this process."""

    settings: Settings
    informers: Informers
    event_log: EventLog
    clock: Clock
    random: Random
    engine: WriteEngine
    """The engine that executes the writes of controllers.

    The engine decides each write on the caches that the controllers read.
    """
    run: Runner
    broadcaster: EventBroadcaster
    root_ca: str
    """The certificate of this server's certificate authority (PEM)."""
    identity: Identity
    """The keys with which the controllers for tokens and certificates sign."""
    fencing: Fencing | None
    """The fence of every controller's write; None if no other process can become the leader."""
    rights: Callable[[User], Rights]
    """A function that returns the permissions of a user."""
    scheduler_plugins: SchedulerPlugins = SchedulerPlugins()
    """The scheduler plugins of the apps."""

    @property
    def at_once(self) -> int:
        """The maximum number of objects that a reconcile may write concurrently."""
        return _AT_ONCE

    @property
    def recalls(self) -> bool:
        """Return False, because controllers do not restore state from before their start, as in Kubernetes."""
        return False

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        """Return a controller's client; the client writes as the controller's own user with that user's permissions.

        The setting `controllers.kube_api_qps` limits the requests of each controller separately.
        """
        client = self.writer(descriptor.as_user, canonical=canonical)
        controllers = self.settings.controllers
        if controllers.kube_api_qps <= 0:
            return client
        bucket: TokenBucket[None] = TokenBucket(controllers.kube_api_qps, controllers.kube_api_burst, clock=self.clock)
        return client.through(ThrottledRunner(self.run, bucket, clock=self.clock))

    def writer(self, user: User, *, canonical: bool = False, unfenced: bool = False) -> EngineClient:
        """Return a client with the user of a component.

        `unfenced` is set for writes that every process makes, not only the leader.
        """
        fence = None if unfenced else self.fencing
        requester = Requester(user.name, user.groups, _USER_AGENT)
        return EngineClient(
            self.engine,
            self.run,
            requester,
            fence=fence,
            manager=_field_manager(user),
            canonical=canonical,
            rights=None if MASTERS in user.groups else self.rights(user),
            rights_of=self.rights,
        )

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        """Return the Event recorder of a controller."""
        return self.recorder_of(descriptor.event_source, descriptor.as_user, in_series=descriptor.tells_in_series)

    def recorder_of(self, component: str, user: User, *, in_series: bool = False) -> Recorder:
        """Return the Event recorder of a component; recorded Events contain the component's name in Kubernetes."""
        client = self.writer(user, canonical=True, unfenced=True)
        return self.broadcaster.recorder(component, client, in_series=in_series)

    def internal(self, user: str) -> LogClient:
        """Return a client for objects in the log that no API shows."""
        return LogClient(
            self.event_log,
            author=Author(user, _USER_AGENT),
            clock=self.clock,
            new_uid=lambda: str(UUID(int=self.random.getrandbits(128), version=4)),
        )

    def apiserver_client(self, manager: str = _API_SERVER) -> EngineClient:
        """Return a client for writes that every serving process makes, not only the leader.

        `manager` is the field manager of the writes.
        """
        requester = Requester(API_SERVER.name, API_SERVER.groups, _USER_AGENT)
        return EngineClient(self.engine, self.run, requester, manager=manager)

    def definitions(self) -> Controller:
        """Return the controller of CustomResourceDefinitions, which runs in every process that serves the API."""
        client = self.apiserver_client()
        return new_definition_controller(self.informers, client, self.event_log, clock=self.clock, random=self.random)

    def api_services(self) -> Controller:
        """Return the controller of APIServices, which runs in every process that serves the API."""
        groups, client = self.engine.kinds.builtin_groups, self.apiserver_client()
        return new_api_service_controller(
            self.informers, groups, client, self.event_log, clock=self.clock, random=self.random
        )

    def flow_control(self, producer: ConfigurationProducer) -> Iterator[Controller]:
        """Yield the controllers of flow control, which run in every process that serves the API."""
        event_log, clock, random = self.event_log, self.clock, self.random
        writes = self.apiserver_client(PRODUCER)
        yield new_configuration_producer(producer, writes, event_log, clock=clock, random=random)
        yield new_dangling_controller(self.informers, self.apiserver_client(), event_log, clock=clock, random=random)

    def availability(self, call: Calls, certificate: Callable[[], bytes]) -> Controller:
        """Return the controller of APIServices' availability, which runs in every process that serves the API.

        The controller sends requests to extension servers with `call`, and with the client certificate that
        `certificate` returns.
        """
        return new_availability_controller(
            self.informers,
            self.apiserver_client(),
            self.event_log,
            call,
            certificate,
            clock=self.clock,
            random=self.random,
            by_endpoints=self.settings.server.enable_aggregator_routing,
        )

    def for_bootstrap(self) -> bootstrap_assembly.Parts:
        """Return the dependencies of the bootstrap controller."""
        client = self.apiserver_client()
        internal = self.internal(API_SERVER.name)
        events = self.writer(API_SERVER, canonical=True, unfenced=True)
        return bootstrap_assembly.Parts(
            self.informers, self.event_log, client, internal, events, self.broadcaster, self.clock, self.random
        )


def build(descriptors: Iterable[ControllerDescriptor[Any]], parts: Parts) -> Iterator[Controller]:
    """Build controllers with their options from the settings.

    The result omits controllers whose feature gate is off, and controllers whose APIs are disabled.
    """
    running = with_served_kinds(with_gates_on(descriptors), parts.engine.kinds)
    return (each.build(parts, parts.settings.of(each.options)) for each in running)


def read_root_ca(settings: Settings, own: Path) -> str:
    """Return the CA certificate to publish (PEM): the content of the configured file, or `own` if none is configured.

    Raises `SettingsError` if the configured file cannot be read.
    """
    named = settings.controllers.root_ca_file
    try:
        text = (Path(named).expanduser() if named else own).read_text(encoding="ascii")
        read_certificates(text.encode("ascii"))
        return text
    except (OSError, ValueError) as error:
        raise SettingsError(f"controllers.root_ca_file: {named or own} cannot be used: {error}") from error


def watched(controllers: Iterable[Controller], interval: float, random: Random) -> Iterator[MonitoredController]:
    """Yield the controllers with their start delays.

    Each controller starts `interval` seconds, plus a random jitter, after the previous controller. As with
    kube-controller-manager's `--controller-start-interval`, interval and jitter together are at most twice `interval`.
    """
    start_after = 0.0
    for controller in controllers:
        yield MonitoredController(controller, start_after)
        start_after += interval * (1 + random.random())


class MonitoredController:
    """A controller that reports whether it is running."""

    def __init__(self, controller: Controller, start_after: float = 0.0) -> None:
        """Run `controller` with a delay of `start_after` seconds."""
        self.name = controller.name
        self._controller = controller
        self._start_after = start_after
        self._running = self._failed = False

    def run(self, stop: threading.Event) -> None:
        """Run the controller until `stop` is set."""
        self._running = True
        try:
            if not (self._start_after and stop.wait(self._start_after)):
                self._controller.run(stop)
        except Fenced:  # The term has ended; the next term starts the controller again.
            raise
        except BaseException:
            self._failed = True
            raise
        finally:
            self._running = False

    def stand_by(self) -> None:
        """Drop changes from now on, as `Controller.stand_by` does."""
        self._controller.stand_by()

    def resume(self) -> None:
        """Queue all existing objects, as `Controller.resume` does."""
        self._controller.resume()

    def problem(self) -> str | None:
        """Return a description of the problem if the controller does not run, otherwise None."""
        return None if self._running else f"{self.name} is not running"

    def failure(self) -> str | None:
        """Return a description of the problem if the controller has failed, otherwise None."""
        return f"{self.name} has failed" if self._failed else None


def compaction(parts: Parts) -> Iterator[Runnable]:
    """Yield the compaction controller and its timer, if the settings contain resources to compact."""
    settings = parts.settings.compaction
    if not settings.resources:
        return
    reconciler = CompactionReconciler(parts.event_log, settings, clock=parts.clock)
    controller = Controller(
        "compaction",
        reconciler,
        watches=[],
        client=parts.writer(API_SERVER),
        log=parts.event_log,
        clock=parts.clock,
        random=parts.random,
    )
    periodic = Periodic()
    for key in reconciler.due():
        periodic.add(f"compact {key}", settings.every, controller.queue, key)
    yield controller
    yield periodic


def api_compaction(parts: Parts) -> Iterator[Runnable]:
    """Yield the controller that compacts the API's history, and its timer.

    Every process that serves the API runs this controller and its timer.
    """
    interval = parts.settings.compaction.api_interval
    if interval <= 0:
        return
    controller = Controller(
        "api-compaction",
        ApiCompactionReconciler(parts.event_log, interval, clock=parts.clock),
        watches=[],
        client=parts.internal(API_SERVER.name),
        log=parts.event_log,
        clock=parts.clock,
        random=parts.random,
    )
    periodic = Periodic()
    periodic.add("compact the API", interval, controller.queue, API)
    yield controller
    yield periodic


def event_expiry(parts: Parts) -> Iterator[Runnable]:
    """Yield the controller that deletes expired Events, if the settings limit the lifetime of Events."""
    if parts.settings.events.ttl:
        yield new_event_expiry(
            parts.informers,
            parts.writer(API_SERVER),
            parts.event_log,
            parts.settings.events.ttl,
            clock=parts.clock,
            random=parts.random,
        )

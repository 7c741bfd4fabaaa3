"""Controllers in this process: what they are built from, and how they are started and watched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

from ctrlmgr import __version__
from ctrlmgr.authentication.certificates import read_certificates
from ctrlmgr.authentication.user import API_SERVER, MASTERS, User
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, Fencing, LogClient, Runner
from ctrlmgr.client.rights import Rights
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.apiservices.controller import new_api_service_controller
from ctrlmgr.controllers.bootstrap import assembly as bootstrap_assembly
from ctrlmgr.controllers.compaction.controller import CompactionReconciler
from ctrlmgr.controllers.customresourcedefinitions.controller import new_definition_controller
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.expiry import new_event_expiry
from ctrlmgr.controllers.events.recorder import EventBroadcaster, Recorder
from ctrlmgr.controllers.identity import Identity
from ctrlmgr.engine.options import Requester
from ctrlmgr.engine.writing import WriteEngine
from ctrlmgr.errors import Fenced, SettingsError
from ctrlmgr.eventlog import Author, EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller, Periodic, Runnable
from ctrlmgr.serve.throttled import Throttled
from ctrlmgr.settings import Settings
from ctrlmgr.workqueue import TokenBucket

_USER_AGENT = f"ctrlmgr/{__version__}"

_AT_ONCE = 16
"""How many pods a controller makes at the same time for one owner: the log commits them together."""

"""Who does what every process that serves does, and what keeps the log in order."""


_API_SERVER: Final = "kube-apiserver"
_COMPONENT: Final = "system:kube-"
"""The prefix of components' user names; the part after `system:` is the program, which is Kubernetes' field manager."""


def _field_manager(user: User) -> str:
    """Return the program that a component of Kubernetes is part of."""
    if user == API_SERVER:
        return _API_SERVER
    return user.name.removeprefix("system:") if user.name.startswith(_COMPONENT) else CONTROLLER_MANAGER


class Parts(NamedTuple):
    """What every controller is made of: the `ControllerContext` of this process."""

    settings: Settings
    informers: Informers
    event_log: EventLog
    clock: Clock
    random: Random
    engine: WriteEngine
    """What controllers write through: it decides on the caches that they read."""
    run: Runner
    broadcaster: EventBroadcaster
    root_ca: str
    """The certificate of the authority that signs for this server, as PEM."""
    identity: Identity
    """What the identity controllers sign with."""
    fencing: Fencing | None
    """What every write of a controller carries; None when no other process can lead."""
    rights: Callable[[User], Rights]
    """Returns what a user may do."""

    @property
    def at_once(self) -> int:
        """How many objects a reconcile may write at the same time."""
        return _AT_ONCE

    @property
    def recalls(self) -> bool:
        """Whether controllers remember their work from before they started: no, as in Kubernetes."""
        return False

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        """Return what a controller reads and writes through, as itself and with its own rights.

        Its requests are limited as the settings say (`controllers.kube_api_qps`), each controller's for itself.
        """
        client = self.writer(descriptor.as_user, canonical=canonical)
        controllers = self.settings.controllers
        if controllers.kube_api_qps <= 0:
            return client
        bucket: TokenBucket[None] = TokenBucket(controllers.kube_api_qps, controllers.kube_api_burst, clock=self.clock)
        return client.through(Throttled(self.run, bucket, clock=self.clock))

    def writer(self, user: User, *, canonical: bool = False, unfenced: bool = False) -> EngineClient:
        """Return a client that writes as a component; `unfenced` for what every process does, whichever leads."""
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
        """Return what a controller records Events through."""
        return self.recorder_of(descriptor.event_source, descriptor.as_user, in_series=descriptor.tells_in_series)

    def recorder_of(self, component: str, user: User, *, in_series: bool = False) -> Recorder:
        """Return what a component records Events through, under the name that Kubernetes' Events have for it."""
        client = self.writer(user, canonical=True, unfenced=True)
        return self.broadcaster.recorder(component, client, in_series=in_series)

    def internal(self, user: str) -> LogClient:
        """Return a client for what is in the log and no object of the API."""
        return LogClient(
            self.event_log,
            author=Author(user, _USER_AGENT),
            clock=self.clock,
            new_uid=lambda: str(UUID(int=self.random.getrandbits(128), version=4)),
        )

    def apiserver_client(self) -> EngineClient:
        """Return a client for what every process that serves writes, whichever leads."""
        requester = Requester(API_SERVER.name, API_SERVER.groups, _USER_AGENT)
        return EngineClient(self.engine, self.run, requester, manager=_API_SERVER)

    def definitions(self) -> Controller:
        """Return the controller of CustomResourceDefinitions, which every process that serves the API runs."""
        client = self.apiserver_client()
        return new_definition_controller(self.informers, client, self.event_log, clock=self.clock, random=self.random)

    def api_services(self) -> Controller:
        """Return the controller of APIServices, which every process that serves the API runs."""
        groups, client = self.engine.kinds.builtin_groups, self.apiserver_client()
        return new_api_service_controller(
            self.informers, groups, client, self.event_log, clock=self.clock, random=self.random
        )

    def for_bootstrap(self) -> bootstrap_assembly.Parts:
        """Return what the bootstrap controller is made of."""
        client = self.apiserver_client()
        internal = self.internal(API_SERVER.name)
        events = self.writer(API_SERVER, canonical=True, unfenced=True)
        return bootstrap_assembly.Parts(
            self.informers, self.event_log, client, internal, events, self.broadcaster, self.clock, self.random
        )


def build(descriptors: Iterable[ControllerDescriptor[Any]], parts: Parts) -> Iterator[Controller]:
    """Build controllers with the options that the settings have for them."""
    return (each.build(parts, parts.settings.of(each.options)) for each in descriptors)


def read_root_ca(settings: Settings, own: Path) -> str:
    """Return the certificate to publish, as PEM: the one that the settings name, else `own`; raises `SettingsError`."""
    named = settings.controllers.root_ca_file
    try:
        text = (Path(named).expanduser() if named else own).read_text(encoding="ascii")
        read_certificates(text.encode("ascii"))
        return text
    except (OSError, ValueError) as error:
        raise SettingsError(f"controllers.root_ca_file: {named or own} cannot be used: {error}") from error


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


def event_expiry(parts: Parts) -> Iterator[Runnable]:
    """Yield the controller that ends Events, if they are to end."""
    if parts.settings.events.ttl:
        yield new_event_expiry(
            parts.informers,
            parts.writer(API_SERVER),
            parts.event_log,
            parts.settings.events.ttl,
            clock=parts.clock,
            random=parts.random,
        )

"""Runs controllers against an API server in one process: caches, leader election, and the controllers.

Guarantees:

- These problems are reported before any write: unknown names, two controllers with the same name, and a kind that
  contradicts the stored CustomResourceDefinition. The process also refuses a controller that needs more than an API
  server provides, and admission functions that the API server cannot call.
- If several processes use the same Lease, only one of them runs controllers at a time. A process that cannot renew the
  Lease stops.
- A process stops in this order: controllers finish their reconciles, then the Lease is released, then the caches stop.
"""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from random import Random
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr import __version__
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, LEASES, Key, Resource
from ctrlmgr.client import CONTROLLER_MANAGER, Fencing, InformerState, LogState
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.recorder import NORMAL, EventBroadcaster, Recorder
from ctrlmgr.controllers.gated_controllers import with_gates_on
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.engine.features.chosen_gates import chosen_gates
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import CtrlmgrError, Forbidden, SettingsError
from ctrlmgr.eventlog import Author
from ctrlmgr.eventlog.opening import open_sessions
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_hooks import add_hooks
from ctrlmgr.framework.app_loading import load_app
from ctrlmgr.framework.class_declaration import Declaration
from ctrlmgr.framework.controller_building import AppDescriptor, check_names, descriptors
from ctrlmgr.framework.install import MANAGER, install
from ctrlmgr.framework.remote.account_apis import AccountApis
from ctrlmgr.framework.remote.api_server_log import RemoteLog
from ctrlmgr.framework.remote.http_client import RemoteClient
from ctrlmgr.framework.remote.informers import RemoteInformers
from ctrlmgr.framework.remote.issuing import IssuerFiles
from ctrlmgr.framework.remote.leader_migration import leader_migration
from ctrlmgr.framework.remote.remote_access_reviews import AccessReviews
from ctrlmgr.framework.remote.remote_api import Api
from ctrlmgr.framework.remote.status_pages import StatusPages, StatusTls
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.framework.webhooks.app_webhooks import AppWebhooks
from ctrlmgr.framework.webhooks.registering import Registration
from ctrlmgr.framework.webhooks.webhook_address import WebhookOptions
from ctrlmgr.framework.webhooks.webhook_configurations import left_over
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.leaderelection import Election, Elector, LeaseLock, Timing
from ctrlmgr.manager import Controller, Hooks, Manager, Phase, Runnable
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from ctrlmgr.settings import Settings
from ctrlmgr.settings.kubeconfig import Access

log = structlog.get_logger(__name__)

BUILTIN: Final = "builtin:"
PROGRAM: Final = "ctrlmgr-run"
_IN_SERVE_ALONE: Final[Mapping[str, str]] = {
    "simulated-nodes-controller": "writes in the names of its nodes",
    "legacy-serviceaccount-token-cleaner-controller": "writes the record of the API server",
}
"""The controllers that need more than a connection to an API server, with the reasons.

Controllers that need only keys are not listed.
"""
LEASE: Final = "kube-controller-manager"
"""The Lease of kube-controller-manager in kube-system."""
_PUBLISHER: Final = "root-ca-certificate-publisher-controller"
_RETRY: Final = 1.0


class SelectedControllers(NamedTuple):
    """The controllers that the user chose to run."""

    apps: Sequence[App]
    builtin: Sequence[ControllerDescriptor[Any]]
    admits: bool = True
    """Whether the apps' admission functions are served as webhooks to the API server."""

    lease: str = ""
    """The name of the Lease; if empty, the name is built from the names of the controllers."""

    @property
    def has_admission(self) -> bool:
        """Return whether there are admission functions to serve as webhooks."""
        return self.admits and any(app.admissions for app in self.apps)

    @property
    def descriptors(self) -> list[ControllerDescriptor[Any]]:
        """Return all chosen controllers, of apps and built-in."""
        return [*self.builtin, *(each for app in self.apps for each in descriptors(app))]

    @property
    def name(self) -> str:
        """Return the common name of the controllers, which is also the name of their Lease."""
        if self.lease:
            return self.lease
        names = [*(app.name for app in self.apps), *(each.name for each in self.builtin)]
        return f"ctrlmgr-{'-'.join(names)}"[:63].rstrip("-")

    @property
    def versions(self) -> Mapping[Resource, str]:
        """Return the API versions in which apps read kinds.

        Raises `SettingsError` if two apps read a kind in different versions.
        """
        found: dict[Resource, Declaration] = {}
        for kind in (kind for app in self.apps for each in app.controllers for kind in each.declared):
            first = found.setdefault(kind.resource, kind)
            if first.api_version != kind.api_version:
                raise SettingsError(
                    f"{first.where} and {kind.where} are two versions of {kind.resource}: a process can read a kind "
                    "in only one version"
                )
        return {resource: kind.api_version for resource, kind in found.items()}


def choose(names: Iterable[str], *, without_admission: bool = False) -> SelectedControllers:
    """Return the controllers that arguments (such as `module:app`, `file.py` or `builtin:NAME,…`) select.

    Raises `SettingsError`. The apps' admission functions are served as webhooks, unless `without_admission` is set.
    """
    apps: list[App] = []
    builtin: list[ControllerDescriptor[Any]] = []
    for name in names:
        if name.startswith(BUILTIN):
            builtin += builtins(name.removeprefix(BUILTIN).split(","))
        else:
            apps += [load_app(each, origin="run") for each in name.split(",")]
    check_names(apps, builtin)
    chosen = SelectedControllers([*dict.fromkeys(apps)], builtin, not without_admission)
    if not chosen.descriptors and not chosen.has_admission:
        called = ", ".join(app.name for app in chosen.apps)
        raise SettingsError(f"run: there is nothing to run, because {called} has no controller{_nor(chosen)}")
    return chosen


def _nor(chosen: SelectedControllers) -> str:
    return " and no admission function" if chosen.admits else ""


def builtins(names: Sequence[str], files: IssuerFiles | None = None) -> list[ControllerDescriptor[Any]]:
    """Return the built-in controllers that `names` selects; the form is that of the option `--controllers`.

    `*` selects the controllers that can run outside of `serve`. The controllers that sign or publish certificates can
    run only with `files`. Raises `SettingsError` if `names` contains a controller that cannot run outside of `serve`.
    """
    found = []
    for descriptor in registry.enabled(names).descriptors:
        if (problem := _problem(descriptor, files)) is None:
            found.append(descriptor)
        elif {descriptor.name, *descriptor.aliases} & {*names}:
            raise SettingsError(f"{BUILTIN}{descriptor.name} {problem}")
        else:
            log.info("controller cannot run here", controller=descriptor.name, reason=problem)
    return found


def _problem(descriptor: ControllerDescriptor[Any], files: IssuerFiles | None) -> str | None:
    """Return the reason why a controller cannot run against an API server; None if it can run."""
    if files is not None and files.supports(descriptor.name):
        return files.problem(descriptor.name)
    if reason := _IN_SERVE_ALONE.get(descriptor.name):
        return f"{reason}, and runs in serve alone"
    if descriptor.name == _PUBLISHER:
        return "publishes the authority of the control plane, and runs in serve alone"
    module, _, function = descriptor.builder.partition(":")
    context = inspect.signature(getattr(import_module(module), function)).parameters["context"].annotation
    if context not in ("ControllerContext", "context.ControllerContext"):
        return "needs the keys of the control plane, and runs in serve alone"
    return None


def install_definitions(access: Access, apps: Sequence[App], *, clock: Clock) -> list[Object]:
    """Install the CustomResourceDefinitions of apps in a cluster, and return those that changed.

    Raises `SettingsError` if a stored CustomResourceDefinition contradicts its class.
    """
    api = Api(access, Throttle(0, 1, clock=clock), program=PROGRAM)
    event_log = RemoteLog(api, clock=clock)
    writer = RemoteClient(
        api,
        event_log,
        WriteEngine(builtin_kinds(), LogState(event_log), clock=clock, random=Random(0)),
        manager=MANAGER,
    )
    return install(
        apps,
        lambda key: event_log.get(DEFINITIONS, key),
        lambda definition: writer.apply(definition, MANAGER, force=True),
    )


class _Parts(NamedTuple):
    """The dependencies with which the controllers of this process are built."""

    api: Api
    informers: RemoteInformers
    event_log: RemoteLog
    clock: Clock
    random: Random
    engine: WriteEngine
    broadcaster: EventBroadcaster
    fencing: Fencing | None
    files: IssuerFiles | None
    accounts: AccountApis | None

    @property
    def root_ca(self) -> str:
        if self.files is None:
            raise SettingsError(f"{_PUBLISHER} publishes the control plane's own authority")
        return self.files.root_ca

    @property
    def identity(self) -> Identity:
        if self.files is None:
            raise SettingsError("only `serve` has the keys of the control plane")
        return self.files.identity(self.api)

    @property
    def at_once(self) -> int:
        return 1

    @property
    def recalls(self) -> bool:
        return False

    @property
    def scheduler_plugins(self) -> SchedulerPlugins:
        return SchedulerPlugins()

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> RemoteClient:
        return self.writer(_manager(descriptor), fenced=True, account=_account(descriptor))

    def apiserver_client(self) -> RemoteClient:
        raise SettingsError("only `serve` writes the control plane's own objects")

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        client = self.writer(_manager(descriptor), account=_account(descriptor))
        return self.broadcaster.recorder(descriptor.event_source, client, in_series=descriptor.tells_in_series)

    def writer(self, manager: str, *, fenced: bool = False, account: str = "") -> RemoteClient:
        fence = self.fencing if fenced else None
        api = self.accounts.api_of(account) if self.accounts is not None and account else self.api
        return RemoteClient(api, self.event_log, self.engine, manager=manager, fence=fence)


def _manager(descriptor: ControllerDescriptor[Any]) -> str:
    return descriptor.name if isinstance(descriptor, AppDescriptor) else CONTROLLER_MANAGER


def _account(descriptor: ControllerDescriptor[Any]) -> str:
    """Return the ServiceAccount that a controller writes as; empty if it writes with the process's credentials."""
    return "" if isinstance(descriptor, AppDescriptor) or descriptor.acts_as else descriptor.service_account


class Options(NamedTuple):
    """The options of a process that runs controllers."""

    qps: float = 20.0
    """The maximum number of requests per second; 0 means no limit."""
    burst: int = 30
    defines: bool = True
    """Whether the CustomResourceDefinitions of apps are installed."""
    lease: Key = Key("kube-system", "")
    """The Lease for leader election; its default name is `SelectedControllers.name`."""
    elects: bool = True
    timing: Timing = Timing()
    status: tuple[str, int] | None = None
    """The address on which metrics and health are served; None if they are not served."""
    namespace: str = ""
    """The only namespace that the process follows; an empty namespace means all namespaces."""
    webhooks: WebhookOptions = WebhookOptions()
    files: IssuerFiles | None = None
    """The files with which controllers sign and publish; None if no such controller runs."""
    as_accounts: bool = False
    """Whether each built-in controller writes as its own ServiceAccount in kube-system."""
    serving: StatusTls | None = None
    """The certificates of the status pages; None for plain HTTP."""


class RemoteProcess:
    """A process that runs controllers against an API server."""

    def __init__(
        self,
        access: Access,
        chosen: SelectedControllers,
        settings: Settings,
        options: Options,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Prepare to run the controllers in `chosen` against the cluster of `access`.

        Raises `SettingsError` if a controller cannot run against this cluster.
        """
        options.timing.check()
        switch(chosen_gates(settings.server.feature_gates))
        self._open_paths = settings.authorization.always_allow_paths
        self._chosen = chosen
        self._options = options
        self._clock = clock
        throttle = Throttle(options.qps, options.burst, clock=clock)
        api = Api(access, throttle, program=PROGRAM, versions=chosen.versions)
        event_log = RemoteLog(api, clock=clock)
        informers = RemoteInformers(api, event_log, clock=clock, random=random, namespace=options.namespace)
        self._sessions = open_sessions("memory:", clock=clock)
        elector = self._elector(access, self.lease, clock, random) if options.elects else None
        self._parts = parts = _Parts(
            api,
            informers,
            event_log,
            clock,
            random,
            WriteEngine(builtin_kinds(), InformerState(informers, event_log), clock=clock, random=random),
            EventBroadcaster(clock=clock, random=random, host=socket.gethostname()),
            elector.fence if elector is not None else None,
            options.files,
            AccountApis(access, api, throttle, clock=clock) if options.as_accounts else None,
        )
        self._webhooks = self._serving(access) if chosen.has_admission else None
        running = [*with_gates_on(chosen.descriptors)]
        migrated: list[Election] = []
        if options.elects and (migration := leader_migration(settings)) is not None:
            second = self._elector(access, self.lease._replace(name=migration.lease), clock, random)
            migrated = [self._migrated([each for each in running if migration.migrates(each.name)], settings, second)]
            running = [each for each in running if migration.is_main(each.name)]
        controllers = [each.build(parts, settings.of(each.options)) for each in running]
        self._manager = Manager(clock=clock)
        self._manager.add(informers, Phase.CACHES)
        self._manager.add(parts.broadcaster, Phase.CACHES)
        self._hooks = add_hooks(chosen.apps, Hooks())
        for runnable in self._hooks.runnables():
            self._manager.add(runnable, Phase.MEMBERS)
        if options.status is not None:
            self._manager.add(self._pages(options.status, elector), Phase.LOG)
        if self._webhooks is not None:
            self._manager.add(self._webhooks.server, Phase.SERVERS)
        for runnable in self._led(controllers, elector, migrated):
            self._manager.add(runnable, Phase.LEADER)

    @property
    def lease(self) -> Key:
        """Return the Lease that leader election uses."""
        return self._options.lease._replace(name=self._options.lease.name or self._chosen.name)

    def _pages(self, address: tuple[str, int], elector: Elector | None) -> StatusPages:
        informers = self._parts.informers
        pages = StatusPages(
            address,
            alive=lambda: None if elector is None else elector.problem(),
            ready=lambda: (
                (informers.problem() or self._hooks.problem())
                if informers.has_synced()
                else "the caches have not synced yet"
            ),
            tls=self._options.serving.context(address[0], self._clock) if self._options.serving else None,
            reviews=AccessReviews(self._parts.api),
            open_paths=self._open_paths,
        )
        log.info("serving status pages", address=address[0], port=pages.port)
        return pages

    def _serving(self, access: Access) -> AppWebhooks:
        """Return the webhooks of the apps; raises `SettingsError` if the API server cannot connect to this process."""
        # The API server waits while admission functions read objects, so their requests are not throttled.
        api = Api(access, Throttle(0, 1, clock=self._clock), program=PROGRAM, versions=self._chosen.versions)
        return AppWebhooks(
            self._chosen.apps,
            self._options.webhooks,
            RemoteLog(api, clock=self._clock),
            self._parts.writer(MANAGER, fenced=True),
            cluster=access.server,
            namespace=self._options.namespace,
            run=f"{socket.gethostname()}_{new_uid(self._parts.random)}",
            clock=self._clock,
        )

    def _elector(self, access: Access, lease: Key, clock: Clock, random: Random) -> Elector:
        # The Lease must be renewed in time, even if many other requests are throttled.
        api = Api(access, Throttle(0, 1, clock=clock), program=PROGRAM)
        lock = LeaseLock(
            RemoteLog(api, clock=clock),
            lease,
            identity=f"{socket.gethostname()}_{new_uid(random)}",
            author=Author("leader-election", f"{PROGRAM}/{__version__}"),
            clock=clock,
            new_uid=lambda: new_uid(random),
        )
        return Elector(lock, self._sessions, self._options.timing, clock=clock)

    def _registrations(self) -> Iterator[Runnable]:
        """Yield the runnable that registers webhooks, or that removes the webhooks of an earlier version of the app."""
        if self._webhooks is not None:
            yield self._webhooks.registration
        elif self._chosen.admits and self._chosen.apps:
            yield Registration(
                lambda: [each for app in self._chosen.apps for each in left_over(app, self._options.namespace)],
                self._parts.event_log,
                self._parts.writer(MANAGER, fenced=True),
                clock=self._clock,
            )

    def _led(
        self, controllers: Sequence[Controller], elector: Elector | None, inner: Sequence[Election]
    ) -> Sequence[Runnable]:
        """Return the runnables of the leader; `inner` are elections in which only the leader takes part."""
        runnables = [*self._registrations(), *controllers, *inner]
        return runnables if elector is None else [self._election(elector, runnables, controllers)]

    def _migrated(self, moved: Iterable[ControllerDescriptor[Any]], settings: Settings, elector: Elector) -> Election:
        """Return the election in which the controllers run that migrate; their writes need its Lease."""
        parts = self._parts._replace(fencing=elector.fence)
        controllers = [each.build(parts, settings.of(each.options)) for each in moved]
        return self._election(elector, controllers, controllers)

    def _election(self, elector: Elector, runnables: Sequence[Runnable], controllers: Sequence[Controller]) -> Election:
        leases = self._parts.informers.informer_of(LEASES, elector.key)
        recorder = self._parts.broadcaster.recorder("leader-election", self._parts.writer("leader-election"))
        return Election(
            elector,
            leases,
            runnables,
            controllers,
            clock=self._clock,
            announce=lambda lease, message: recorder.event(lease, NORMAL, "LeaderElection", message),
        )

    def run(self, stop: threading.Event) -> None:
        """Install CustomResourceDefinitions, and run the controllers until `stop` is set."""
        self._until_done(self._check_credentials, stop)
        if self._options.defines and self._chosen.apps:
            self._until_done(self._define, stop)
        if (webhooks := self._webhooks) is not None:
            self._until_done(lambda: webhooks.prepare(self._parts.writer(MANAGER)), stop)
        log.info("running", server=self._parts.api.server, **self._shown())
        try:
            self._manager.run(stop)
        except TimeoutError as error:
            raise CtrlmgrError(f"some components did not stop in time: {error}") from error
        finally:
            self._sessions.close()

    def _shown(self) -> Mapping[str, Sequence[str]]:
        """Return a description of the running controllers, for the log line at the start."""
        controllers = [each.name for each in self._chosen.descriptors]
        webhooks = self._webhooks.functions if self._webhooks is not None else []
        found = {"controllers": controllers, "webhooks": webhooks}
        return {name: each for name, each in found.items() if each}

    def _check_credentials(self) -> None:
        """Send a request that needs no permissions, to check the credentials.

        Raises `Unauthorized` if the credentials are wrong, because a retry would not help.
        """
        with suppress(Forbidden):
            self._parts.api.call("GET", "/version")

    def _define(self) -> None:
        """Install the CustomResourceDefinitions of the apps; raises `CtrlmgrError` if this fails."""
        writer = self._parts.writer(MANAGER)
        for each in install(
            self._chosen.apps,
            lambda key: self._parts.event_log.get(DEFINITIONS, key),
            lambda definition: writer.apply(definition, MANAGER, force=True),
        ):
            log.info("definition installed", name=each.name)

    def _until_done(self, act: Callable[[], None], stop: threading.Event) -> None:
        """Call `act` until it succeeds or `stop` is set; raises an error if a retry cannot succeed."""
        while not stop.is_set():
            try:
                act()
            except CtrlmgrError as error:
                if not error.retryable:
                    raise
                log.warning("cluster unreachable, retrying", error=str(error), retry_in=_RETRY)
                stop.wait(_RETRY)
            else:
                return

"""Creates all components of a serving process, and connects the components to each other.

Guarantees:
- `Application` raises errors of the configuration before any component starts: an unknown controller, an address in
  use, unusable certificates or tokens.
- Components stop in the following order. First, `/readyz` begins to fail. Then controllers finish their current work,
  and the lease is released. After that, the server completes running requests. Finally the caches and the log stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from socket import gethostname
from typing import TYPE_CHECKING, Any, Final

import structlog

from ctrlmgr.admission.plugin_registry import READ
from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.client import ControllerRunner, Fencing, InformerState
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import simulated_nodes
from ctrlmgr.controllers.apiservices.registration_completion import CHECK, Registration
from ctrlmgr.controllers.bootstrap.address import endpoint_address
from ctrlmgr.controllers.bootstrap.bootstrap_tasks import new_bootstrap
from ctrlmgr.controllers.bootstrap.default_roles import BootstrapRoles
from ctrlmgr.controllers.bootstrap.priority_classes import SystemPriorityClasses
from ctrlmgr.controllers.descriptor import MANAGER
from ctrlmgr.controllers.events.recorder import EventBroadcaster
from ctrlmgr.controllers.flow_control.producer import HOOK, ConfigurationProducer
from ctrlmgr.engine.features.chosen_gates import chosen_gates, report_gates
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.eventlog import EventLog
from ctrlmgr.framework.app import App
from ctrlmgr.framework.app_hooks import add_hooks
from ctrlmgr.informer import EventWindow, Informers, Quarantine
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.runtime_config import selected_apis
from ctrlmgr.largebodies.blueprint import Blueprint, Rights
from ctrlmgr.leaderelection import Election
from ctrlmgr.logging import mask
from ctrlmgr.manager import Hooks, Phase, Runnable
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from ctrlmgr.serve.apps import Definitions
from ctrlmgr.serve.apps import chosen as apps_of
from ctrlmgr.serve.auditing import AuditLog
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.serve.component_hooks import add_component_hooks
from ctrlmgr.serve.controllers import (
    MonitoredController,
    Parts,
    api_compaction,
    build,
    compaction,
    event_expiry,
    read_root_ca,
    watched,
)
from ctrlmgr.serve.front import Front, NewFront, advertised_address, default_route_address, external_url, noted_places
from ctrlmgr.serve.identity.serving_peers import add_peer_hooks, new_peer_proxy, peer_address
from ctrlmgr.serve.identity.signing_keys import add_identity_hooks, cluster_authentication, identity_of
from ctrlmgr.serve.kubelets import kubelets_of
from ctrlmgr.serve.late_backend import LateBackend
from ctrlmgr.serve.leadership import COMPONENT, Leadership, leader_lease
from ctrlmgr.serve.log_keys.encryption_at_rest import encrypted_resources
from ctrlmgr.serve.log_keys.key_reloads import key_reloads
from ctrlmgr.serve.log_keys.kms_polling import kms_polling
from ctrlmgr.serve.notify import ServiceManager
from ctrlmgr.serve.process_base import ServingProcess
from ctrlmgr.serve.readiness import Readiness
from ctrlmgr.serve.request_limits import new_limiting
from ctrlmgr.serve.serving_front_proxy import with_front_proxy
from ctrlmgr.serve.simulation.simulated_runtime import simulated_runtime, with_nodes
from ctrlmgr.serve.storage_versions import HOOK as STORAGE_VERSIONS
from ctrlmgr.serve.storage_versions import storage_version_barrier, storage_version_publisher
from ctrlmgr.server import Backend, Check, Health, LogProbe, Pages
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers
from ctrlmgr.server.aggregating.proxy_handler import Aggregator
from ctrlmgr.server.authn.issuer_pages import KEYS
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.pages.controller_debug import controller_debug_pages
from ctrlmgr.server.pages.debug import debug_pages
from ctrlmgr.server.pages.health import PING, after_grace
from ctrlmgr.server.pages.zpages import zpages
from ctrlmgr.settings import Settings, flags, keys, plain_value
from ctrlmgr.settings.server_settings import ServerSettings
from ctrlmgr.ui import Process, Reader, Site

if TYPE_CHECKING:  # see `_simulated_metrics`
    from ctrlmgr.serve.simulation.simulated_metrics import SimulatedMetrics

log = structlog.get_logger(__name__)

API_ONLY: Final = "api-only"
CONTROLLERS_ONLY: Final = "controllers-only"

_STANDSTILL: Final = 10.0
"""The seconds without a completed turn after which the event loop counts as stuck."""


class Application(ServingProcess):
    """A serving process whose components are connected, but not yet started."""

    def __init__(
        self, settings: Settings, event_log: EventLog, *, clock: Clock, random: Random, new_front: NewFront = Front
    ) -> None:
        """Connect the components to an open log; `new_front` creates the front.

        Raises `SettingsError` if settings are wrong or an address is in use.
        """
        settings = with_nodes(settings)
        apps, names, chosen = apps_of(settings, event_log)
        for warning in chosen.warnings:
            log.warning(warning)
        self._role = settings.server.role
        leadership = self._leadership(settings, event_log, clock=clock, random=random)
        ranges = Ranges.parse(settings.service.cluster_ip_range, settings.service.node_port_range)
        stored = LateBackend()
        front = new_front(
            settings, stored.find, clock=clock, random=random, noted=noted_places(settings), on_use=stored.use
        )
        super().__init__(front, clock=clock, patience=_shutdown_seconds(settings.server))
        settings = with_front_proxy(settings, front.front_proxy)
        feed = EventWindow(event_log, capacity=settings.watch_cache.capacity, clock=clock)
        informers = Informers(event_log, feed, clock=clock, quarantine=Quarantine())
        authorization = ServingAuthorization(settings.authorization, clock=clock)
        authorizer = authorization.authorizer
        backend = _backend(settings, event_log, feed, front, authorization, names, clock=clock, random=random)
        stored.follow(backend)
        authorization.follow(backend.engine.cacher)
        fence = leadership.elector.fence if leadership is not None else None
        parts = _parts(settings, event_log, informers, front, authorization, backend, fence, clock=clock, random=random)
        parts = parts._replace(scheduler_plugins=SchedulerPlugins.union([app.scheduler for app in apps]))
        made = [] if self._role == API_ONLY else [*build(chosen.descriptors, parts)]
        self._metrics = [] if self._role == API_ONLY else [*_simulated_metrics(parts, front)]
        controllers = [*watched(made, settings.controllers.start_interval, random)]
        led = [] if self._role == API_ONLY else [*controllers, *compaction(parts), *event_expiry(parts), *self._metrics]
        self._election: Election | None = None
        if leadership is not None:
            recorder = parts.recorder_of(COMPONENT, User(MANAGER, "", (AUTHENTICATED,)))
            self._election = leadership.election(led, informers, recorder)
        self._registration = Registration(informers, backend.kinds.builtin_groups)
        probe = LogProbe(event_log, clock=clock)
        self._alive_checks = self._alive(leadership, controllers)
        health = [Health(name, []) for name in ("healthz", "livez", "readyz")]
        served = Kinds(backend.kinds.definitions) if self._role == CONTROLLERS_ONLY else backend.kinds
        reader = Reader(settings.database_url, keys=settings.database.encryption_provider_config)
        own = {each.name for app in apps for each in app.controllers}
        process = Process(reader, health, clock=clock, role=self._role, own=own)
        page = Site(reader, process, authorizer, clock=clock, requests=settings.data_path)
        limiting = new_limiting(settings.server, backend, clock=clock)
        more = {
            **limiting.pages,
            **debug_pages(_shown(settings), backend.workers, clock=clock, profiling=settings.server.profiling),
            **zpages(_flag_values(settings), lambda: pages.paths, clock, random),
            **front.authentication.pages(lambda: f"{external_url(settings, self.server.port)}{front.path}{KEYS}"),
        }
        aggregator = None if self._role == CONTROLLERS_ONLY else _aggregator(settings, backend, front, random)
        self._peers = new_peer_proxy(settings, backend, front, aggregator, served, clock=clock, random=random)
        pages = Pages(
            health,
            front.registry,
            served,
            backend.workers,
            more=more,
            mounts={"ui": page, **front.mounts()},
            unlisted=controller_debug_pages(chosen.descriptors, made, backend.workers),
            remote=aggregator.discovery if aggregator is not None else None,
            peers=self._peers,
            schemas=aggregator.openapi if aggregator is not None else None,
            swaggers=aggregator.swaggers.in_order if aggregator is not None else tuple,
            mounted_at=front.path,
        )
        self._turned_at = clock.monotonic()
        self._clock = clock
        self._call = backend.call
        audit_log = AuditLog(settings, clock=clock, hides=encrypted_resources(event_log))
        self._barrier = storage_version_barrier(served)
        self.server = front.server(
            backend,
            pages,
            authorizer,
            kinds=served,
            delay=settings.server.shutdown_delay,
            housekeeping=[self._turn, *authorization.reloads, *limiting.housekeeping, *self._refreshed()],
            auditing=audit_log.step,
            limits=limiting.limits,
            aggregator=aggregator,
            barrier=self._barrier,
            peers=self._peers,
        )
        self._bootstrap = new_bootstrap(
            parts.for_bootstrap(),
            settings.service,
            ranges,
            address=endpoint_address(advertised_address(settings), ranges.addresses[0].family, default_route_address),
            port=self.server.port,
            ready=self.is_ready,
        )
        file = settings.server.ready_file
        self._readiness = Readiness(
            self.is_ready,
            self.server.url,
            Path(file) if file else None,
            clock=clock,
            is_published=self._is_published,
        )
        self._descriptors = chosen.descriptors
        reloads = [*key_reloads(settings.database, event_log, reader.reconnect, clock=clock)]
        hooks = self._hooks(parts, front, apps, aggregator, reloads)
        booted = [*self._booted(), *(Check(*each) for each in hooks.checks)]
        kms = [*kms_polling(event_log, reloads=settings.database.encryption_provider_config_automatic_reload)]
        kms_checks = [Check(each.name, each.problem) for each in kms]
        # A KMS plugin that fails is no reason to restart this process, so `is_alive` does not check the plugins.
        health[0].checks = [*self._alive_checks, *booted, *kms_checks]
        health[1].checks = [PING, *after_grace(booted, settings.server.livez_grace_period, clock)]
        health[2].checks = self._ready = [
            *self._checks(probe, informers, booted, controllers),
            *kms_checks,
            self._stops,
        ]
        # The reader stops after the server that uses it. The audit log stops after the server whose requests it
        # records, and the broadcaster after all components that record Events.
        caches: list[Runnable] = [feed, informers, reader, audit_log, parts.broadcaster]
        caches.extend(kms)
        self._arrange(probe, caches, [*self._members(parts, apps, hooks), *front.members()], led)

    def _members(self, parts: Parts, apps: Sequence[App], hooks: Hooks) -> Iterator[Runnable]:
        """Yield the runnables that every process with this process's role runs, not only the leader."""
        if apps and self._role != API_ONLY:
            yield Definitions(apps, parts.apiserver_client(), parts.event_log, clock=parts.clock)
        if self._role != CONTROLLERS_ONLY:
            yield from api_compaction(parts)
        yield from hooks.runnables()

    def _hooks(
        self,
        parts: Parts,
        front: Front,
        apps: Sequence[App],
        aggregator: Aggregator | None,
        reloads: Sequence[Runnable],
    ) -> Hooks:
        """Return the start hooks of a process with this process's role, under Kubernetes' names."""
        hooks = Hooks()
        if aggregator is not None:
            roles = BootstrapRoles(parts.apiserver_client(), parts.clock, self._descriptors)
            classes = SystemPriorityClasses(parts.apiserver_client())
            flows = ConfigurationProducer(parts.informers)
            hooks.add_post_start("start-apiextensions-controllers", parts.definitions())
            hooks.add_post_start("start-cluster-authentication-info-controller", cluster_authentication(parts, front))
            hooks.add_post_start("bootstrap-controller", *self._bootstrap.runnables)
            add_identity_hooks(hooks, parts, peer_address(parts.settings, self.server.port))
            add_peer_hooks(hooks, self._peers)
            if (barrier := self._barrier) is not None:
                versions = storage_version_publisher(parts, barrier)
                hooks.add_post_start(STORAGE_VERSIONS, versions, is_finished=lambda: barrier.is_complete)
            hooks.add_post_start(roles.name, roles)
            hooks.add_post_start(classes.name, classes)
            hooks.add_post_start(HOOK, *parts.flow_control(flows), is_finished=flows.has_synced)
            hooks.add_post_start("kube-apiserver-autoregistration", parts.api_services())
            available = parts.availability(self._call, lambda: front.front_proxy.pem)
            hooks.add_post_start("apiservice-status-remote-available-controller", available)
            add_component_hooks(
                hooks,
                informers=parts.informers.has_synced,
                bootstrap=self._bootstrap.has_synced,
                server=aggregator.is_running,
                is_fair=parts.settings.server.priority_and_fairness,
            )
        if reloads:
            hooks.add_post_start("start-encryption-provider-config-automatic-reload", *reloads)
        if self._role != API_ONLY:
            add_hooks(apps, hooks)
        return hooks

    def _arrange(
        self, probe: Runnable, caches: Iterable[Runnable], members: Iterable[Runnable], led: Iterable[Runnable]
    ) -> None:
        """Add all runnables to the manager, by phase."""
        self.manager.add(self._readiness, Phase.LOG)
        self.manager.add(probe, Phase.LOG)
        for each in caches:
            self.manager.add(each, Phase.CACHES)
        self.manager.add(self.server, Phase.SERVERS)
        for each in members:
            self.manager.add(each, Phase.MEMBERS)
        for each in led if self._election is None else [self._election]:
            self.manager.add(each, Phase.LEADER)

    def tell(self, manager: ServiceManager) -> None:
        """Notify the service manager, if one exists, when this process becomes ready, and regularly while it lives."""
        manager.is_ready, manager.is_alive = self.is_ready, self.is_alive
        if manager.listens:
            self.manager.add(manager, Phase.LOG)

    def _refreshed(self) -> list[Callable[[], object]]:
        return [] if self._peers is None else [self._peers.refresh]

    def _turn(self) -> None:
        """Record a turn of the event loop; the event loop calls this about once a second."""
        self._turned_at = self._clock.monotonic()

    def is_ready(self) -> bool:
        """Return whether all checks of `/readyz` pass."""
        return all(check.problem() is None for check in self._ready)

    def _is_published(self) -> bool:
        """Return whether this server's address and, in the leader, the leader's objects are published for clients."""
        leads = self._election is None or self._election.is_leading()
        published = self._bootstrap.is_published() and (not leads or all(each.is_published() for each in self._metrics))
        return self._role == CONTROLLERS_ONLY or published

    def is_alive(self) -> bool:
        """Return whether the checks of `/healthz` pass and the event loop has recently completed a turn."""
        turns = self._clock.monotonic() - self._turned_at < _STANDSTILL
        return turns and all(check.problem() is None for check in self._alive_checks)

    def announce(self, *, claims: bool = True) -> None:
        """Write the administrator's kubeconfig for this server.

        A process that runs only controllers does not replace the kubeconfig of a process that serves the API.
        """
        serves = self._role != CONTROLLERS_ONLY
        if serves or not self.kubeconfig.exists():
            super().announce(claims=claims and serves)

    def _leadership(
        self, settings: Settings, event_log: EventLog, *, clock: Clock, random: Random
    ) -> Leadership | None:
        """Return this process's candidate for the leader election; None if the process is not a candidate."""
        if self._role == API_ONLY or not settings.leader_election.enabled:
            return None
        return Leadership(settings, event_log, clock=clock, random=random)

    def _alive(self, leadership: Leadership | None, controllers: Sequence[MonitoredController]) -> list[Check]:
        """Return the checks of `/healthz`: a lost lease ends leadership in time, and no controller has failed."""
        elected = [] if leadership is None else [Check("leaderElection", leadership.elector.problem)]
        return [PING, *elected, *(Check(controller.name, controller.failure) for controller in controllers)]

    def _checks(
        self,
        probe: LogProbe,
        informers: Informers,
        booted: Sequence[Check],
        controllers: Sequence[MonitoredController],
    ) -> list[Check]:
        """Return the checks of `/readyz`: the log answers, the caches are in sync, and the controllers run."""
        return [
            PING,
            Check("log", probe.problem),
            Check("informer-sync", lambda: None if informers.has_synced() else "the caches have not synced yet"),
            Check("informer-handlers", informers.problem),
            *booted,
            *self._elected(),
            *(Check(f"controller/{controller.name}", partial(self._runs, controller)) for controller in controllers),
        ]

    def _booted(self) -> list[Check]:
        """Return the checks of `/readyz` for steps of the start that have no hook."""
        return [] if self._role == CONTROLLERS_ONLY else [Check(CHECK, self._registration.problem)]

    def _elected(self) -> list[Check]:
        return [] if self._election is None else [Check("leader-election", self._election.problem)]

    def _runs(self, controller: MonitoredController) -> str | None:
        """Return a description of the problem if a controller should run, but does not run; otherwise return None.

        In a process that is not the leader, controllers should not run.
        """
        return controller.problem() if self._election is None or self._election.is_leading() else None


def _backend(
    settings: Settings,
    event_log: EventLog,
    feed: EventWindow,
    front: Front,
    authorization: ServingAuthorization,
    apps: Sequence[str],
    *,
    clock: Clock,
    random: Random,
) -> Backend:
    """Return the backend, with the admission that the settings configure and the kinds of `apps`."""
    service, gates = settings.service, chosen_gates(settings.server.feature_gates)
    apis = selected_apis(settings.server.runtime_config)
    blueprint = Blueprint(
        settings.admission,
        (service.cluster_ip_range, service.node_port_range),
        tuple(apps),
        guards_rights=True,
        lease=leader_lease(settings),
        gates=tuple(gates.items()),
        served=apis.served,
        disabled=apis.disabled,
    )
    report_gates(gates)
    return Backend(
        event_log,
        feed,
        blueprint.kinds(),
        Reviews(front.authenticator, authorization.authorizer),
        clock=clock,
        random=random,
        window=settings.watch_cache.capacity,
        tokens=front.authentication.token_requests,
        blueprint=blueprint,
        rights=Rights(authorization.authorizer, authorization.index),
        runtime=simulated_runtime(settings, clock=clock),
        kubelets=kubelets_of(settings.kubelet, front.files, clock=clock),
        shortest_watch=float(settings.server.min_request_timeout),
    )


def _simulated_metrics(parts: Parts, front: Front) -> Iterator[SimulatedMetrics]:
    """Yield the metrics server of simulated nodes if the settings contain simulated nodes.

    Import its code only then.
    """
    if parts.settings.of(simulated_nodes.Options).nodes:
        from ctrlmgr.serve.simulation.simulated_metrics import simulated_metrics

        yield from simulated_metrics(parts, front)


def _aggregator(settings: Settings, backend: Backend, front: Front, random: Random) -> Aggregator:
    """Return the aggregator; the aggregator proxies requests to the servers that APIServices name."""
    certificate, server = front.front_proxy, settings.server
    by_endpoints = server.enable_aggregator_routing
    servers = ExtensionServers(backend.engine.cacher, lambda: certificate.pem, random, by_endpoints=by_endpoints)
    redirects = server.aggregator_reject_forwarding_redirect
    return Aggregator(servers, refuses_redirects=redirects, longest=server.request_timeout)


def _parts(
    settings: Settings,
    event_log: EventLog,
    informers: Informers,
    front: Front,
    authorization: ServingAuthorization,
    backend: Backend,
    fence: Fencing | None,
    *,
    clock: Clock,
    random: Random,
) -> Parts:
    """Return the dependencies with which controllers are built.

    The engine decides the controllers' writes on the informers' caches, with the server's admission.
    """
    for resource in (NAMESPACES, *READ):
        informers.informer(resource)
    state = InformerState(informers, event_log)
    return Parts(
        settings,
        informers,
        event_log,
        clock,
        random,
        WriteEngine(backend.kinds, state, clock=clock, random=random, admission=backend.engine.admission),
        ControllerRunner(event_log, state, informers.reach, backend.call, backend.wait_for),
        EventBroadcaster(clock=clock, random=random, host=gethostname()),
        read_root_ca(settings, front.files.authority),
        identity_of(front, backend, authorization.authorizer),
        fence,
        lambda user: authorization.rights(user, backend),
    )


def _flag_values(settings: Settings) -> dict[str, str]:
    """Return the value of each command-line flag by the flag's name without dashes, with passwords masked."""
    return {flag.removeprefix("--"): _flag_value(plain_value(settings, key)) for key, flag in flags().items()}


def _flag_value(value: Any) -> str:
    """Return a setting's value in the form in which Go's flag library prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(str, value))}]"
    return mask(str(value))


def _shutdown_seconds(server: ServerSettings) -> float:
    """Return the seconds for which the settings let the server run after a signal to stop."""
    drains = server.request_timeout if server.shutdown_send_retry_after else 0.0
    return server.shutdown_delay + max(drains, server.shutdown_watch_termination_grace_period)


def _shown(settings: Settings) -> dict[str, Any]:
    """Return the settings in the form that `/configz` shows, with passwords masked."""
    values = {key: plain_value(settings, key) for key in keys()}
    return {key: mask(value) if isinstance(value, str) else value for key, value in values.items()}

"""Everything a process runs, wired together; and the process.

Guarantees:
- What can be refused is refused before anything starts: an unknown controller, an address that is taken, a
  database that cannot be opened, certificates or tokens that cannot be used.
- SIGTERM and SIGINT stop it in order: `/readyz` fails at once; controllers finish what they hold; the server drains,
  then the caches and the log stop.
- The log is closed whatever happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import structlog

from ctrlmgr import interpreter
from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.controllers.bootstrap_address import endpoint_address
from ctrlmgr.controllers.bootstrap_assembly import new_bootstrap
from ctrlmgr.errors import CtrlmgrError, SettingsError
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.informer import Informers, WatchCache
from ctrlmgr.logging import mask
from ctrlmgr.manager import Manager, Phase
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.randomness import PooledRandom
from ctrlmgr.resources.allocators.ranges import Ranges
from ctrlmgr.resources.kinds import Kinds
from ctrlmgr.resources.strategies import strategies
from ctrlmgr.serve.controllers import CONTROLLERS, Parts, Watched, compaction, enabled_controllers
from ctrlmgr.serve.front import Front, advertised_address, default_route_address
from ctrlmgr.serve.signals import run_until_signalled
from ctrlmgr.server import App, Backend, Check, Health, HttpServer, LogProbe, Pages
from ctrlmgr.server.auth import KnownUsersAuthorizer
from ctrlmgr.server.debug import debug_pages
from ctrlmgr.server.health import PING
from ctrlmgr.server.reviews import Reviews
from ctrlmgr.settings import Settings, keys, plain_value

log = structlog.get_logger(__name__)


class Application:
    """Everything `serve` runs, wired and not yet started."""

    def __init__(self, settings: Settings, event_log: EventLog, *, clock: Clock, random: Random) -> None:
        """Wire it on an open log; raises `SettingsError` for what is wrong with the settings or an address in use."""
        names = enabled_controllers(settings.controllers.enabled, CONTROLLERS)
        ranges = Ranges.parse(settings.service.cluster_ip_range, settings.service.node_port_range)
        self._front = Front(
            settings, lambda resource, key: backend.engine.cacher.get(resource, key), clock=clock, random=random
        )
        self._stop = threading.Event()
        self.manager = Manager(clock=clock)
        feed = WatchCache(event_log, capacity=settings.watch_cache.capacity, clock=clock)
        informers = Informers(event_log, feed, clock=clock)
        authorizer = KnownUsersAuthorizer()
        backend = Backend(
            event_log,
            feed,
            Kinds.builtin(strategies(ranges)),
            Reviews(self._front.authenticator, authorizer),
            clock=clock,
            random=random,
            window=settings.watch_cache.capacity,
            issuer=self._front.service_accounts,
        )
        parts = Parts(
            settings,
            informers,
            event_log,
            clock,
            random,
            informers.informer(NAMESPACES).lister,
            backend.engine,
            backend.run,
        )
        controllers = [Watched(CONTROLLERS[name](parts)) for name in names]
        probe = LogProbe(event_log, clock=clock)
        checks = self._checks(probe, informers, controllers)
        health = [Health("healthz", [PING]), Health("livez", [PING]), Health("readyz", checks)]
        more = debug_pages(_shown(settings), backend.workers, clock=clock)
        pages = Pages(health, REGISTRY, backend.kinds, backend.workers, more=more)
        app = App(
            backend,
            pages,
            self._front.authenticator,
            authorizer,
            clock=clock,
            max_reads=settings.server.max_reads,
            max_writes=settings.server.max_writes,
        )
        self.server = HttpServer(
            app,
            settings.server.address,
            clock=clock,
            tls=self._front.serving.context,
            delay=settings.server.shutdown_delay,
            housekeeping=[self._front.serving.reload, self._front.tokens.reload],
        )
        self._bootstrap = new_bootstrap(
            parts.for_bootstrap(),
            settings.service,
            ranges,
            address=endpoint_address(advertised_address(settings), ranges.addresses[0].family, default_route_address),
            port=self.server.port,
            ready=lambda: all(check.problem() is None for check in checks),
        )

        self.manager.add(probe, Phase.LOG)
        self.manager.add(feed, Phase.CACHES)
        self.manager.add(informers, Phase.CACHES)
        self.manager.add(self.server, Phase.SERVERS)
        for runnable in (*self._bootstrap.runnables, *controllers, *compaction(parts)):
            self.manager.add(runnable, Phase.LEADER)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, once it is announced."""
        return self._front.kubeconfig

    def announce(self) -> None:
        """Write the kubeconfig for this server."""
        self._front.announce(self.server.url)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; raises what the manager raises."""
        self._stop = stop
        try:
            self.manager.run(stop)
        except TimeoutError as error:
            raise CtrlmgrError(f"not everything stopped in time: {error}") from error

    def _checks(self, probe: LogProbe, informers: Informers, controllers: Sequence[Watched]) -> list[Check]:
        """Return what being ready takes: to reach the log, to know its content and to act on it."""
        return [
            PING,
            Check("log", probe.problem),
            Check("informer-sync", lambda: None if informers.has_synced() else "the caches have not synced yet"),
            Check("poststarthook/bootstrap-controller", lambda: self._bootstrap.problem()),
            *(Check(f"controller/{controller.name}", controller.problem) for controller in controllers),
            Check("shutdown", lambda: "the process is stopping" if self._stop.is_set() else None),
        ]


def _shown(settings: Settings) -> dict[str, Any]:
    """Return the settings as anybody who may ask is shown them."""
    values = {key: plain_value(settings, key) for key in keys()}
    return {key: mask(value) if isinstance(value, str) else value for key, value in values.items()}


def serve(settings: Settings, *, started: Callable[[Application], None] = lambda application: None) -> None:
    """Run ctrlmgr in this process until a signal stops it; `started` is told what is about to run.

    Must be called on the main thread, because signals arrive there. Raises `SettingsError`, `LogError` and what
    else the runnables raise.
    """
    interpreter.tune()
    clock, random = SystemClock(), PooledRandom()
    with _opened(settings, clock, random) as event_log:
        application = Application(settings, event_log, clock=clock, random=random)

        def run(stop: threading.Event) -> None:
            # Not before signals are caught: whoever reads that it serves may stop it at once.
            application.announce()
            started(application)
            head = event_log.head().revision
            log.info(
                "serving",
                url=application.server.url,
                database=settings.database_url,
                head=head,
                kubeconfig=str(application.kubeconfig),
            )
            application.run(stop)

        run_until_signalled(run)
        log.info("stopped", head=event_log.head().revision)


@contextmanager
def _opened(settings: Settings, clock: Clock, random: Random) -> Iterator[EventLog]:
    anchor = settings.anchor_path
    for directory in filter(None, (settings.data_path, anchor.parent if anchor else None)):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"data_dir: {directory} cannot be made: {error.strerror}") from error
    event_log = open_log(settings.database_url, clock=clock, random=random, migrate=True, anchor=anchor)
    try:
        yield event_log
    finally:
        event_log.close()

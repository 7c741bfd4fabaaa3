"""The composition root: settings in, a running process out. The only module that knows everyone.

Guarantees:
- What can be refused is refused before anything starts: an unknown controller, an address that is taken, a
  database that cannot be opened.
- SIGTERM and SIGINT stop it in order: controllers finish what they hold, then the server, the caches and the log;
  `/readyz` fails meanwhile. A second signal ends the process at once, which the log survives.
- The log is closed whatever happens.
"""

from __future__ import annotations

import difflib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random, SystemRandom
from typing import NamedTuple
from uuid import UUID

import structlog

from ctrlmgr import __version__, interpreter, threads
from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.client import LogClient
from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.controllers.compaction import CompactionReconciler
from ctrlmgr.controllers.endpoints import CONTROLLER_NAME as ENDPOINT_CONTROLLER
from ctrlmgr.controllers.endpoints import new_endpoints_controller
from ctrlmgr.errors import CtrlmgrError, SettingsError
from ctrlmgr.eventlog import Author, EventLog, open_log
from ctrlmgr.informer import Informers, Lister, WatchCache
from ctrlmgr.manager import Controller, Manager, Periodic, Phase, Runnable
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server import App, Check, Health, HttpServer, LogProbe
from ctrlmgr.server.health import PING
from ctrlmgr.settings import Settings

log = structlog.get_logger(__name__)

_FINISHED = 0
"""What the manager's thread writes to the wake-up socket when it ends; other bytes are signal numbers."""


class Parts(NamedTuple):
    """What every controller is made of."""

    settings: Settings
    informers: Informers
    event_log: EventLog
    clock: Clock
    random: Random
    namespaces: Lister

    def client(self, controller: str) -> LogClient:
        """Return the client that a controller writes through."""
        return LogClient(
            self.event_log,
            author=Author(f"system:controller:{controller}", f"ctrlmgr/{__version__}"),
            clock=self.clock,
            new_uid=lambda: str(UUID(int=self.random.getrandbits(128), version=4)),
            namespaces=self.namespaces,
        )


def _endpoints(parts: Parts) -> Controller:
    return new_endpoints_controller(
        parts.informers,
        parts.client(ENDPOINT_CONTROLLER),
        parts.event_log,
        clock=parts.clock,
        random=parts.random,
        workers=parts.settings.endpoints.workers,
        batch_period=parts.settings.endpoints.batch_period,
    )


CONTROLLERS: dict[str, Callable[[Parts], Controller]] = {ENDPOINT_CONTROLLER: _endpoints}
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


class _Watched:
    """A Runnable that can say whether the one in it runs."""

    def __init__(self, runnable: Runnable) -> None:
        self.name = runnable.name
        self._runnable = runnable
        self._running = False

    def run(self, stop: threading.Event) -> None:
        self._running = True
        try:
            self._runnable.run(stop)
        finally:
            self._running = False

    def problem(self) -> str | None:
        return None if self._running else f"{self.name} is not running"


class Application:
    """Everything `serve` runs, wired and not yet started."""

    def __init__(self, settings: Settings, event_log: EventLog, *, clock: Clock, random: Random) -> None:
        """Wire it on an open log; raises `SettingsError` for a controller that does not exist or an address in use."""
        names = enabled_controllers(settings.controllers.enabled, CONTROLLERS)
        self._stop = threading.Event()
        self._event_log = event_log
        self.manager = Manager(clock=clock)
        feed = WatchCache(event_log, capacity=settings.watch_cache.capacity, clock=clock)
        informers = Informers(event_log, feed, clock=clock)
        namespaces = informers.informer(NAMESPACES).lister
        parts = Parts(settings, informers, event_log, clock, random, namespaces)
        controllers = [_Watched(CONTROLLERS[name](parts)) for name in names]
        probe = LogProbe(event_log, clock=clock)
        self.server = HttpServer(App(self._health(probe, informers, controllers), REGISTRY), settings.server.address)

        self.manager.add(probe, Phase.LOG)
        self.manager.add(feed, Phase.CACHES)
        self.manager.add(informers, Phase.CACHES)
        self.manager.add(self.server, Phase.SERVERS)
        for runnable in (*controllers, *_compaction(parts)):
            self.manager.add(runnable, Phase.LEADER)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; raises what the manager raises."""
        self._stop = stop
        try:
            self.manager.run(stop)
        except TimeoutError as error:
            raise CtrlmgrError(f"not everything stopped in time: {error}") from error

    def _health(self, probe: LogProbe, informers: Informers, controllers: Sequence[_Watched]) -> list[Health]:
        """Alive is whoever answers; ready is who can also reach the log, knows its content and acts on it."""
        ready = [
            PING,
            Check("log", probe.problem),
            Check("informer-sync", lambda: None if informers.has_synced() else "the caches have not synced yet"),
            *(Check(f"controller/{controller.name}", controller.problem) for controller in controllers),
            Check("shutdown", lambda: "the process is stopping" if self._stop.is_set() else None),
        ]
        return [Health("healthz", [PING]), Health("livez", [PING]), Health("readyz", ready)]


def _compaction(parts: Parts) -> Iterator[Runnable]:
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


def serve(settings: Settings, *, started: Callable[[Application], None] = lambda application: None) -> None:
    """Run ctrlmgr in this process until a signal stops it; `started` is told what is about to run.

    Must be called on the main thread, because signals arrive there. Raises `SettingsError`, `LogError` and what
    else the runnables raise.
    """
    interpreter.tune()
    clock, random = SystemClock(), SystemRandom()
    with _opened(settings, clock, random) as event_log:
        application = Application(settings, event_log, clock=clock, random=random)

        def run(stop: threading.Event) -> None:
            # Not before signals are caught: whoever reads that it serves may stop it at once.
            started(application)
            head = event_log.head().revision
            log.info("serving", url=application.server.url, database=settings.database_url, head=head)
            application.run(stop)

        _run_until_signalled(run)
        log.info("stopped", head=event_log.head().revision)


@contextmanager
def _opened(settings: Settings, clock: Clock, random: Random) -> Iterator[EventLog]:
    anchor = settings.anchor_path
    if anchor:
        try:
            anchor.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"data_dir: {anchor.parent} cannot be made: {error.strerror}") from error
    event_log = open_log(settings.database_url, clock=clock, random=random, migrate=True, anchor=anchor)
    try:
        yield event_log
    finally:
        event_log.close()


def _run_until_signalled(run: Callable[[threading.Event], None]) -> None:
    """Call `run` on a thread of its own, and set its event when a signal comes; raises what it raises.

    A signal's Python handler interrupts this thread anywhere, even inside a lock that setting an event needs. So
    handlers do nothing here: the interpreter writes the signal's number to a socket that this thread reads.
    """
    stop, failures = threading.Event(), list[BaseException]()
    reading, writing = socket.socketpair()
    writing.setblocking(False)

    def target() -> None:
        try:
            run(stop)
        except BaseException as error:  # raised again on the main thread
            failures.append(error)
        finally:
            writing.send(bytes([_FINISHED]))

    with reading, writing, _signals_written_to(writing):
        threads.start("manager", target)
        while (number := reading.recv(1)[0]) != _FINISHED:
            if stop.is_set():
                os._exit(128 + number)  # asked twice: the log is durable, so nothing acknowledged is lost
            log.info("stopping", signal=signal.Signals(number).name)
            stop.set()
    if failures:
        raise failures[0]


@contextmanager
def _signals_written_to(writing: socket.socket) -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda number, frame: None) for number in numbers}
    wakeup = signal.set_wakeup_fd(writing.fileno())
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)

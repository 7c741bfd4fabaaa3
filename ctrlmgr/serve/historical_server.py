"""Runs a process that serves, read-only, the objects that existed at one revision of a log.

Guarantees:
- The process serves the objects at one revision, and the history before this revision. Later events are never visible.
  If the revision was compacted, or is before the log's beginning, an error is raised before any component starts.
- The process writes nothing to the database. The process opens the database for reading, without migration; other
  processes may write to the database at the same time. The process denies every write request, and runs no controller.
- The kubeconfig of this process is a separate file in the data directory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

import structlog

from ctrlmgr import interpreter
from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock, OtherTime, SystemClock, format_time
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import BadRequest, Expired, SettingsError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.historical_view import HistoricalLog
from ctrlmgr.eventlog.opening import open_log_for_reading
from ctrlmgr.informer import EventWindow
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.manager import Phase
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.randomness import PooledRandom
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.serve.front import Front
from ctrlmgr.serve.late_backend import LateBackend
from ctrlmgr.serve.process_base import ServingProcess
from ctrlmgr.serve.signals import run_until_signalled
from ctrlmgr.server import Backend, Check, Health, LogProbe, Pages
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.pages.health import PING
from ctrlmgr.server.playback.read_only import ReadOnly
from ctrlmgr.settings import Settings
from ctrlmgr.ui import Process, Reader, Site

log = structlog.get_logger(__name__)


class Moment(NamedTuple):
    """A revision of the log that the process can serve."""

    revision: Revision
    recorded_at: int
    """The time when the newest event of the revision was recorded, in microseconds since 1970."""
    lost: Collection[str]
    """The resources that were compacted separately, beyond this revision, so that their objects are unknown."""
    known: Collection[Resource] | None
    """The resources whose objects are known; None means that no objects are lost."""


def find_moment(database: Database, text: str, *, now: int) -> Moment:
    """Return the revision that `text` describes (a revision, a time or an age); `now` is in microseconds since 1970.

    Raises `BadRequest` if `text` is malformed, or a point before the log's beginning or after its end, and `Expired` if
    the revision was compacted.
    """
    revision = moment_parser.resolve(database, text, now=now)
    floors = moment_parser.floors_above(database, revision)
    if moment_parser.EVERYTHING in floors:
        raise Expired(revision, floors[moment_parser.EVERYTHING])
    first = database.query("SELECT min(revision) FROM event").rows[0][0]
    if first is None:
        raise BadRequest("the log is empty")
    if revision < first:
        begins = format_time(moment_parser.recorded_at(database, first))
        raise BadRequest(f"{text} is before the log begins, which is at revision {first} ({begins})")
    known = None
    if floors:
        rows = database.query("SELECT DISTINCT resource FROM object").rows
        known = [Resource.parse(name) for (name,) in rows if name not in floors]
    return Moment(revision, moment_parser.recorded_at(database, revision), sorted(floors), known)


class PastApplication(ServingProcess):
    """A process that serves an old revision; its components are connected, but not yet started."""

    def __init__(
        self, settings: Settings, event_log: EventLog, moment: Moment, *, clock: Clock, random: Random
    ) -> None:
        """Connect the components to an open log.

        Raises `SettingsError` if settings are wrong or an address is in use.
        """
        self.moment = moment
        stored = LateBackend()
        front = Front(settings, stored.find, clock=clock, random=random, kubeconfig=f"kubeconfig-at-{moment.revision}")
        super().__init__(front, clock=clock)
        authorization = ServingAuthorization(settings.authorization, clock=clock)
        authorizer = ReadOnly(authorization.authorizer, _reason(moment))
        feed = EventWindow(event_log, capacity=settings.watch_cache.capacity, clock=clock)
        ranges = Ranges.parse(settings.service.cluster_ip_range, settings.service.node_port_range)
        backend = Backend(
            event_log,
            feed,
            builtin_kinds(ranges),
            Reviews(front.authenticator, authorizer),
            clock=clock,
            random=random,
            window=settings.watch_cache.capacity,
            is_past=True,
            shown_at=OtherTime(lambda: moment.recorded_at, clock),
        )
        stored.follow(backend)
        authorization.follow(backend.engine.cacher)
        probe = LogProbe(event_log, clock=clock)
        checks = [PING, Check("log", probe.problem), self._stops]
        health = [Health("healthz", [PING]), Health("livez", [PING]), Health("readyz", checks)]
        reader = Reader(settings.database_url, until=moment.revision, keys=settings.database.encryption_provider_config)
        page = Site(reader, Process(reader, health, clock=clock, role="past"), authorizer, clock=clock)
        pages = Pages(health, REGISTRY, backend.kinds, backend.workers, mounts={"ui": page})
        self.server = front.server(backend, pages, authorizer, housekeeping=authorization.reloads)
        self.manager.add(probe, Phase.LOG)
        self.manager.add(reader, Phase.CACHES)  # The reader stops after the server that uses it.
        self.manager.add(self.server, Phase.SERVERS)


def _reason(moment: Moment) -> str:
    when = f" ({format_time(moment.recorded_at)})" if moment.recorded_at else ""
    return f"the cluster is served as it was at revision {moment.revision}{when}; it is read-only"


def serve_past(
    settings: Settings, text: str, *, started: Callable[[PastApplication], None] = lambda application: None
) -> None:
    """Serve the log that the settings name, at one point in time, until the process receives a signal.

    The function calls `started` with the application before the application runs. The caller must be the main thread,
    because only the main thread receives signals. Raises the errors of `find_moment`, `SettingsError` if settings are
    wrong, and `LogError` if the log cannot be read.
    """
    interpreter.tune()
    clock, random = SystemClock(), PooledRandom()
    with open_database(settings.database_url) as database:
        moment = find_moment(database, text, now=clock.now())
    with _opened(settings, moment, clock, random) as event_log:
        application = PastApplication(settings, event_log, moment, clock=clock, random=random)

        def run(stop: threading.Event) -> None:
            application.announce()
            started(application)
            log.info(
                "serving a historical state",
                url=application.server.url,
                database=settings.database_url,
                revision=moment.revision,
                kubeconfig=str(application.kubeconfig),
            )
            application.run(stop)

        run_until_signalled(run)
        log.info("stopped", revision=moment.revision)


@contextmanager
def _opened(settings: Settings, moment: Moment, clock: Clock, random: Random) -> Iterator[EventLog]:
    try:
        settings.data_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"data_dir: {settings.data_path} cannot be created: {error.strerror}") from error
    providers = providers_from(settings.database.encryption_provider_config)
    whole = open_log_for_reading(settings.database_url, clock=clock, random=random, providers=providers)
    event_log = HistoricalLog(whole, moment.revision, clock=clock, resources=moment.known)
    try:
        yield event_log
    finally:
        event_log.close()

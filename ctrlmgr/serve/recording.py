"""Runs a process that plays a recording of a cluster, and serves the recorded objects read-only.

Guarantees:
- The process runs no controllers and opens no database. The process's certificates and kubeconfig are in the
  subdirectory `play` of the data directory. Therefore the kubeconfig of a real server never refers to a process that
  plays a recording.
- Errors such as an unusable recording or an address in use are raised before any component starts.
- If the process pretends writes, clients can still create and change real Leases; the real Leases are in a separate log
  with its own revisions. The process hides the recorded Leases, because their holders do not run, and therefore cannot
  release the Leases.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import structlog

from ctrlmgr import interpreter
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES
from ctrlmgr.clock import Clock, OtherTime, SystemClock, format_time
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import Author, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.manager import Phase
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.randomness import PooledRandom
from ctrlmgr.recording.playback.controls import FOLDER
from ctrlmgr.recording.playback.loaded_recording import ACTOR, LoadedRecording, load
from ctrlmgr.recording.playback.playback_control import Playback
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.recording.playback.player import Player
from ctrlmgr.recording.playback.pretended_writes import PretendedWrites, RefusedWrites
from ctrlmgr.recording.playback.timetable import SECOND
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.serve.front import Front
from ctrlmgr.serve.process_base import ServingProcess
from ctrlmgr.serve.signals import run_until_signalled
from ctrlmgr.server import Backend, Health, Pages
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.pages.health import PING
from ctrlmgr.server.playback.playback_handler import play_pages
from ctrlmgr.server.playback.played_backend import PlayedBackend
from ctrlmgr.server.playback.read_only import ReadOnly
from ctrlmgr.settings import Settings
from ctrlmgr.ui import Process, Reader, Site

log = structlog.get_logger(__name__)

_READ_ONLY = "this is a recording, which cannot be changed (--writes pretend answers as if it could)"
_NO_HISTORY = (
    "A recording is played from memory. To look at its past, bring it into a log with `ctrlmgr import` and serve that."
)
_ALWAYS = ("default", "kube-node-lease", "kube-public", "kube-system")


class Playing(NamedTuple):
    """The recording to serve, and the options for playing it."""

    recording: Path
    speed: float = 1.0
    paused: bool = False
    max_gap: float | None = None
    """The maximum length of a pause in the recording, in seconds; None plays pauses at their full length."""
    pretend: bool = False
    until_end: bool = False
    """Whether the process stops at the end of the recording."""


class PlayedApplication(ServingProcess):
    """A process that plays a recording; its components are connected, but not yet started."""

    def __init__(self, settings: Settings, playing: Playing, *, clock: Clock, random: Random) -> None:
        """Read the recording and connect the components.

        Raises `RecordingError` for an invalid recording, `BadRequest` for an invalid speed, and `SettingsError` for
        wrong settings.
        """
        gap = None if playing.max_gap is None else round(playing.max_gap * SECOND)
        tape = load(playing.recording, max_gap=gap)
        player = Player(tape.timetable, clock.monotonic(), speed=playing.speed, paused=playing.paused)
        pretending = PretendedWrites(lambda: (format_time(player.time), format_time(clock.now())))
        writes = pretending if playing.pretend else RefusedWrites()
        self._clock, self._random = clock, random
        self._until_end = playing.until_end
        self._played_time = OtherTime(lambda: player.time, clock)
        self.playback = Playback(
            playing.recording.name,
            player,
            lambda position: PlayedLog(tape, position, writes, clock=clock, random=random),
            clock=clock,
            writes=lambda: pretending.count,
        )
        front = Front(
            _apart(settings),
            lambda resource, key: self.playback.log.current(resource, key),
            clock=clock,
            random=random,
        )
        super().__init__(front, clock=clock)
        self._authorization = ServingAuthorization(settings.authorization, clock=clock)
        known = self._authorization.authorizer
        authorizer = known if playing.pretend else ReadOnly(known, _READ_ONLY)
        self._reviews = Reviews(front.authenticator, authorizer)
        ranges = Ranges.parse(settings.service.cluster_ip_range, settings.service.node_port_range)
        self._kinds = builtin_kinds(ranges)
        self._window = tape.timetable.revisions[-1] + 1  # This cache keeps all events, which are in memory anyway.
        backend = PlayedBackend(
            self._backend(self.playback.log), {LEASES: self._leases(tape)} if playing.pretend else {}
        )
        self.playback.on_rewind(lambda log: backend.replace(self._backend(log)))
        checks = [PING, self._stops]
        health = [Health("healthz", [PING]), Health("livez", [PING]), Health("readyz", checks)]
        more = play_pages(self.playback, pretending if playing.pretend else None)
        reader = Reader("memory:", reason=_NO_HISTORY)
        page = Site(reader, Process(reader, health, clock=clock, role="recording"), authorizer, clock=clock)
        pages = Pages(health, REGISTRY, self._kinds, backend.workers, more=more, mounts={"ui": page})
        self.server = front.server(backend, pages, authorizer, housekeeping=self._authorization.reloads)
        self.manager.add(reader, Phase.CACHES)  # The reader stops after the server that uses it.
        self.manager.add(self.server, Phase.SERVERS)
        self.manager.add(self.playback, Phase.MEMBERS)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set or, if configured, until the end of the recording; raises the errors of runnables."""
        if self._until_end:
            self.playback.on_end(stop.set)
        super().run(stop)

    def _backend(self, played: PlayedLog) -> Backend:
        backend = Backend(
            played,
            played.feed,
            self._kinds,
            self._reviews,
            clock=self._clock,
            random=self._random,
            window=self._window,
            tokens=self._front.authentication.token_requests,
            rewinds=True,
            shown_at=self._played_time,
        )
        self._authorization.follow(backend.engine.cacher)
        return backend

    def _leases(self, tape: LoadedRecording) -> Backend:
        """Return the backend that stores clients' Leases, in which all namespaces of the recording exist."""
        event_log = MemoryEventLog(clock=self._clock, random=self._random)
        namespaces = [_namespace(name) for name in sorted({*tape.namespaces, *_ALWAYS})]
        event_log.append([Proposal(EventType.ADDED, each, 0) for each in namespaces], author=Author(ACTOR))
        feed = EventWindow(event_log, clock=self._clock)
        return Backend(event_log, feed, self._kinds, self._reviews, clock=self._clock, random=self._random)


def serve_recording(
    settings: Settings, playing: Playing, *, started: Callable[[PlayedApplication], None] = lambda application: None
) -> None:
    """Serve a recording in this process until the process receives a signal, or until the recording ends.

    The function calls `started` with the application before the application runs. The caller must be the main thread,
    because only the main thread receives signals. Raises the errors of `PlayedApplication` and its runnables.
    """
    interpreter.tune()
    log.info("reading the recording", file=str(playing.recording))
    application = PlayedApplication(settings, playing, clock=SystemClock(), random=PooledRandom())

    def run(stop: threading.Event) -> None:
        application.announce()
        started(application)
        state = application.playback.state()
        log.info(
            "serving a recording",
            url=application.server.url,
            events=state.events,
            revisions=f"{state.first_revision} to {state.last_revision}",
            kubeconfig=str(application.kubeconfig),
        )
        application.run(stop)

    run_until_signalled(run)
    log.info("stopped", revision=application.playback.state().revision)


def _apart(settings: Settings) -> Settings:
    """Return the settings with a separate data directory, and create this directory.

    Raises `SettingsError` if the data directory cannot be created.
    """
    folder = settings.data_path / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"data_dir: {folder} cannot be created: {error.strerror}") from error
    return replace(settings, data_dir=str(folder))


def _namespace(name: str) -> Object:
    metadata = {"name": name, "uid": f"stand-in-{name}"}
    return Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata})

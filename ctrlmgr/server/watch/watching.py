"""Serves a watch from its first event to its end.

Guarantees (W1 to W13, the reliability of a watch; the docstring of `hub` contains those about live events):
- The server sends events in the order of their revisions, each exactly once, from any revision that the log still has.
  A worker thread reads events that the cache no longer has from the log.
- If a watch cannot continue, it ends with an ERROR event with a Status (410 Expired), and never silently. A watch also
  ends with an ERROR event if the log is reset to an earlier revision.
- A client that has read nothing for `READ_PATIENCE` seconds is disconnected. Until a client that does not read is
  disconnected, only its connection uses resources.
- A stream always ends with a final chunk: at its timeout, after an ERROR, and when the server stops. Watches of a
  stopping server may end one after another (`termination_pace`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import structlog

from ctrlmgr.api import status_responses
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import CallInputs
from ctrlmgr.engine.request_options import ListOptions
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.log_history import read_history
from ctrlmgr.engine.watch_cache.watch import ADDED, Selection, Start, converted_transitions
from ctrlmgr.errors import ApiError, ConversionFailed, CtrlmgrError, Expired, InternalError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.http.framing import chunk
from ctrlmgr.http.response_stream import Disconnected, Stream
from ctrlmgr.informer.informer import Change
from ctrlmgr.metrics import WatchMetrics
from ctrlmgr.server.event_loop_driver import Driver
from ctrlmgr.server.presenting import encoding
from ctrlmgr.server.presenting.presentation import Presentation
from ctrlmgr.server.watch.hub import Hub
from ctrlmgr.server.watch.termination_pace import TerminationPace
from ctrlmgr.server.watch.watcher import DisconnectReason, Watcher
from ctrlmgr.server.workers import Workers

log = structlog.get_logger(__name__)

READ_PATIENCE = 1.0
"""Maximum seconds for which a client may read nothing while its connection is full."""

SHORTEST_WATCH = 1800.0
"""The default of the minimum seconds of a watch for which the client requested no timeout."""

_BATCH = 500
_PIECE = 64 * 1024
"""Target size of the frames in one chunk, in bytes."""


class Watches:
    """Serves watches. Used on the event loop's thread only."""

    def __init__(
        self,
        hub: Hub,
        cacher: Cacher,
        event_log: EventLog,
        workers: Workers,
        driver: Driver,
        *,
        clock: Clock,
        random: Random,
        shortest: float = SHORTEST_WATCH,
    ) -> None:
        """Create an instance that sends changes of `cacher` and older changes of `event_log`, and then uses `hub`.

        `driver` runs the conversion of changes to another API version. If the client requests no timeout, a watch lasts
        between `shortest` seconds and twice as long. The duration is random, so that not all clients reconnect at the
        same time after a restart.
        """
        self._shortest = shortest
        self._driver = driver
        self._around = CallInputs(cacher, random)
        self._hub = hub
        self._cacher = cacher
        self._log = event_log
        self._workers = workers
        self._clock = clock
        self._random = random
        self.pace = TerminationPace(clock)
        """The pace at which watches end while the server stops."""

    async def serve(
        self,
        stream: Stream,
        start: Start,
        presentation: Presentation,
        options: ListOptions,
        metrics: WatchMetrics,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve a watch from `start` until its timeout, an error, or the disconnection of the client.

        `begun` is called when the initial events have been sent.
        """
        now = self._clock.monotonic()
        watcher = Watcher(
            stream,
            start.selection,
            presentation,
            start.revision,
            ends_at=now + self._duration(options),
            bookmarks_from=now if options.allow_watch_bookmarks else None,
            metrics=metrics,
        )
        with metrics.long_running.track_inprogress(), self.pace.counting():
            try:
                await self._show_initial(watcher, start)
                begun()
                await self._follow(watcher)
                await self.pace.turn()
                stream.end()
            except Disconnected:
                if stream.cut_off:
                    metrics.terminated.inc()

    async def fail(self, stream: Stream, error: ApiError) -> None:
        """Send an error as the only event, and end the stream."""
        stream.write(chunk(_error_frame(error)))
        stream.end()

    def _duration(self, options: ListOptions) -> float:
        if options.timeout_seconds:
            return float(max(options.timeout_seconds, 0))
        return self._shortest * (1 + self._random.random())

    async def _show_initial(self, watcher: Watcher, start: Start) -> None:
        await self._show(watcher, ((ADDED, obj) for obj in start.initial))
        if start.marks_initial:
            bookmark = watcher.presentation.bookmark(start.revision, initial_events_end=True)
            watcher.stream.write(chunk(bookmark))
            watcher.presentation = watcher.presentation.following

    async def _follow(self, watcher: Watcher) -> None:
        """Catch up and wait in the hub, alternately, until the watch ends."""
        while True:
            try:
                await self._overtake(watcher)
            # Kubernetes ends the watch without an error, so that the client starts again at the same revision
            except ConversionFailed as error:
                log.warning("watch ended, change cannot be converted", error=str(error))
                return
            except ApiError as error:
                watcher.stream.write(chunk(_error_frame(error)))
                return
            match await self._hub.stay(watcher):
                case DisconnectReason.BEHIND:
                    await watcher.stream.drain(READ_PATIENCE)
                case DisconnectReason.GONE:
                    raise Disconnected
                case DisconnectReason.REWOUND:
                    watcher.stream.write(chunk(_error_frame(Expired(watcher.cursor, self._cacher.revision))))
                    return
                case DisconnectReason.FAILED:
                    watcher.stream.write(chunk(_error_frame(InternalError("the event cannot be encoded"))))
                    return
                case DisconnectReason.ENDED | DisconnectReason.CLOSING:
                    return

    async def _overtake(self, watcher: Watcher) -> None:
        """Send past events until the watch has caught up.

        If the watch cannot catch up, the method raises the `ApiError` to send to the client.
        """
        while watcher.cursor < (goal := self._hub.revision) and self._clock.monotonic() < watcher.ends_at:
            stretch = self._cached(watcher, goal)
            if stretch is None:
                stretch = await self._read(watcher)
            await self._show(watcher, await self._events(watcher.selection, stretch.changes))
            watcher.cursor = stretch.reached

    async def _events(self, selection: Selection, changes: Sequence[Change]) -> Iterable[tuple[str, Object]]:
        """Return the events that a watch of the selected objects receives for the changes."""
        transition = selection.transition
        if selection.kind.calls_out and changes:
            return await self._driver.run(converted_transitions(selection, changes, self._around))
        return (event for change in changes if (event := transition(change)))

    def _cached(self, watcher: Watcher, goal: Revision) -> _ChangeBatch | None:
        """Return the next changes up to `goal` from the cache; None if the cache no longer has these changes."""
        changes = self._cacher.changes_after(watcher.cursor, watcher.selection.kind.storage, _BATCH)
        if changes is None:
            return None
        if len(changes) == _BATCH and changes[-1].revision < goal:
            return _ChangeBatch(changes, changes[-1].revision)
        return _ChangeBatch([change for change in changes if change.revision <= goal], goal)

    async def _read(self, watcher: Watcher) -> _ChangeBatch:
        """Return the next changes from the log."""
        known = self._cacher.revision  # the log has at least this revision
        resource, cursor = watcher.selection.kind.storage, watcher.cursor
        try:
            history = await self._workers.run(partial(read_history, self._log, resource, cursor, _BATCH))
        except CtrlmgrError as error:
            raise status_responses.api_error(error) from error
        last = history.changes[-1].revision if history.changes else cursor
        return _ChangeBatch(history.changes, max(last, known) if history.whole else last)

    async def _show(self, watcher: Watcher, events: Iterable[tuple[str, Object]]) -> None:
        """Write events to the client, as fast as the client reads."""
        frames: list[bytes] = []
        size = 0
        for event in events:
            frame = watcher.presentation.frame(*event)
            watcher.presentation = watcher.presentation.following
            frames.append(frame)
            size += len(frame)
            if size >= _PIECE:
                await _write(watcher, frames)
                frames, size = [], 0
        if frames:
            await _write(watcher, frames)


class _ChangeBatch(NamedTuple):
    """A batch of changes; a watcher that has received the batch is at the revision `reached`."""

    changes: Sequence[Change]
    reached: Revision


async def _write(watcher: Watcher, frames: Sequence[bytes]) -> None:
    watcher.stream.write(chunk(b"".join(frames)))
    watcher.metrics.events.inc(len(frames))
    await asyncio.sleep(0)  # let other tasks run during a long list of events
    await watcher.stream.drain(READ_PATIENCE)


def _error_frame(error: ApiError) -> bytes:
    return encoding.frame("ERROR", status_responses.encode(status_responses.failure(error)).rstrip(b"\n"))

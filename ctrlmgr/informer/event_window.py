"""The event window: the newest events of the log, which all readers of this process share.

Guarantees:
- **Complete.** A reader at revision r receives exactly the events after r, in order, or the error `Expired`. If the
  window contains the requested events, the read copies a part of a list. If the window lacks some of the requested
  events, the read loads these events from the log.
- **Bounded.** At least the newest `capacity` events are held; the number of held events exceeds `capacity` by at most a
  quarter. The window has no queues for readers, so a slow reader needs no memory and delays no other reader.
- **Never blocks writers.** `publish` takes one lock for a short time, and never calls the log.

The window has a gap after another process has committed events. The log calls `publish` on its committing thread, and
only with the commits of this process. After a commit of another process, the next batch therefore does not follow the
head. `publish` must not read the missing events from the log, because the read would delay all appenders, and would
deadlock if the log holds a lock. Therefore `publish` drops the batch, records only its last revision, and returns.

The follower (`run`) waits until the log has events beyond the window's head, and adds these events to the window, which
closes the gap. Without a follower (replay, tests, tools), the next reader closes the gap on its own thread. While a
follower runs, readers never read the log, so that each row is read only once, and event loops never wait for the
database. The follower and readers read the log without holding the lock. Events that are read twice are dropped,
because only events beyond the head are added.

In an imported log, some revisions can be missing, and only the log knows which ones. Therefore `publish` drops a batch
with a gap before its first event or within the batch. If events that were read from the log have a gap, the window
checks that an import caused the gap (`EventLog.imports`).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Protocol

import structlog

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import Expired, LogCorrupt, LogUnavailable
from ctrlmgr.eventlog.event import Event
from ctrlmgr.eventlog.imports import covered
from ctrlmgr.eventlog.log import EventLog

log = structlog.get_logger(__name__)

_BATCH = 500
"""The number of events that are read from the log at a time while the window catches up."""

_LOOK_UP = 0.5
"""The time in seconds after which the waiting follower checks the stop event again."""

_revision = attrgetter("revision")

_RETRY = 1.0
"""Seconds between attempts to read the log while it is unavailable."""


class Feed(Protocol):
    """The read side of a bounded history: each reader has its own cursor."""

    def head(self) -> Revision:
        """Return the newest revision that can be read."""

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, in ascending order and without gaps.

        Raises `Expired` if some of these events no longer exist.
        """

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event] | None:
        """Return the same events as `events_after`, but do not read the log if a follower runs.

        Return None if some of these events would have to be read from the log.
        """

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Wait until the head is beyond `after` or `timeout` seconds have passed; return the head."""

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Call `wake` with the head after every batch of events.

        The callback `wake` is called on the thread that added the events, possibly the log's committing thread.
        Therefore `wake` must return at once, and neither raise nor read events. Two threads may call `wake` at the same
        time, so `wake` can receive an older head after a newer head. Therefore `wake` should only cause its reader to
        check for new events.
        """


class EventWindow:
    """A `Feed` of a log's events, and a Runnable that follows the appends of other processes."""

    name = "event window"

    def __init__(self, log: EventLog, *, capacity: int = 10_000, clock: Clock) -> None:
        """Start at the log's head with an empty window for `capacity` events, and observe the log's commits."""
        self._log = log
        self._clock = clock
        self._capacity = capacity
        self._trim_at = capacity + capacity // 4 + 1
        # Never held while the log is called, because the log may hold its own lock while it calls `publish`.
        self._changed = threading.Condition(threading.Lock())
        # `_events` has all events after `_start` up to `_end`. Revisions rarely have gaps, so usually
        # `_events[i].revision == _start + 1 + i`, and the index of a revision is computed by a subtraction.
        self._start: Revision = log.head().revision
        self._end: Revision = self._start
        self._events: list[Event] = []
        # The newest revision that is known to be in the log; if this revision is beyond the window's head, the window
        # has a gap.
        self._known: Revision = self._start
        # A change replaces this collection by a new one, so that a thread can iterate over the collection without the
        # lock.
        self._wakers: tuple[Callable[[Revision], None], ...] = ()
        # Whether `run` closes gaps; if `run` does not, readers close gaps.
        self._followed = False
        log.observe(self.publish)
        self.catch_up()  # These events were committed after the head was read and before the observer was registered.

    def head(self) -> Revision:
        """Return the newest revision in the window; for an empty window, return its start."""
        with self._changed:
            return self._head()

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, in ascending order; at or beyond the head, return no events.

        Raises `Expired` if neither the window nor the log has some of these events.
        """
        held = self.held_after(revision, limit=limit)
        return self._log.events_after(revision, limit=limit) if held is None else held

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event] | None:
        """Return up to `limit` events after `revision` from the window.

        Return None if the window no longer contains some of these events.
        """
        self._close_our_gap()
        with self._changed:
            if revision < self._start:
                return None
            at = self._place(revision)
            return self._events[at : at + limit]

    def _place(self, revision: Revision) -> int:
        """Return the number of events in the window up to `revision`.

        The start of the window must not be after `revision`.

        The caller must hold the lock.
        """
        if self._end - self._start == len(self._events):
            return revision - self._start
        return bisect_right(self._events, revision, key=_revision)

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Wait until the head is beyond `after` or `timeout` seconds have passed; return the head."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        in_time = True
        while True:
            self._close_our_gap()
            with self._changed:
                if self._head() > after or not in_time:
                    return self._head()
                if self._gap_is_ours():
                    continue  # The gap arose after the check.
                left = None if deadline is None else deadline - self._clock.monotonic()
                in_time = (left is None or left > 0) and self._clock.wait(self._changed, left)

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Call `wake` once after every batch with new events, without holding the lock, as `Feed` requires."""
        with self._changed:
            self._wakers = (*self._wakers, wake)

    def publish(self, events: Sequence[Event]) -> None:
        """Add the events in `events` (ascending) that are not in the window; any threads may call it concurrently.

        Events that are in the window already are dropped. If a batch has a gap within it, or does not follow the head,
        the batch is dropped, and only its last revision is recorded. The module's docstring explains the reason.
        """
        if not events:
            return
        first, last = events[0].revision, events[-1].revision
        has_gap = last - first + 1 != len(events)
        with self._changed:
            if last <= self._end:
                return
            self._known = max(self._known, last)
            follows = not has_gap and first <= self._end + 1
            if follows:
                self._take(events[self._end + 1 - first :])
            self._changed.notify_all()
        if follows:
            self._wake(last)

    def catch_up(self) -> Revision:
        """Read all events after the head from the log, and return the new head.

        If the log has compacted the next event, the window starts at the log's head; the log raises `Expired` for older
        readers. The method is never called on the committing thread. Raises `LogCorrupt` if the log has a gap that an
        import did not cause.
        """
        while True:
            after = self.head()
            try:
                events = self._log.events_after(after, limit=_BATCH)
            except Expired:
                self._start_at(self._log.head().revision)
                continue
            self._follow_on(after, events)
            if len(events) < _BATCH:
                return self.head()

    def _follow_on(self, after: Revision, events: Sequence[Event]) -> None:
        """Add events to the window that were read from the log after the revision `after`.

        Events that the window contains already are dropped.
        """
        if not events:
            return
        if events[-1].revision - after != len(events):
            self._require_imported(after, events)
        last = events[-1].revision
        with self._changed:
            if last <= self._end:
                return
            self._known = max(self._known, last)
            self._take(events[bisect_right(events, self._end, key=_revision) :])
            self._changed.notify_all()
        self._wake(last)

    def _require_imported(self, after: Revision, events: Sequence[Event]) -> None:
        imports = self._log.imports()
        for before, revision in pairwise([after, *map(_revision, events)]):
            if revision != before + 1 and not covered(imports, before, revision):
                raise LogCorrupt(f"revision {revision} follows {before}", revision=before + 1)

    def run(self, stop: threading.Event) -> None:
        """Follow the appends of other processes until `stop` is set.

        While the log is unavailable, try again every second.
        """
        self._followed = True
        try:
            while not stop.is_set():
                self._follow()
        finally:
            self._followed = False
            with self._changed:
                self._changed.notify_all()  # If a gap remains, readers close it.

    def _follow(self) -> None:
        try:
            if self._log.wait(self.head(), _LOOK_UP) > self.head():
                self.catch_up()
        except LogUnavailable as error:
            log.warning("event log unreachable, retrying", error=str(error), retry_in=_RETRY)
            with self._changed:
                self._clock.wait(self._changed, _RETRY)

    def _head(self) -> Revision:
        """Return the head of the window; the caller must hold the lock."""
        return self._end

    def _gap_is_ours(self) -> bool:
        """Return whether there is a gap that readers must close; the caller must hold the lock."""
        return self._known > self._head() and not self._followed

    def _close_our_gap(self) -> None:
        with self._changed:
            ours = self._gap_is_ours()
        if ours:
            self.catch_up()

    def _take(self, events: Sequence[Event]) -> None:
        """Append events that follow the head; the caller must hold the lock."""
        self._events.extend(events)
        self._end = events[-1].revision
        if len(self._events) >= self._trim_at:
            surplus = len(self._events) - self._capacity
            self._start = self._events[surplus - 1].revision
            del self._events[:surplus]

    def _start_at(self, revision: Revision) -> None:
        """Replace the window by an empty window at `revision`, unless the head has reached `revision` already."""
        with self._changed:
            if revision <= self._head():
                return
            self._start, self._end, self._events = revision, revision, []
            self._known = max(self._known, revision)
            self._changed.notify_all()
        self._wake(revision)

    def _wake(self, head: Revision) -> None:
        for wake in self._wakers:
            wake(head)

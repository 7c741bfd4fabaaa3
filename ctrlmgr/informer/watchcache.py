"""The watch cache: the one bounded history that every reader of this process shares.

Guarantees:
- **Complete.** A reader at revision r is given exactly the events after r, in order, or `Expired`. Inside the
  window that costs a slice; a reader older than the window is served by the log itself, so no reader loses
  history because the window moved on.
- **Bounded.** At least the newest `capacity` events are held, at most a quarter more. There is no queue per
  reader: a slow reader costs nothing and slows no other.
- **Never in the writers' way.** `publish` takes one short lock and never calls into the log.

Why a gap is closed elsewhere than in `publish`. The log calls `publish` on its committing thread with this
process's own commits only. When another process has committed in between, such a batch starts beyond the
head. Reading the missing events there and then would do database work on the thread that every appender
waits for, and would deadlock on a log whose observers run under its lock. So `publish` only notes how far the
log is known to reach, drops the batch (the log has it) and returns. The follower closes the gap: it waits for
the log to pass *our* head, which a gap makes true at once, and reads from there. Where no follower runs
(replay, tests, tools) the next reader closes it, on its own thread, before it is answered; while one runs,
readers leave it alone, so that a hundred of them do not read the same rows and an event loop never touches
the database for it. Both read the log without holding the lock. What two of them read twice is dropped the
second time, because of a batch only what is beyond the head is ever taken.

Where the log was imported, revisions have gaps that are right. Whether one is, only the log can say: so `publish` takes
no batch with a gap before it or in it, and what is read from the log is asked about (`EventLog.imports`).
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
"""Events read from the log at a time while catching up."""

_LOOK_UP = 0.5
"""Seconds after which the follower looks whether it should stop."""

_revision = attrgetter("revision")

_RETRY = 1.0
"""Seconds between attempts while the log cannot be reached."""


class Feed(Protocol):
    """One bounded history, as its readers see it: each is a cursor of its own over it."""

    def head(self) -> Revision:
        """Return the newest revision that can be read."""

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, ascending and without holes; `Expired` if some are gone."""

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event] | None:
        """Return the same without asking the log, where it is followed; None if only the log has them."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is beyond `after` or `timeout` seconds have passed; return the head."""

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Have `wake` called with the head after every batch of events.

        It runs on whichever thread brought the events, possibly the log's committing one: it must return
        at once, not raise and not read. Two threads may call it at a time, so heads can arrive out of
        order; it means "look again", and looking finds everything.
        """


class WatchCache:
    """A `Feed` over a log; a Runnable that follows what other processes append. See the module's docstring."""

    name = "watch cache"

    def __init__(self, log: EventLog, *, capacity: int = 10_000, clock: Clock) -> None:
        """Start at the log's head with an empty window of `capacity` events, and observe the log's commits."""
        self._log = log
        self._clock = clock
        self._capacity = capacity
        self._trim_at = capacity + capacity // 4 + 1
        # The lock is never held while the log is called: the log may hold its own while it calls `publish`.
        self._changed = threading.Condition(threading.Lock())
        # Everything after `_start` up to `_end` is in `_events`. Nearly always revisions have no gaps, so
        # `_events[i].revision == _start + 1 + i`: finding a place is a subtraction.
        self._start: Revision = log.head().revision
        self._end: Revision = self._start
        self._events: list[Event] = []
        # The newest revision known to be in the log; beyond our head, there is a gap to close.
        self._known: Revision = self._start
        # Replaced, never changed, so that it can be walked without the lock.
        self._wakers: tuple[Callable[[Revision], None], ...] = ()
        # Whether `run` closes gaps; otherwise readers do.
        self._followed = False
        log.observe(self.publish)
        self.catch_up()  # what was committed between reading the head and observing

    def head(self) -> Revision:
        """Return the newest revision in the window (or where the empty window starts)."""
        with self._changed:
            return self._head()

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, ascending; empty at or beyond the head.

        Raises `Expired` when the window and the log have both forgotten some of them.
        """
        held = self.held_after(revision, limit=limit)
        return self._log.events_after(revision, limit=limit) if held is None else held

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event] | None:
        """Return what the window has of up to `limit` events after `revision`; None if some are older than it."""
        self._close_our_gap()
        with self._changed:
            if revision < self._start:
                return None
            at = self._place(revision)
            return self._events[at : at + limit]

    def _place(self, revision: Revision) -> int:
        """Return how many events of the window are up to `revision`, which is not before it; the lock is held."""
        if self._end - self._start == len(self._events):
            return revision - self._start
        return bisect_right(self._events, revision, key=_revision)

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is beyond `after` or `timeout` seconds have passed; return the head."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        in_time = True
        while True:
            self._close_our_gap()
            with self._changed:
                if self._head() > after or not in_time:
                    return self._head()
                if self._gap_is_ours():
                    continue  # it came since we looked
                left = None if deadline is None else deadline - self._clock.monotonic()
                in_time = (left is None or left > 0) and self._clock.wait(self._changed, left)

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Have `wake` called once after every batch that brings something new, outside the lock; see `Feed`."""
        with self._changed:
            self._wakers = (*self._wakers, wake)

    def publish(self, events: Sequence[Event]) -> None:
        """Take what is new of `events` (ascending); safe from any threads at the same time.

        What the window has is dropped; a batch that starts beyond the next revision, or has a gap, is only noted, for
        whom see the module's docstring.
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
        """Read the log from the head on until it has no more, and return the head then.

        When the log has compacted what comes next, the window starts anew at the log's head; readers from
        before that are told `Expired` by the log. Never called on the committing thread. Raises `LogCorrupt` when the
        log has a hole that is not one it was imported with.
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
        """Take what is new of what the log has after a revision that we have."""
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
        """Follow what other processes append until `stop`; an unreachable log is tried again every second."""
        self._followed = True
        try:
            while not stop.is_set():
                self._follow()
        finally:
            self._followed = False
            with self._changed:
                self._changed.notify_all()  # a gap that is still open is the readers' business again

    def _follow(self) -> None:
        try:
            if self._log.wait(self.head(), _LOOK_UP) > self.head():
                self.catch_up()
        except LogUnavailable as error:
            log.warning("log unreachable, following later", error=str(error), retry_in=_RETRY)
            with self._changed:
                self._clock.wait(self._changed, _RETRY)

    def _head(self) -> Revision:
        """Return the head; the lock is held."""
        return self._end

    def _gap_is_ours(self) -> bool:
        """Whether there is a gap that readers have to close; the lock is held."""
        return self._known > self._head() and not self._followed

    def _close_our_gap(self) -> None:
        with self._changed:
            ours = self._gap_is_ours()
        if ours:
            self.catch_up()

    def _take(self, events: Sequence[Event]) -> None:
        """Append what follows the head; the lock is held."""
        self._events.extend(events)
        self._end = events[-1].revision
        if len(self._events) >= self._trim_at:
            surplus = len(self._events) - self._capacity
            self._start = self._events[surplus - 1].revision
            del self._events[:surplus]

    def _start_at(self, revision: Revision) -> None:
        """Forget the window and start at `revision`, unless it has got there meanwhile."""
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

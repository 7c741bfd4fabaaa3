"""The watch cache: the one bounded history that every reader of this process shares.

Guarantees:
- **Complete.** A reader at revision r is given exactly the events after r, in order, or `Expired`. Inside the
  window that costs a slice; a reader older than the window is served by the log itself, so nobody loses
  history because the window moved on.
- **Bounded.** At least the newest `capacity` events are held, at most a quarter more. There is no queue per
  reader: a slow reader costs nothing and slows nobody.
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
second time, because a batch is only ever taken from head + 1 on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import Expired, LogCorrupt, LogUnavailable
from ctrlmgr.eventlog.event import Event
from ctrlmgr.eventlog.log import EventLog

log = structlog.get_logger(__name__)

_BATCH = 500
"""Events read from the log at a time while catching up."""

_LOOK_UP = 0.5
"""Seconds after which the follower looks whether it should stop."""

_RETRY = 1.0
"""Seconds between attempts while the log cannot be reached."""


class Feed(Protocol):
    """One bounded history, as its readers see it: each is a cursor of its own over it."""

    def head(self) -> Revision:
        """Return the newest revision that can be read."""

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, ascending and without holes; `Expired` if some are gone."""

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
        # Revisions have no gaps, so `_events[i].revision == _start + 1 + i`: finding a place is a subtraction.
        self._start: Revision = log.head().revision
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
        self._close_our_gap()
        with self._changed:
            at = revision - self._start
            if at >= 0:
                return self._events[at : at + limit]
        return self._log.events_after(revision, limit=limit)

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
        """Take what is new of `events` (ascending, without holes); safe from any threads at the same time.

        What the window has is dropped; a batch that starts beyond the next revision is only noted, for whom
        see the module's docstring. Raises `LogCorrupt` when the batch itself has a hole.
        """
        if not events:
            return
        first, last = events[0].revision, events[-1].revision
        if last - first + 1 != len(events):
            raise LogCorrupt(f"revisions {first} to {last} came as {len(events)} events", revision=first)
        with self._changed:
            if last <= self._head():
                return
            self._known = max(self._known, last)
            reached = self._take(events)
            self._changed.notify_all()
        if reached is not None:
            self._wake(reached)

    def catch_up(self) -> Revision:
        """Read the log from the head on until it has no more, and return the head then.

        When the log has compacted what comes next, the window starts anew at the log's head; readers from
        before that are told `Expired` by the log. Never called on the committing thread.
        """
        while True:
            try:
                events = self._log.events_after(self.head(), limit=_BATCH)
            except Expired:
                self._start_at(self._log.head().revision)
                continue
            self.publish(events)
            if len(events) < _BATCH:
                return self.head()

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
        return self._start + len(self._events)

    def _gap_is_ours(self) -> bool:
        """Whether there is a gap that readers have to close; the lock is held."""
        return self._known > self._head() and not self._followed

    def _close_our_gap(self) -> None:
        with self._changed:
            ours = self._gap_is_ours()
        if ours:
            self.catch_up()

    def _take(self, events: Sequence[Event]) -> Revision | None:
        """Append what follows the head and return the new head, None across a gap; the lock is held."""
        skip = self._head() + 1 - events[0].revision
        if skip < 0:
            return None
        self._events.extend(events[skip:])
        if len(self._events) >= self._trim_at:
            surplus = len(self._events) - self._capacity
            del self._events[:surplus]
            self._start += surplus
        return self._head()

    def _start_at(self, revision: Revision) -> None:
        """Forget the window and start at `revision`, unless it has got there meanwhile."""
        with self._changed:
            if revision <= self._head():
                return
            self._start, self._events = revision, []
            self._known = max(self._known, revision)
            self._changed.notify_all()
        self._wake(revision)

    def _wake(self, head: Revision) -> None:
        for wake in self._wakers:
            wake(head)

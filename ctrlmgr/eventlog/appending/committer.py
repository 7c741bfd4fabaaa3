"""Group commit: many appends wait, one thread commits them together.

One at a time works on the database: the committer's thread, or a caller that finds the committer idle.

Guarantees:
- Whatever waits when the thread comes round is one group. A lone append never waits for company; after a group of
  several requests, the thread lets those it has just released come back before it sets off again, as long as they keep
  coming, and go with those who came meanwhile: half as many, twice as large groups cost half as many syncs to disk.
  Nothing waits for reconciles, which take longer over what they write next.
- An append ends only after its group is durable, and in group order: observers first, then the appenders.
- A refused append disturbs no other in its group.
- Outcomes of reconciles go with the next append, or by themselves if none comes for `_LINGER` seconds.
- A failing database is tried again, with backoff, for `patience` seconds; an append whose first try may have been
  committed is never written twice (it is looked up by its id).
- The line is bounded: beyond `MAX_WAITING` appends the next one is refused with `TooManyRequests`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

import structlog

from ctrlmgr import threads
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock, pause
from ctrlmgr.errors import CtrlmgrError, LogClosed, LogError, LogUnavailable, OutcomeUnknown, TooManyRequests
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Event, Failure, Outcome

log = structlog.get_logger(__name__)

MAX_WAITING = 10_000
GROUP_EVENTS = 512
GROUP_BYTES = 4 * 1024 * 1024
_FIRST_DELAY = 0.01
_LONGEST_DELAY = 1.0
_IDLE = 1.0
_LINGER = 0.05
"""Seconds that outcomes wait for an append: a sync to disk of their own would be half of those a controller causes."""
_CROWD = 4
_GATHER = 0.001
"""Seconds without a newcomer after which a group sets off that is smaller than the one before.

A server decides on its clients' writes one after the other, and takes up to half a millisecond for each: with less than
twice that, most groups would be the few that were early.
"""

_RETURN = 0.005
"""Seconds that the first of them may take: a server answers all of a group before it reads what they send next."""

Finished = tuple[int, Outcome] | Failure
"""What reconciles leave behind besides their appends: the outcome of one that appended something, or a failure."""
Answer = list[Event] | CtrlmgrError


class GroupWriter(Protocol):
    """What a database must do for the committer."""

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: Revision | None
    ) -> list[Answer]:
        """Commit a group in one transaction and answer each append, in order, with its events or its refusal.

        `since` is None on a first try. After a try whose outcome is unknown it is a revision from before that
        try: an append whose id stands in an event after it is already in, and is answered with those events.
        Raises `LogUnavailable` (nothing was written) or `OutcomeUnknown`; any other `LogError` is final.
        """

    def idle(self) -> None:
        """Use a quiet moment for housekeeping."""


class Committer:
    """The line of waiting appends, and the thread that commits them."""

    def __init__(self, writer: GroupWriter, *, clock: Clock, head: Revision, patience: float) -> None:
        """Start the thread; `head` is the log's revision now, `patience` in seconds."""
        self._writer = writer
        self._clock = clock
        self._patience = patience
        self._head = head  # the newest revision known; belongs to the worker
        # How many appends are to be in the next group, if all requests come back that the last one was of. Written by
        # whoever is at work, and by the thread while nobody is.
        self._crowd = 0
        self._observers: list[Callable[[Sequence[Event]], None]] = []
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        # Everything below is guarded by _lock.
        self._waiting: deque[PendingAppend] = deque()
        self._requests = 0  # how many of those no reconcile makes
        self._outcomes: list[Finished] = []
        self._working = False  # a thread, one at a time, commits a group
        self._queued = 0  # appends and outcomes ever taken in
        self._ended = 0  # how many of them have ended; never more than _queued
        self._wake_at = 0  # the length of the line at which the thread wants to be woken; 0: it is awake
        self._wants_outcomes = False  # whether it wants to be woken for those as well
        self._flushing = 0  # how many wait for _ended to grow
        self._tidied = -1  # _ended when the writer last had its idle moment
        self._closing = False
        self._thread = threads.start("committer", self._run)

    def commit(self, pending: PendingAppend) -> None:
        """Commit an append right here if no thread is at work, else queue it; raises as `submit` does.

        A lone caller is spared two switches between threads. In a crowd, which the last groups tell, the first one
        back would only keep the others waiting for a group of its own.
        """
        with self._lock:
            in_company = self._working or self._waiting or self._crowd >= _CROWD
            if in_company or self._closing:
                self._enqueue(pending)
                return
            self._queued += 1
            self._working = True
            outcomes, self._outcomes = self._outcomes, []
        self._work([pending], outcomes)

    def submit(self, pending: PendingAppend) -> None:
        """Queue an append; raises `TooManyRequests` or `LogClosed`."""
        with self._lock:
            self._enqueue(pending)

    def alone(self, write: Callable[[], list[Event]]) -> list[Event]:
        """Have `write` commit something of its own on this thread, between two groups, and publish what it returns.

        It is tried once; raises what it raises, or `LogClosed`.
        """
        with self._lock:
            self._queued += 1
            self._flushing += 1  # so that the thread at work says when it is done
            while self._working and not self._closing:
                self._condition.wait()
            self._flushing -= 1
            if self._closing:
                self._ended += 1
                raise LogClosed
            self._working = True
        try:
            events = write()
            self._publish(events)
            return events
        finally:
            with self._lock:
                self._working = False
                self._ended += 1
                self._condition.notify_all()

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Queue the outcome of a reconcile; raises `LogClosed`."""
        self._queue((reconcile, outcome))

    def record_failure(self, failure: Failure) -> None:
        """Queue a failure; raises `LogClosed`."""
        self._queue(failure)

    def _queue(self, finished: Finished) -> None:
        with self._lock:
            if self._closing:
                raise LogClosed
            self._outcomes.append(finished)
            self._queued += 1
            if self._wants_outcomes:
                self._condition.notify_all()

    def _enqueue(self, pending: PendingAppend) -> None:
        if self._closing:
            raise LogClosed
        if len(self._waiting) >= MAX_WAITING:
            raise TooManyRequests
        self._waiting.append(pending)
        self._requests += pending.cause is None
        self._queued += 1
        if self._wake_at:
            self._wake()

    def _wake(self) -> None:
        """Wake the thread, which sleeps, if the line is as long as it wants it to be."""
        if not self._working and len(self._waiting) >= self._wake_at:
            self._condition.notify_all()

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Have `observer` called with the events of each group."""
        self._observers.append(observer)

    def flush(self) -> None:
        """Wait until everything queued before this call has ended."""
        with self._lock:
            target = self._queued
            self._flushing += 1
            if self._outcomes:
                self._condition.notify_all()
            while self._ended < target:
                self._condition.wait()
            self._flushing -= 1

    def close(self) -> None:
        """Commit what waits, then end the thread."""
        with self._lock:
            self._closing = True
            self._condition.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while work := self._next():
            self._work(*work)

    def _next(self) -> tuple[list[PendingAppend], list[Finished]] | None:
        with self._lock:
            self._gather()
            while self._working or not (self._waiting or self._linger()):
                if self._closing and not self._working:
                    return None
                self._sleep()
            self._working = True
            outcomes, self._outcomes = self._outcomes, []
            return self._take(), outcomes

    def _gather(self) -> None:
        """Wait, with _lock held, while the appenders of the last groups are still coming back."""
        if self._crowd < _CROWD:
            return
        if not (self._waiting or self._closing):
            self._wake_at = 1
            self._condition.wait(_RETURN)
        seen = 0
        self._wake_at = self._crowd
        while seen < len(self._waiting) < self._crowd and not self._closing:
            seen = len(self._waiting)
            self._condition.wait(_GATHER)
        self._wake_at = 0
        if not self._waiting:
            self._crowd = 0  # they have left

    def _linger(self) -> bool:
        """Wait, with _lock held, for an append that outcomes can go with; return whether there are any to be taken."""
        waited = False
        while self._outcomes and not (waited or self._working or self._waiting or self._flushing or self._closing):
            self._wake_at = 1
            waited = not self._condition.wait(_LINGER)
            self._wake_at = 0
        return bool(self._outcomes) and not self._working

    def _sleep(self) -> None:
        """Wait for work, with _lock held, for a second at most; after a quiet one the writer has its idle moment."""
        ended = self._ended
        self._wake_at, self._wants_outcomes = 1, True
        is_quiet = not self._condition.wait(_IDLE) and not self._working and ended == self._ended
        self._wake_at, self._wants_outcomes = 0, False
        if is_quiet and self._tidied != ended:
            self._tidied = ended
            self._tidy()

    def _tidy(self) -> None:
        """Let the writer keep house, with _lock held before and after but not meanwhile."""
        self._working = True
        self._lock.release()
        try:
            self._writer.idle()
        except Exception as error:  # whatever it was: all appends wait for the thread that this would end
            log.warning("housekeeping put off", error=str(error) or type(error).__name__)
        finally:
            self._lock.acquire()
            self._working = False
            if self._flushing:
                self._condition.notify_all()

    def _work(self, group: list[PendingAppend], outcomes: list[Finished]) -> None:
        try:
            self._commit_and_end(group, outcomes)
        finally:
            with self._lock:
                self._working = False
                self._ended += len(group) + len(outcomes)
                # A thread that sleeps over an empty line is left alone, or each lone append would wake it.
                if self._waiting or self._outcomes or self._flushing or self._closing:
                    self._condition.notify_all()

    def _take(self) -> list[PendingAppend]:
        group: list[PendingAppend] = []
        events = size = 0
        while self._waiting and (not group or (events < GROUP_EVENTS and size < GROUP_BYTES)):
            pending = self._waiting.popleft()
            group.append(pending)
            self._requests -= pending.cause is None
            events += len(pending.proposals)
            size += pending.size
        return group

    def _commit_and_end(self, group: list[PendingAppend], outcomes: list[Finished]) -> None:
        try:
            answers = self._commit(group, outcomes)
        except Exception as error:
            if not isinstance(error, LogError):
                log.exception("commit failed", appends=len(group))
            for pending in group:
                pending.fail(error)
            return
        self._publish(list(chain.from_iterable(answer for answer in answers if type(answer) is list)))
        # Before any of them can be back, and counted twice.
        self._crowd = sum(pending.cause is None for pending in group) + self._requests
        for pending, answer in zip(group, answers, strict=True):
            if isinstance(answer, list):
                pending.succeed(answer)
            else:
                pending.fail(answer)

    def _publish(self, events: list[Event]) -> None:
        if not events:
            return
        self._head = max(self._head, events[-1].revision)
        for observer in self._observers:
            try:
                observer(events)
            except Exception:  # an observer's bug must not turn a durable append into a failed one
                log.exception("observer failed", revision=events[-1].revision)

    def _commit(self, group: list[PendingAppend], outcomes: list[Finished]) -> list[Answer]:
        """Commit, trying again while the database is away; raises once patience runs out."""
        deadline = self._clock.monotonic() + self._patience
        delay, since = _FIRST_DELAY, None
        failure: LogError
        while True:
            try:
                return self._writer.commit(group, outcomes, since=since)
            except OutcomeUnknown as error:
                since = self._head
                failure = error
            except LogUnavailable as error:
                failure = error if since is None else OutcomeUnknown(str(error))
            if self._clock.monotonic() + delay > deadline:
                raise failure
            log.warning("commit retried", error=str(failure), unknown=since is not None, delay=delay)
            pause(self._clock, delay)
            delay = min(delay * 2, _LONGEST_DELAY)

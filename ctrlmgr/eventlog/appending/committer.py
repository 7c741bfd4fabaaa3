"""Group commit: many appends wait in a queue, and one thread commits them together.

Only one thread writes to the database at a time: the committer's thread, or a caller that finds the committer idle.
Guarantees:
- All appends that are in the queue form one group. A single queued append is committed immediately. After a
  group of several clients' requests, the thread waits briefly for the next requests of the same clients, because larger
  groups need fewer disk syncs. Appends with a cause do not count as requests, because a controller sends its next
  append much later.
- An append ends only after its group is durable. The committer first notifies the observers of a group, then its
  appenders, and only then starts the next group.
- A refused append does not affect other appends of its group.
- Outcomes of reconciles are written together with the next append. If no append arrives within `_LINGER` seconds, the
  outcomes are written alone.
- A failing database is retried with backoff for `patience` seconds. If the first try of an append may have been
  committed, the committer looks up the append's id before a retry. Because of this check, no append is written twice.
- The queue is bounded: if it holds `MAX_WAITING` appends, further appends are refused with `TooManyRequests`.
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
"""The number of seconds for which outcomes wait for an append.

If outcomes were always written separately, a controller's writes would need twice as many disk syncs.
"""
_CROWD = 4
_GATHER = 0.001
"""The number of seconds without a new append after which the committer stops waiting for a group's clients.

A server handles its clients' writes one after the other, each in up to half a millisecond. If the committer waited for
a shorter time, most groups would lack some of the clients' appends.
"""

_RETURN = 0.005
"""The maximum number of seconds to wait for the first append, because a server answers a whole group before it reads
new requests.
"""

Finished = tuple[int, Outcome] | Failure
"""A record about a reconcile, which is written in addition to appends: an outcome or a failure."""
Answer = list[Event] | CtrlmgrError


class GroupWriter(Protocol):
    """The interface of the database operations that the committer needs."""

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: Revision | None
    ) -> list[Answer]:
        """Commit a group in one transaction; return the events or the refusal of each append, in the group's order.

        The argument `since` is None on the first try of a group. After a try with an unknown outcome, `since` is a
        revision before that try. If an event after `since` has the id of an append, this append is in the log already,
        and the method returns these events. Raises `LogUnavailable` if nothing was written, and `OutcomeUnknown` if the
        result is unknown; any other `LogError` is final.
        """

    def idle(self) -> None:
        """Do the housekeeping of the database while no append is waiting."""


class Committer:
    """The queue of waiting appends, and the thread that commits them."""

    def __init__(self, writer: GroupWriter, *, clock: Clock, head: Revision, patience: float) -> None:
        """Create the queue and start the thread; `head` is the log's current revision.

        A failing commit is retried for `patience` seconds.
        """
        self._writer = writer
        self._clock = clock
        self._patience = patience
        self._head = head  # the newest revision that is known; only the thread that commits uses this field
        # The size of the next group if each client of the last group sends another request. The thread that commits
        # writes this field. While no thread commits, only the committer's thread writes this attribute.
        self._crowd = 0
        self._observers: list[Callable[[Sequence[Event]], None]] = []
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        # The lock `_lock` guards all attributes that follow.
        self._waiting: deque[PendingAppend] = deque()
        self._requests = 0  # number of waiting appends without a cause
        self._outcomes: list[Finished] = []
        self._working = False  # whether a thread is committing a group
        self._queued = 0  # number of appends and outcomes accepted so far
        self._ended = 0  # how many of the accepted appends and outcomes have ended
        self._wake_at = 0  # queue length that wakes the sleeping thread; 0 if the thread is awake
        self._wants_outcomes = False  # whether outcomes also wake the sleeping thread
        self._flushing = 0  # number of threads that wait for _ended to grow
        self._tidied = -1  # value of _ended at the last housekeeping
        self._closing = False
        self._thread = threads.start("committer", self._run)

    def commit(self, pending: PendingAppend) -> None:
        """Commit an append on the calling thread if no other thread is committing; if one is, queue the append.

        The method raises the errors of `submit`. A commit on the calling thread saves two thread switches. If the last
        groups were large, the append is always queued, because a group of only one append would delay the other
        appends.
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
        """Queue an append; raises `TooManyRequests` if the queue is full, and `LogClosed` if the log is closed."""
        with self._lock:
            self._enqueue(pending)

    def alone(self, write: Callable[[], list[Event]]) -> list[Event]:
        """Run `write` on the calling thread, between two groups, and pass the events that it returns to the observers.

        The function `write` is called only once, without retries. Raises the errors of `write`, and `LogClosed` if the
        log is closed.
        """
        with self._lock:
            self._queued += 1
            self._flushing += 1  # so that the thread that commits notifies this one when it has finished
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
        """Queue the outcome of a reconcile; raises `LogClosed` if the log is closed."""
        self._queue((reconcile, outcome))

    def record_failure(self, failure: Failure) -> None:
        """Queue the record of a failure; raises `LogClosed` if the log is closed."""
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
        """Wake the committer's thread if the queue has reached the length for which the thread waits."""
        if not self._working and len(self._waiting) >= self._wake_at:
            self._condition.notify_all()

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call `observer` with the events of each group."""
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
        """Commit the queue, then stop the thread."""
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
        """While holding _lock, wait until as many appends wait as in the last group, or no more arrive."""
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
            self._crowd = 0  # the clients have stopped sending

    def _linger(self) -> bool:
        """While holding _lock, wait for an append, to write the outcomes in the same group.

        Return True if none has arrived, so that the outcomes must be written separately.
        """
        waited = False
        while self._outcomes and not (waited or self._working or self._waiting or self._flushing or self._closing):
            self._wake_at = 1
            waited = not self._condition.wait(_LINGER)
            self._wake_at = 0
        return bool(self._outcomes) and not self._working

    def _sleep(self) -> None:
        """While holding _lock, wait for work for up to a second.

        If no work has arrived, let the writer do its housekeeping once.
        """
        ended = self._ended
        self._wake_at, self._wants_outcomes = 1, True
        is_quiet = not self._condition.wait(_IDLE) and not self._working and ended == self._ended
        self._wake_at, self._wants_outcomes = 0, False
        if is_quiet and self._tidied != ended:
            self._tidied = ended
            self._tidy()

    def _tidy(self) -> None:
        """Let the writer do its housekeeping with _lock released; the caller holds _lock before and after the call."""
        self._working = True
        self._lock.release()
        try:
            self._writer.idle()
        except Exception as error:  # any error: without this thread, no append would end
            log.warning("log maintenance failed", error=str(error) or type(error).__name__)
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
                # Do not notify a thread that waits for several appends, because otherwise each single append would wake
                # it.
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
        # Update the counts before the appenders continue, because their next appends would otherwise be counted twice.
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
            except Exception:  # an observer's bug must not fail a durable append
                log.exception("append observer failed", revision=events[-1].revision)

    def _commit(self, group: list[PendingAppend], outcomes: list[Finished]) -> list[Answer]:
        """Commit a group; while the database is unavailable, retry for up to `patience` seconds, then raise."""
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
                failure.place = error.place
            if self._clock.monotonic() + delay > deadline:
                raise failure
            where = {"file": failure.place} if failure.place else {}
            log.warning("retrying commit", error=str(failure), unknown=since is not None, delay=delay, **where)
            pause(self._clock, delay)
            delay = min(delay * 2, _LONGEST_DELAY)

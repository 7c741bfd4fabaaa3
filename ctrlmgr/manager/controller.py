"""A controller has watches, which put keys on a queue, and workers, which reconcile the keys.

Guarantees:
- After every change that a watch maps to a key, the controller reconciles the key. The reconcile begins when the change
  is in the cache. The reconcile's `Cause` contains the revisions of all coalesced changes.
- Two workers never reconcile the same key at the same time.
- A failed reconcile does not affect other keys. The controller counts each failed reconcile, logs it once, and retries
  it with the same triggers. Retries are rate limited for each key and for all keys together. A reconcile that fails
  with `TerminalError` is not retried. The log records failing keys (`manager.failure_records`).
- If a reconcile asks for a requeue and has written nothing, the requeued reconcile receives the triggers of this
  reconcile.
- `process_next` and `run` raise errors after which the process must not continue (`_FATAL`).
- `run` returns only after all reconciles have ended.
- Between `stand_by` and `resume`, changes are dropped. After `resume`, all existing objects are queued as after a sync.

- A controller with `seen`, which returns the revision of its caches, reads its own writes. Such a controller reconciles
  a key again only when the caches contain the last write for the key. (Kubernetes uses expectations and its
  `ConsistencyStore` for the same purpose.) Without `seen`, a reconcile can read a cache that lacks the last write. A
  write then fails with `Conflict`, and the reconcile is retried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from random import Random
from typing import Any

import structlog
from structlog.contextvars import bind_contextvars, reset_contextvars

from ctrlmgr import threads
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.client import ReconcileClient
from ctrlmgr.clock import Clock
from ctrlmgr.errors import (
    ApiError,
    CtrlmgrError,
    Fenced,
    LogClosed,
    LogCorrupt,
    LogRolledBack,
    SchemaOutdated,
    ShutDown,
    TerminalError,
)
from ctrlmgr.eventlog import Cause, EventLog, EventType, Outcome
from ctrlmgr.informer import Change, Informer
from ctrlmgr.manager.change_priority import priority_of
from ctrlmgr.manager.failure_records import Failures, is_expected, summary
from ctrlmgr.manager.reconcile_metrics import reconciles
from ctrlmgr.manager.reconcile_result import C, Reconciler, Result, StartsWith, Stops
from ctrlmgr.manager.reconcile_spans import ReconcileSpans
from ctrlmgr.workqueue import LOW, URGENT, Delivery, RateLimiter, WorkQueue

log = structlog.get_logger(__name__)

_FATAL = (Fenced, LogClosed, LogCorrupt, LogRolledBack, SchemaOutdated)
"""Errors that must end the process or its term, because the leadership or the log is lost, or the log is corrupt."""

_DONE = Result()
_RACES = 4
"""The number of attempts from which on the controller logs a lost race."""
_namespace_of = attrgetter("namespace")

_BEHIND = 0.005
"""Seconds until the controller checks again whether the last write for a key is in the caches."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Maps changes of an informer's objects to keys, which are queued after `delay` seconds.

    If `after_sync` is set, a re-sync queues the keys of all objects, whether the objects changed or not. A controller
    that repairs its own objects needs `after_sync` for at least one watch. Without `after_sync`, a controller misses an
    object that was created and deleted between two syncs, because the re-sync finds no difference.

    Keys are queued with the priority that `priority_of` returns. If `is_urgent` returns True for a change, the keys of
    the change are also queued as urgent. For example, an endpoints controller marks the change of a pod that stops
    being ready.
    """

    informer: Informer
    to_keys: Callable[[Change], Iterable[Key]]
    delay: float = 0.0
    after_sync: bool = False
    is_urgent: Callable[[Change], bool] | None = None


def own_key(change: Change) -> Iterable[Key]:
    """Return the key of the changed object; most watches map changes in this way."""
    return (change.object.key,)


class Controller:
    """A `Runnable` that reconciles the keys of its watches.

    The instance must be created before the informers sync, so that its handlers receive all existing objects.
    """

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[C],
        *,
        watches: Sequence[Watch],
        client: C,
        log: EventLog,
        clock: Clock,
        random: Random,
        workers: int = 1,
        max_retries: int | None = None,
        seen: Callable[[], Revision] | None = None,
        limiter: RateLimiter[Key] | None = None,
        kind: str = "",
    ) -> None:
        """Create a controller; `random` generates the ids of reconciles.

        A key that has failed 1 + `max_retries` times is not retried before its next change. `seen` returns the revision
        of the caches that the reconciler reads. `limiter` determines the delay of a retry; the default is that of
        Kubernetes. `kind` is the kind of the keys, for log lines.
        """
        self.name = name
        self._labels = {"controller": name, **({"kind": kind} if kind else {})}
        self.queue: WorkQueue[Key] = WorkQueue(name, clock=clock, limiter=limiter, namespace_of=_namespace_of)
        self._reconciler: Reconciler[Any] = reconciler
        self._client: ReconcileClient = client
        self._log = log
        self._clock = clock
        self._random = random
        self._workers = workers
        self._max_retries = max_retries
        self._seen = seen
        # The revision that the caches must have before a key is reconciled again. If the value is None, the next check
        # replaces the value by the log's head. No lock is necessary, because only one worker uses a key at a time, and
        # the change of one entry of a dictionary is atomic.
        self._required_revisions: dict[Key, Revision | None] = {}
        # The triggers of deliveries that waited for the cache, by key; the next delivery of the key receives these
        # triggers. The triggers are not passed to the queue's delayed addition, because an earlier delivery of the key
        # would then lack the triggers.
        self._unanswered: dict[Key, tuple[Revision, ...]] = {}
        self._spans = ReconcileSpans(name, log)
        self._failures = Failures(name, kind, log, clock.now)
        self._counts = reconciles(name, workers=workers)
        self._watches: list[Watch] = []
        # After the constructor, this field is set and read only on the informers' thread.
        self._stands_by = False
        for watch in watches:
            self.watch(watch)

    @property
    def reconciler(self) -> Reconciler[Any]:
        """The reconciler to which the controller passes keys."""
        return self._reconciler

    def watch(self, watch: Watch) -> None:
        """Add a watch; the caller must do this before the watch's informer has synced."""
        self._watches.append(watch)
        watch.informer.add_handler(self._handler(watch), name=self.name)
        if watch.after_sync:
            watch.informer.add_sync_handler(self._sync_handler(watch), name=self.name)

    def work_from(self, queue: WorkQueue[Key]) -> None:
        """Take keys from `queue` instead of the controller's own queue.

        Call this before `start` and before any key is queued.
        """
        self.queue = queue

    def start(self) -> None:
        """Queue the reconciler's first keys (`StartsWith`), and the keys that failed when the controller last ran.

        The caches must have synced before this call.
        """
        if isinstance(self._reconciler, StartsWith):
            for key in self._reconciler.on_start():
                self.queue.add(key, priority=LOW)
        for key in self._failures.take_over():
            self.queue.add(key, priority=LOW)

    def stand_by(self) -> None:
        """Drop all changes from now on, because another process is the leader."""
        self._stands_by = True

    def resume(self) -> None:
        """Queue all existing objects; called on the informers' thread, while the controller does not run.

        A function `Watch.to_keys` may keep state without a lock, because the controller calls such functions only on
        the informers' thread.
        """
        self.queue.reopen()
        self._stands_by = False
        for watch in self._watches:
            handle = self._handler(watch)
            for obj in watch.informer.lister.list():
                handle(Change(EventType.ADDED, None, obj, obj.revision, is_listed=True))
                obj.forget_decoded()  # frees memory, as after a sync

    def run(self, stop: threading.Event) -> None:
        """Reconcile keys with all workers until `stop` is set, then let the workers finish.

        Raises the fatal errors of workers (`_FATAL`). Afterwards the queue is shut down until `resume` is called.
        """
        self.start()
        failures: list[BaseException] = []

        def work() -> None:
            try:
                while not stop.is_set() and self.process_next():
                    pass
            except BaseException as error:  # `run` raises it on the manager's thread
                failures.append(error)
                stop.set()

        workers = [threads.start(f"{self.name}-{number}", work) for number in range(self._workers)]
        stop.wait()
        self.queue.shut_down(drain=True)
        # A worker marks its key as done before it reports a fatal error, so an error can be reported after the queue is
        # drained.
        for worker in workers:
            worker.join()
        self.stop()
        if failures:
            raise failures[0]

    def stop(self) -> None:
        """Tell a reconciler that implements `Stops` to end the components that it keeps running.

        The manager calls this method when all workers have ended.
        """
        if isinstance(self._reconciler, Stops):
            self._reconciler.on_stop()

    def process_next(self, timeout: float | None = None) -> bool:
        """Reconcile the next key of the queue.

        Return False if no key arrived within `timeout` seconds, or if the queue is shut down. Raises only errors that
        must end the process or its leadership: `Fenced`, `LogClosed`, `LogCorrupt`, `LogRolledBack`, `SchemaOutdated`.
        """
        try:
            delivery = self.queue.get(timeout)
        except ShutDown:
            return False
        if delivery is None:
            return False
        self._counts.enter()
        key = str(delivery.item)
        bound = bind_contextvars(**self._labels, key=key, attempt=delivery.attempt)
        try:
            self._process(delivery, key)
        finally:
            reset_contextvars(**bound)
            self._counts.leave()
            self.queue.done(delivery.item)
        return True

    def _handler(self, watch: Watch) -> Callable[[Change], None]:
        # Local variables are used here for speed, because every change of a pod passes this code.
        to_keys, delay, is_urgent = watch.to_keys, watch.delay, watch.is_urgent

        def on_change(change: Change) -> None:
            if self._stands_by:
                return
            priority: int | None = None  # The priority is computed only if needed, because most changes map to no key.
            for key in to_keys(change):
                if priority is None:
                    priority = URGENT if is_urgent is not None and is_urgent(change) else priority_of(change)
                if delay > 0:
                    self.queue.add_after(key, delay, (change.revision,), priority=priority)
                else:
                    self.queue.add(key, (change.revision,), priority=priority)

        return on_change

    def _sync_handler(self, watch: Watch) -> Callable[[], None]:
        on_change = self._handler(watch)

        def on_sync() -> None:
            for obj in watch.informer.lister.list():
                on_change(Change(EventType.MODIFIED, obj, obj, obj.revision))
                obj.forget_decoded()  # This frees memory, as after a sync.

        return on_sync

    def _process(self, delivery: Delivery[Key], key: str) -> None:
        if self._seen is not None and not self._shows_own_writes(delivery.item, self._seen()):
            self._unanswered[delivery.item] = self._with_unanswered(delivery).triggers
            self.queue.add_after(delivery.item, _BEHIND, priority=delivery.priority)
            return
        delivery = self._with_unanswered(delivery)
        cause = self._cause(delivery, key)
        client = self._client.for_reconcile(cause)
        began = self._clock.monotonic()
        with self._spans.of(delivery):
            result, message = self._reconcile(delivery, client)
        duration = self._clock.monotonic() - began
        self._counts.ended(result, duration)
        if client.wrote:
            # The log stores no row for a reconcile without appends.
            if changed_by := client.changed_by:
                message = message or f"changed during admission by {', '.join(changed_by)}"
            self._log.finish(cause.id, Outcome(round(duration * 1_000_000), result, message))
            if self._seen is not None:
                # If the outcome of a write is unknown, the log's head is read at the next check.
                self._required_revisions[delivery.item] = None if result == "error" else self._newest()

    def _with_unanswered(self, delivery: Delivery[Key]) -> Delivery[Key]:
        """Return a delivery with the triggers of earlier deliveries that waited because the cache was outdated."""
        earlier = self._unanswered.pop(delivery.item, None)
        if not earlier:
            return delivery
        triggers = tuple(sorted({*earlier, *delivery.triggers}))
        return Delivery(delivery.item, triggers, delivery.attempt, delivery.priority)

    def _shows_own_writes(self, key: Key, seen: Revision) -> bool:
        if key not in self._required_revisions:
            return True
        wanted = self._required_revisions[key]
        if wanted is None:
            wanted = self._required_revisions[key] = self._newest()
        if seen < wanted:
            return False
        del self._required_revisions[key]
        return True

    def _newest(self) -> Revision:
        newest = self._log.peek()
        return self._log.head().revision if newest is None else newest

    def _cause(self, delivery: Delivery[Key], key: str) -> Cause:
        return Cause(
            id=self._random.getrandbits(63) or 1,
            controller=self.name,
            key=key,
            attempt=delivery.attempt,
            started_at=self._clock.now(),
            triggers=delivery.triggers,
        )

    def _reconcile(self, delivery: Delivery[Key], client: ReconcileClient) -> tuple[str, str]:
        """Reconcile a key, and requeue it if necessary; return the result and message of an `Outcome`.

        The method handles all errors of the reconciler, except those in `_FATAL`.
        """
        try:
            result = self._reconciler.reconcile(delivery.item, client) or _DONE
        except _FATAL:
            raise
        except TerminalError as error:
            self._give_up(delivery, error)
            return "terminal", str(error)
        except Exception as error:  # A reconciler may raise any exception.
            self._retry(delivery, error)
            by = error.refused_by if isinstance(error, ApiError) else ""
            return "error", f"{summary(error)} (admission plugin {by})" if by else summary(error)
        self._failures.succeeded(delivery.item)
        return self._succeed(delivery, result, unanswered=() if client.wrote else delivery.triggers), ""

    def _succeed(self, delivery: Delivery[Key], result: Result, unanswered: Sequence[Revision]) -> str:
        self.queue.forget(delivery.item)
        if result.requeue_after is None:
            log.debug("reconciled")
            return "ok"
        self._spans.requeued(delivery.item, result.requeue_after)
        self.queue.add_after(delivery.item, result.requeue_after, unanswered, priority=delivery.priority)
        log.debug("reconciled", requeue_after=result.requeue_after)
        return "requeued"

    def _give_up(self, delivery: Delivery[Key], error: TerminalError) -> None:
        self.queue.forget(delivery.item)
        self._failures.failed(delivery.item, error, None)
        log.error("reconcile failed, no retry", error=str(error))

    def _retry(self, delivery: Delivery[Key], error: Exception) -> None:
        """Log an error, and queue the key again unless the key has failed too often.

        Expected errors (`retryable`, `lost_race`) and refusals by the API are logged in one line. Other errors are
        logged with a traceback when the key first fails at this place in the code, and in one line at later failures at
        the same place.

        A key that is no longer retried is queued again by its next change (as in Kubernetes' endpoints controller,
        whose maxRetries is 15).
        """
        if not isinstance(error, CtrlmgrError):
            self._counts.panicked()
        drop = self._max_retries is not None and delivery.attempt > self._max_retries
        if is_expected(error) and not drop:
            log_event = log.debug if _is_usual(error, delivery.attempt) else log.info
            log_event("retrying reconcile", error=summary(error), attempt=delivery.attempt)
        elif is_expected(error):
            log.info("reconcile failed", error=summary(error), dropped=True)
        else:
            self._log_failure(delivery.item, error, dropped=drop)
        delay = None
        if drop:
            self.queue.forget(delivery.item)
        else:
            delay = self.queue.add_rate_limited(delivery.item, delivery.triggers, priority=delivery.priority)
        self._failures.failed(delivery.item, error, delay)

    def _log_failure(self, key: Key, error: Exception, *, dropped: bool) -> None:
        repeats = self._failures.repeats(key, error)
        if repeats:
            log.error("reconcile failed again", error=summary(error), same_error=repeats, dropped=dropped)
            return
        where = None if isinstance(error, ApiError) else error
        log.error("reconcile failed", error=summary(error), dropped=dropped, exc_info=where)


def _is_usual(error: Exception, attempt: int) -> bool:
    """Return whether an error is a lost race, whose retry will probably succeed."""
    return attempt < _RACES and isinstance(error, CtrlmgrError) and error.lost_race

"""A controller: watches put keys on a queue, workers take them, one switch decides whether they come again.

Guarantees:
- A change that a watch maps to a key is followed by a reconcile of that key that began after the change was in
  the cache; however many changes were coalesced, the reconcile's `Cause` names each one's revision.
- No key is reconciled by two workers at once.
- A reconcile that raises harms no other: it is counted, logged once, and tried again with the same triggers,
  rate limited by key and overall. `TerminalError` is not tried again. The log says which keys fail
  (`manager.failures`).
- A reconcile that asks to be run again later and has written nothing leaves its triggers to that later one.
- What says that this process must not go on (`_FATAL`) leaves `process_next` and ends `run`.
- `run` returns only when no worker is inside a reconcile.
- Between `stand_by` and `resume` nothing is kept of what the watches bring; after `resume` it is as if the informers
  had just synced.

- A controller that says what its caches have `seen` reads its own writes: a key is not reconciled again before they
  show what its last reconcile wrote. (Kubernetes' expectations, and its `ConsistencyStore`, are for this.) Without
  `seen` a cache may lag behind; acting on it then meets a `Conflict`, which is tried again.
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
from ctrlmgr.manager.counts import reconciles
from ctrlmgr.manager.failures import Failures, is_expected, summary
from ctrlmgr.manager.priority import priority_of
from ctrlmgr.manager.reconcile import C, Reconciler, Result, StartsWith
from ctrlmgr.workqueue import LOW, URGENT, Delivery, RateLimiter, WorkQueue

log = structlog.get_logger(__name__)

_FATAL = (Fenced, LogClosed, LogCorrupt, LogRolledBack, SchemaOutdated)
"""Nothing this process could try again would be right: it has lost its term, its log, or its trust in it."""

_DONE = Result()
_namespace_of = attrgetter("namespace")

_BEHIND = 0.005
"""Seconds after which a key is looked at again whose caches do not show its own last write yet."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Whose changes enqueue which keys, `delay` seconds later; keys that come again meanwhile are coalesced.

    With `after_sync` a re-sync enqueues the keys of every object, changed or not. A controller that puts right what
    others do to its own objects needs that for some watch: what it created and a client deleted before its cache saw
    either is no difference that a re-sync would tell.

    Keys have the priority of `priority_of`; `is_urgent` says which changes are urgent beyond that, where it takes
    the meaning of the kind to know: a pod that is not ready any more, for a controller of endpoints.
    """

    informer: Informer
    to_keys: Callable[[Change], Iterable[Key]]
    delay: float = 0.0
    after_sync: bool = False
    is_urgent: Callable[[Change], bool] | None = None


def own_key(change: Change) -> Iterable[Key]:
    """Return the key of the object that has changed: what most watches enqueue."""
    return (change.object.key,)


class Controller:
    """A `Runnable` that reconciles what its watches bring.

    Make it before the informers sync: their handlers then hear of everything that is there already.
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
        """`random` gives reconciles their ids; a key that failed 1 + `max_retries` times waits for its next change.

        `seen` returns the revision up to which the reconciler's caches show everything; `limiter` says when a key that
        failed is tried again, by default as Kubernetes' controllers do. `kind` is what log lines say of its keys.
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
        # How far the caches must have come for a key; None: as far as the log has when that is asked. A key is with one
        # worker at a time, and one entry of a dictionary changes at once.
        self._wanted: dict[Key, Revision | None] = {}
        # What asked for a key while the cache was behind: whichever delivery comes next answers it. The queue would
        # keep it for the moment of the delay, and a delivery before that would not name it.
        self._unanswered: dict[Key, tuple[Revision, ...]] = {}
        self._failures = Failures(name, kind, log, clock.now)
        self._counts = reconciles(name, workers=workers)
        self._watches: list[Watch] = []
        # Set and read on the informers' thread, but for the first time.
        self._stands_by = False
        for watch in watches:
            self.watch(watch)

    def watch(self, watch: Watch) -> None:
        """Watch something else too; called before its informer has synced."""
        self._watches.append(watch)
        watch.informer.add_handler(self._handler(watch), name=self.name)
        if watch.after_sync:
            watch.informer.add_sync_handler(self._sync_handler(watch), name=self.name)

    def work_from(self, queue: WorkQueue[Key]) -> None:
        """Take keys from `queue` instead of a queue of its own; called before `start`, while no key has come yet."""
        self.queue = queue

    def start(self) -> None:
        """Enqueue what the reconciler begins with (`StartsWith`), and what failed before.

        The caches must have synced.
        """
        if isinstance(self._reconciler, StartsWith):
            for key in self._reconciler.on_start():
                self.queue.add(key, priority=LOW)
        for key in self._failures.take_over():
            self.queue.add(key, priority=LOW)

    def stand_by(self) -> None:
        """Have nothing enqueued from here on: others do the work."""
        self._stands_by = True

    def resume(self) -> None:
        """Begin anew with everything there is; called on the informers' thread, while it does not run.

        Pure functions of a change (`Watch.to_keys`) may keep what they know without a lock, as all changes, these
        among them, come on that one thread.
        """
        self.queue.reopen()
        self._stands_by = False
        for watch in self._watches:
            handle = self._handler(watch)
            for obj in watch.informer.lister.list():
                handle(Change(EventType.ADDED, None, obj, obj.revision, is_listed=True))
                obj.forget_decoded()  # as after a sync

    def run(self, stop: threading.Event) -> None:
        """Reconcile with all workers until `stop` is set, then let them finish what they hold.

        Raises what a worker could not contain (`_FATAL`). Its queue stays shut down: to run again it must `resume`.
        """
        self.start()
        failures: list[BaseException] = []

        def work() -> None:
            try:
                while not stop.is_set() and self.process_next():
                    pass
            except BaseException as error:  # handed to `run`, which raises it on the manager's thread
                failures.append(error)
                stop.set()

        workers = [threads.start(f"{self.name}-{number}", work) for number in range(self._workers)]
        stop.wait()
        self.queue.shut_down(drain=True)
        # A worker gives its key back before it can report a failure, so a drained queue is not yet the end.
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]

    def process_next(self, timeout: float | None = None) -> bool:
        """Reconcile the next key; False when none came within `timeout` seconds, or none will.

        Raises only what must end the process or its leadership: `Fenced`, `LogClosed`, `LogCorrupt`,
        `LogRolledBack`, `SchemaOutdated`.
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
        # Looked up once: every change of a pod comes through here.
        to_keys, delay, is_urgent = watch.to_keys, watch.delay, watch.is_urgent

        def on_change(change: Change) -> None:
            if self._stands_by:
                return
            priority: int | None = None  # most changes concern no key, and to decide it reads the object
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
                obj.forget_decoded()  # as after a sync

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
        result, message = self._reconcile(delivery, client)
        duration = self._clock.monotonic() - began
        self._counts.ended(result, duration)
        if client.wrote:
            # A reconcile that appended nothing has no row in the log to finish.
            if changed_by := client.changed_by:
                message = message or f"changed on its way by {', '.join(changed_by)}"
            self._log.finish(cause.id, Outcome(round(duration * 1_000_000), result, message))
            if self._seen is not None:
                # What may still come of a write whose outcome is unknown, the log says later.
                self._wanted[delivery.item] = None if result == "error" else self._newest()

    def _with_unanswered(self, delivery: Delivery[Key]) -> Delivery[Key]:
        """Return a delivery with the triggers, too, of those before it that came while the cache was behind."""
        earlier = self._unanswered.pop(delivery.item, None)
        if not earlier:
            return delivery
        triggers = tuple(sorted({*earlier, *delivery.triggers}))
        return Delivery(delivery.item, triggers, delivery.attempt, delivery.priority)

    def _shows_own_writes(self, key: Key, seen: Revision) -> bool:
        if key not in self._wanted:
            return True
        wanted = self._wanted[key]
        if wanted is None:
            wanted = self._wanted[key] = self._newest()
        if seen < wanted:
            return False
        del self._wanted[key]
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
        """Reconcile and decide what becomes of the key; return the result and message of an `Outcome`.

        The one place where errors of reconcilers end.
        """
        try:
            result = self._reconciler.reconcile(delivery.item, client) or _DONE
        except _FATAL:
            raise
        except TerminalError as error:
            self._give_up(delivery, error)
            return "terminal", str(error)
        except Exception as error:  # a reconciler is foreign code: whatever it raises is contained here
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
        self.queue.add_after(delivery.item, result.requeue_after, unanswered, priority=delivery.priority)
        log.debug("reconciled", requeue_after=result.requeue_after)
        return "requeued"

    def _give_up(self, delivery: Delivery[Key], error: TerminalError) -> None:
        self.queue.forget(delivery.item)
        self._failures.failed(delivery.item, error, None)
        log.error("reconcile failed for good", error=str(error))

    def _retry(self, delivery: Delivery[Key], error: Exception) -> None:
        """Log an error once and have the key tried again, unless it was often enough.

        What was to be expected (`retryable`, `lost_race`) is one line, and so is what the API refused, which says why;
        anything else has its traceback.

        A key that is dropped is not lost: its next change enqueues it anew (as in Kubernetes' endpoints
        controller, whose maxRetries is 15).
        """
        if not isinstance(error, CtrlmgrError):
            self._counts.panicked()
        drop = self._max_retries is not None and delivery.attempt > self._max_retries
        if is_expected(error) and not drop:
            log.info("retrying reconcile", error=summary(error), attempt=delivery.attempt)
        elif is_expected(error):
            log.info("reconcile failed", error=summary(error), dropped=True)
        else:
            where = None if isinstance(error, ApiError) else error
            log.error("reconcile failed", error=summary(error), dropped=drop, exc_info=where)
        delay = None
        if drop:
            self.queue.forget(delivery.item)
        else:
            delay = self.queue.add_rate_limited(delivery.item, delivery.triggers, priority=delivery.priority)
        self._failures.failed(delivery.item, error, delay)

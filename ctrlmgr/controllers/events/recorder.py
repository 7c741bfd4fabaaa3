"""Events (core/v1) that tell people what controllers meet with; `kubectl describe` and `kubectl events` show them.

Guarantees:
- Telling costs a controller an append to a list: it never waits and never fails. When 1,000 things wait to be written
  already, what comes next is dropped; how much that was is logged, at once and then every ten seconds at most.
- There are two recorders, as in client-go. That of most controllers (`tools/record`) combines similar occurrences,
  counts equal ones and keeps a component from flooding a namespace (`correlation`). The other (`tools/events`, the form
  of `events.k8s.io/v1`) makes a series of what is repeated (`series`): the scheduler and the repairs have it.
- When the log cannot be reached everything waits for it, for up to 12 tries; what the log refuses is dropped: a
  namespace that is on its way out takes no Events.
- After `close` what waits is tried once more each.

An `EventRecorder` speaks for one component, and is all that a controller knows of this. One `EventBroadcaster` writes
for all of a process, on its own thread. Each Event is written in the name of who told of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.client import PatchClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.events.correlation import Correlator, Occurrence, Sighting
from ctrlmgr.controllers.events.forms import event_of, patch_of
from ctrlmgr.controllers.events.series import Series, SeriesCorrelator
from ctrlmgr.engine.names import new_uid
from ctrlmgr.engine.validation.names import subdomain_name
from ctrlmgr.errors import ApiError, CtrlmgrError, Fenced, NotFound

log = structlog.get_logger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

QUEUED: Final = 1000
"""How many things may wait to be written (`maxQueuedEvents`)."""
TRIES: Final = 12
"""How often one is tried (`maxTriesPerEvent`)."""
PAUSE: Final = 10.0
"""Seconds between tries; before the second any part of it, lest all processes come back at once."""

QUIET: Final = 10.0
"""Seconds in which what is dropped is logged once: a line for each would cost as much as writing it."""

_LOOK_UP: Final = 0.5
"""Seconds after which `run` looks whether it should stop."""


class Recorder(Protocol):
    """What a controller tells of things through."""

    def event(
        self,
        subject: Object | ObjectReference,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """Tell that something has happened to `subject`: `type` is `Normal` or `Warning`, `reason` in CamelCase.

        `action` is what the component did, `related` another object that has part in it: only Events of the newer form
        have them.
        """


class Silent:
    """A recorder that keeps nothing."""

    def event(
        self,
        subject: Object | ObjectReference,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """Do nothing."""


SILENT: Final[Recorder] = Silent()


@contextmanager
def failures_told(recorder: Recorder, subject: Object, reason: str, message: str) -> Iterator[None]:
    """Have it told of `subject` when the API refuses something in the block, and the refusal raised all the same.

    That another writer was first is not worth telling: a controller looks again. When the log itself fails, it takes no
    Event either.
    """
    try:
        yield
    except ApiError as error:
        if not error.lost_race:
            recorder.event(subject, WARNING, reason, f"{message}: {error}")
        raise


class EventRecorder:
    """Tells of things in the name of one component; from any thread."""

    def __init__(self, broadcaster: EventBroadcaster, component: str, client: PatchClient, instance: str = "") -> None:
        """Made by `EventBroadcaster.recorder`; Events are of the newer form if `instance` names the process."""
        self._broadcaster = broadcaster
        self._component = component
        self._client = client
        self._instance = instance

    def event(
        self,
        subject: Object | ObjectReference,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """Tell that something has happened to `subject`; see `Recorder`."""
        reference = _referred(subject)
        other = None if related is None else _referred(related)
        at, name = self._broadcaster.stamp(reference)
        source = self._component
        told = Occurrence(reference, type, reason, message, source, action, at, name, self._instance, other)
        self._broadcaster.tell(told, self._client)


class _Task(NamedTuple):
    """An Event to be written through `client`, having been tried `tries` times; at `due` (monotonic seconds) again."""

    wanted: Sighting | Series
    client: PatchClient
    tries: int = 0
    due: float = 0.0


class EventBroadcaster:
    """Writes what recorders are told; a Runnable. `process_next` belongs to one thread at a time."""

    name = "event-broadcaster"

    def __init__(self, *, clock: Clock, random: Random, host: str = "") -> None:
        """Start with nothing to write; `host` is the name of this machine in Events of the newer form."""
        self._clock = clock
        self._random = random
        self._host = host
        self._correlator = Correlator()
        self._series = SeriesCorrelator(clock.monotonic())
        # Series to be written again; of the thread of `process_next`.
        self._due: deque[_Task] = deque()
        # Guards what follows; notified when there is more to do, or no more to come.
        self._changed = threading.Condition()
        self._told: deque[tuple[Occurrence, PatchClient]] = deque()
        self._held: _Task | None = None
        self._closed = False
        self._dropped = 0  # since that was logged
        self._quiet_until = 0.0
        # The last name's number: nanoseconds since 1970, or one more than the one before.
        self._stamp = 0

    def recorder(self, component: str, client: PatchClient, *, in_series: bool = False) -> EventRecorder:
        """Return a recorder for `component`, writing through `client`; Events `in_series` are of the newer form."""
        return EventRecorder(self, component, client, f"{component}-{self._host}" if in_series else "")

    def stamp(self, subject: ObjectReference) -> tuple[int, str]:
        """Return the time, and a name for an Event about `subject` that no other one of this process has."""
        now = self._clock.now()
        with self._changed:
            self._stamp = max(self._stamp + 1, now * 1000)
            name = f"{subject.name}.{self._stamp:x}"
            return now, new_uid(self._random) if subdomain_name(name) else name

    def tell(self, told: Occurrence, client: PatchClient) -> None:
        """Have something written; dropped if too much waits already, or the broadcaster is closed."""
        with self._changed:
            dropped = self._closed or len(self._told) >= QUEUED
            if not dropped:
                self._told.append((told, client))
                self._changed.notify()
            count = self._drop() if dropped else 0
        if count:
            log.error("events dropped", count=count, reason=told.reason, message=told.message, kind=told.subject.kind)

    def _drop(self) -> int:
        """Count what is dropped, with the lock held; return how much to log, 0 if that can wait."""
        now = self._clock.monotonic()
        self._dropped += 1
        if now < self._quiet_until:
            return 0
        self._quiet_until = now + QUIET
        count, self._dropped = self._dropped, 0
        return count

    def run(self, stop: threading.Event) -> None:
        """Write until `stop` is set, and then what is left."""
        while not stop.is_set():
            self.process_next(_LOOK_UP)
        self.close()

    def close(self) -> None:
        """Take nothing any more, and try once to write what is left; on the thread of `process_next`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.flush()

    def flush(self) -> None:
        """Write what waits and is not held up."""
        while self.process_next(0):
            pass

    def process_next(self, timeout: float | None = None) -> bool:
        """Deal with the next thing told, waiting up to `timeout` seconds for one; False if there was none."""
        due = self._series.due(self._clock.monotonic(), self._clock.now())
        self._due.extend(_Task(series, client) for series, client in due)
        taken = self._take(timeout)
        if taken is None:
            return False
        task = taken if isinstance(taken, _Task) else self._correlate(*taken)
        if task is not None:
            self._write(task)
        return True

    def _take(self, timeout: float | None) -> _Task | tuple[Occurrence, PatchClient] | None:
        """Return what is to be done next: while something is held up, nothing overtakes it."""
        give_up_at = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while True:
                now = self._clock.monotonic()
                held = self._held
                if held is not None and (self._closed or held.due <= now):
                    self._held = None
                    return held
                if held is None and (self._due or self._told):
                    return self._due.popleft() if self._due else self._told.popleft()
                moments = [each for each in (give_up_at, None if held is None else held.due) if each is not None]
                if self._closed or (give_up_at is not None and give_up_at <= now):
                    return None
                self._clock.wait(self._changed, min(moments) - now if moments else None)

    def _correlate(self, told: Occurrence, client: PatchClient) -> _Task | None:
        wanted: Sighting | Series | None
        if told.instance:
            wanted = self._series.correlate(told, client)
        else:
            wanted = self._correlator.correlate(told, self._clock.monotonic())
        return None if wanted is None else _Task(wanted, client)

    def _write(self, task: _Task) -> None:
        """Write an Event, or hold it until it is worth another try."""
        wanted, client = task.wanted, task.client
        reason = wanted.told.reason
        try:
            _send(wanted, client)
        except CtrlmgrError as error:
            if _is_refusal(error):
                log.info("event refused", name=wanted.name, reason=reason, error=str(error))
            elif task.tries + 1 >= TRIES or self._closed:
                log.error("event not written", name=wanted.name, reason=reason, error=str(error))
            else:
                self._hold(task)
        except Exception as error:  # whatever is wrong with one Event, the next may be right
            log.error("event not written", name=wanted.name, reason=reason, exc_info=error)

    def _hold(self, task: _Task) -> None:
        pause = PAUSE * self._random.random() if not task.tries else PAUSE
        due = self._clock.monotonic() + pause
        with self._changed:
            self._held = task._replace(tries=task.tries + 1, due=due)


def _send(wanted: Sighting | Series, client: PatchClient) -> None:
    """Count an Event on that was written before, and create it if it is new or gone (`recordEvent` of client-go)."""
    event = event_of(wanted)
    if wanted.times > 1:
        try:
            client.patch(event, patch_of(wanted))
            return
        except NotFound:
            pass
    client.create(event)


def _is_refusal(error: CtrlmgrError) -> bool:
    """Whether another try would come to the same, as opposed to a log that is away or busy, or another writer."""
    return isinstance(error, ApiError | Fenced) and not error.retryable


class _Head(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str


_decode_head = msgspec.json.Decoder(_Head).decode


def _referred(subject: Object | ObjectReference) -> ObjectReference:
    return reference_to(subject) if isinstance(subject, Object) else subject


def reference_to(obj: Object) -> ObjectReference:
    """Return the reference that an Event about `obj` has."""
    head = _decode_head(obj.body)
    version = str(obj.revision or "")
    return ObjectReference(head.kind, obj.namespace, obj.name, obj.uid, head.api_version, version)

"""Records Events (core/v1) for controllers; `kubectl describe` and `kubectl events` show them.

Guarantees:

- Recording only appends to a queue: it never waits and never fails. If 1,000 occurrences are queued already, further
  occurrences are dropped. The number of dropped occurrences is logged immediately, and after that at most every ten
  seconds.
- As in client-go, there are two kinds of recorders. The recorder of most controllers (`tools/record`) combines similar
  occurrences, counts equal occurrences and limits the rate of a component (`event_correlation`). The scheduler and the
  repairs use the other recorder (`tools/events`, the API `events.k8s.io/v1`), which merges repeated occurrences into a
  series (`series`).
- If the log is unavailable, the recorder tries to write an Event up to 12 times, and the rest of the queue waits. If
  the log refuses an Event, the Event is dropped; for example, a terminating namespace accepts no Events.
- After `close`, the recorder tries once more to write each queued occurrence.

An `EventRecorder` records the Events of one component; controllers use only this class. One `EventBroadcaster` writes
the Events of a process, on its own thread. Each Event is written as the user of its component.
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
from ctrlmgr.controllers.events.event_builders import event_of, patch_of
from ctrlmgr.controllers.events.event_correlation import CorrelatedEvent, Correlator, Occurrence
from ctrlmgr.controllers.events.series import Series, SeriesCorrelator
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.errors import ApiError, CtrlmgrError, Fenced, NotFound

log = structlog.get_logger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

QUEUED: Final = 1000
"""The maximum number of queued occurrences (`maxQueuedEvents`)."""
TRIES: Final = 12
"""The maximum number of tries per Event (`maxTriesPerEvent`)."""
PAUSE: Final = 10.0
"""The number of seconds between two tries of a write. Before the second try, the delay is a random part of `PAUSE`, so
that processes do not retry simultaneously.
"""

QUIET: Final = 10.0
"""The minimum number of seconds between log lines about dropped occurrences. A log line for each dropped occurrence
would cost as much as an Event.
"""

_LOOK_UP: Final = 0.5
"""The number of seconds after which `run` checks again whether it must stop."""


class Recorder(Protocol):
    """Records the Events of a controller."""

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
        """Record that something happened to `subject`; `type` is `Normal` or `Warning`, and `reason` is in CamelCase.

        The argument `action` is the component's action, and `related` is a related object. Only Events of the newer API
        (`events.k8s.io`) contain these fields.
        """


class Silent:
    """A recorder that drops all Events."""

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
    """If the API refuses a write in the block, record an Event about `subject` and raise the error again.

    Conflicts are not recorded, because the controller retries. If the log itself fails, nothing is recorded, because
    the log would not accept an Event either.
    """
    try:
        yield
    except ApiError as error:
        if not error.lost_race:
            recorder.event(subject, WARNING, reason, f"{message}: {error}")
        raise


class EventRecorder:
    """Records Events for one component; an instance is thread-safe."""

    def __init__(self, broadcaster: EventBroadcaster, component: str, client: PatchClient, instance: str = "") -> None:
        """Create a recorder that records through `broadcaster`.

        `instance` identifies this process in Events of the newer API.
        """
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
        """Record that something happened to `subject`; see `Recorder`."""
        reference = _referred(subject)
        other = None if related is None else _referred(related)
        at, name = self._broadcaster.stamp(reference)
        source = self._component
        occurrence = Occurrence(reference, type, reason, message, source, action, at, name, self._instance, other)
        self._broadcaster.enqueue(occurrence, self._client)


class _Task(NamedTuple):
    """A task of the queue: an Event to write through `client`.

    The field `tries` is the number of attempts so far, and `due` is the time of the next attempt in monotonic seconds.
    """

    wanted: CorrelatedEvent | Series
    client: PatchClient
    tries: int = 0
    due: float = 0.0


class EventBroadcaster:
    """A Runnable that writes recorded occurrences. Only one thread at a time may call `process_next`."""

    name = "event-broadcaster"

    def __init__(self, *, clock: Clock, random: Random, host: str = "") -> None:
        """Create a broadcaster with an empty queue; `host` is the machine's name for Events of the newer API."""
        self._clock = clock
        self._random = random
        self._host = host
        self._correlator = Correlator()
        self._series = SeriesCorrelator(clock.monotonic())
        # Series to update; only the thread that calls `process_next` uses this queue.
        self._due: deque[_Task] = deque()
        # The condition variable guards all attributes that follow. The condition variable is notified when work is
        # added and when the broadcaster is closed.
        self._changed = threading.Condition()
        self._occurrences: deque[tuple[Occurrence, PatchClient]] = deque()
        self._held: _Task | None = None
        self._closed = False
        self._dropped = 0  # The number of dropped occurrences since the last log line.
        self._quiet_until = 0.0
        # The number in the last generated name. The number is the time in nanoseconds since 1970, or one more than the
        # previous number.
        self._stamp = 0

    def recorder(self, component: str, client: PatchClient, *, in_series: bool = False) -> EventRecorder:
        """Return a recorder for `component` that writes through `client`; `in_series` selects the newer API."""
        return EventRecorder(self, component, client, f"{component}-{self._host}" if in_series else "")

    def stamp(self, subject: ObjectReference) -> tuple[int, str]:
        """Return the current time, and a name for an Event about `subject` that is unique in this process."""
        now = self._clock.now()
        with self._changed:
            self._stamp = max(self._stamp + 1, now * 1000)
            name = f"{subject.name}.{self._stamp:x}"
            return now, new_uid(self._random) if subdomain_name(name) else name

    def enqueue(self, occurrence: Occurrence, client: PatchClient) -> None:
        """Queue an occurrence; drop the occurrence if the queue is full or the broadcaster is closed."""
        with self._changed:
            dropped = self._closed or len(self._occurrences) >= QUEUED
            if not dropped:
                self._occurrences.append((occurrence, client))
                self._changed.notify()
            count = self._drop() if dropped else 0
        if count:
            log.error(
                "events dropped",
                count=count,
                reason=occurrence.reason,
                message=occurrence.message,
                kind=occurrence.subject.kind,
            )

    def _drop(self) -> int:
        """Count a dropped occurrence; the caller must hold the lock.

        Return the number of dropped occurrences to log; 0 if a line was logged recently.
        """
        now = self._clock.monotonic()
        self._dropped += 1
        if now < self._quiet_until:
            return 0
        self._quiet_until = now + QUIET
        count, self._dropped = self._dropped, 0
        return count

    def run(self, stop: threading.Event) -> None:
        """Write occurrences until `stop` is set, then try once to write the rest of the queue."""
        while not stop.is_set():
            self.process_next(_LOOK_UP)
        self.close()

    def close(self) -> None:
        """Refuse further occurrences, and try once to write the queue.

        Only the thread that calls `process_next` may call this method.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.flush()

    def flush(self) -> None:
        """Write all queued occurrences that do not wait for a retry."""
        while self.process_next(0):
            pass

    def process_next(self, timeout: float | None = None) -> bool:
        """Process the next occurrence; if the queue is empty, wait for one for up to `timeout` seconds.

        Return False if the method has processed no occurrence.
        """
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
        """Return the next task; while a task waits for its retry, no other task is returned."""
        give_up_at = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while True:
                now = self._clock.monotonic()
                held = self._held
                if held is not None and (self._closed or held.due <= now):
                    self._held = None
                    return held
                if held is None and (self._due or self._occurrences):
                    return self._due.popleft() if self._due else self._occurrences.popleft()
                moments = [each for each in (give_up_at, None if held is None else held.due) if each is not None]
                if self._closed or (give_up_at is not None and give_up_at <= now):
                    return None
                self._clock.wait(self._changed, min(moments) - now if moments else None)

    def _correlate(self, occurrence: Occurrence, client: PatchClient) -> _Task | None:
        desired: CorrelatedEvent | Series | None
        if occurrence.instance:
            desired = self._series.correlate(occurrence, client)
        else:
            desired = self._correlator.correlate(occurrence, self._clock.monotonic())
        return None if desired is None else _Task(desired, client)

    def _write(self, task: _Task) -> None:
        """Write an Event; keep the Event for a retry if the log is unavailable."""
        desired, client = task.wanted, task.client
        reason = desired.occurrence.reason
        try:
            _send(desired, client)
        except CtrlmgrError as error:
            if _is_refusal(error):
                log.info("event rejected", name=desired.name, reason=reason, error=str(error))
            elif task.tries + 1 >= TRIES or self._closed:
                log.error("writing event failed", name=desired.name, reason=reason, error=str(error))
            else:
                self._hold(task)
        except Exception as error:  # An unexpected error with one Event must not prevent the other Events.
            log.error("writing event failed", name=desired.name, reason=reason, exc_info=error)

    def _hold(self, task: _Task) -> None:
        pause = PAUSE * self._random.random() if not task.tries else PAUSE
        due = self._clock.monotonic() + pause
        with self._changed:
            self._held = task._replace(tries=task.tries + 1, due=due)


def _send(desired: CorrelatedEvent | Series, client: PatchClient) -> None:
    """Update an Event's count, or create the Event if it is new or was deleted (client-go's `recordEvent`)."""
    event = event_of(desired)
    if desired.times > 1:
        try:
            client.patch(event, patch_of(desired))
            return
        except NotFound:
            pass
    client.create(event)


def _is_refusal(error: CtrlmgrError) -> bool:
    """Return whether a failed write was refused, which means that a retry would fail again.

    A retry of a write can succeed after a conflict, or if the log was unavailable or busy.
    """
    return isinstance(error, ApiError | Fenced) and not error.retryable


class _Head(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str


_decode_head = msgspec.json.Decoder(_Head).decode


def _referred(subject: Object | ObjectReference) -> ObjectReference:
    return reference_to(subject) if isinstance(subject, Object) else subject


def reference_to(obj: Object) -> ObjectReference:
    """Return the reference to `obj` for an Event."""
    head = _decode_head(obj.body)
    version = str(obj.revision or "")
    return ObjectReference(head.kind, obj.namespace, obj.name, obj.uid, head.api_version, version)

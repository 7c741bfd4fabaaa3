"""Implements the audit step of the handler chain: records requests for the backends, as the audit policy requires.

Guarantees:
- The audit of a request that the policy does not record (level None) costs one look-up in the policy.
- If a backend fails, the failure is counted, the event is lost, and the request continues. If a strict backend fails at
  the first event of a request, the server refuses the request instead.
- A backend without batches receives an event before the response is sent. If several requests end in one turn of the
  event loop, the backends receive the last events of all these requests in one call.

Source: apiserver `pkg/endpoints/filters/{audit,authn_audit,audit_init}.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ctrlmgr.audit.audit_metrics import COUNTS
from ctrlmgr.audit.policy import NOT_AUDITED, AuditDecision, Level, Policy, Stage
from ctrlmgr.audit.request_events import StageEvent
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import Clock
from ctrlmgr.server.request import Request

_LASTING_VERBS = frozenset({"watch", "proxy"})
_LASTING_PARTS = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_CLIENT_CLOSED = 499
_NONE = Level.NONE
_RECEIVED, _STARTED, _COMPLETE = Stage.REQUEST_RECEIVED, Stage.RESPONSE_STARTED, Stage.RESPONSE_COMPLETE
"""Local names of enumeration members, because Python 3.11 calls a function for each access to a member."""


class Backend(Protocol):
    """A backend that stores or sends audit events; its methods raise no errors and never wait for other processes."""

    @property
    def is_strict(self) -> bool:
        """Return whether a request is refused if the backend does not keep its first event."""

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        """Store or queue audit events; return False if the backend knows that an event is lost."""


class SlowBackend(Protocol):
    """A backend that sends audit events to another server while the request waits; it raises no errors."""

    @property
    def is_strict(self) -> bool:
        """Return whether a request is refused if the backend does not keep its first event."""

    async def store(self, event: StageEvent) -> bool:
        """Send an audit event; return whether the other server accepted it."""


class Register(Protocol):
    """Stores the outcomes of requests for later queries."""

    def note(self, events: Sequence[StageEvent]) -> None:
        """Store the outcomes of answered requests; `events` contains the last event of each request."""


class _PolicyLookup(NamedTuple):
    """The cached result of the last look-up in the audit policy; consecutive requests often have equal attributes."""

    attributes: Attributes | None
    user: User | None
    handling: AuditDecision
    lasts: bool
    """Whether the request is long-running."""


class Auditing:
    """The audit step of the handler chain, for all requests of a server. Used on the event loop's thread only."""

    def __init__(
        self,
        policy: Policy,
        backends: Sequence[Backend],
        registers: Sequence[Register] = (),
        slow: Sequence[SlowBackend] = (),
        *,
        clock: Clock,
    ) -> None:
        """Create the audit step, which passes events to `backends` and the outcomes of requests to `registers`.

        The audit policy `policy` decides which requests are recorded. Requests wait until the `slow` backends have sent
        their events.
        """
        self._slow = slow
        self.waits = bool(slow)
        """Whether requests wait until their events are `stored`."""
        self._storing: set[asyncio.Task[bool]] = set()
        self._policy = policy
        self.backends = backends
        self._registers = registers
        self._clock = clock
        self._last_lookup = _PolicyLookup(None, None, NOT_AUDITED, lasts=False)
        self._in_round = False
        self._ended: list[StageEvent] = []  # the last events of requests in this round

    def begin(self, request: Request, attributes: Attributes, user: User | None) -> bool:
        """Begin the audit record of a request, if the policy requires one; `user` is None if authentication failed.

        Return whether the request may continue. The request may not continue if a strict backend could not store its
        first event.
        """
        waiting = self._last_lookup
        if waiting.attributes is not attributes or waiting.user != user:
            self._last_lookup = waiting = self._look_up(user, attributes)
        handling = waiting.handling
        if handling.level is _NONE:
            return True
        now = self._clock.now()
        request.audit = record = Record(handling, attributes, user, request, now, request.notes.annotations)
        if user is None:
            return True  # an unauthenticated request has one event, sent after its answer
        if waiting.lasts:
            record.started = self._started
        if _RECEIVED in handling.omitted:
            return True
        return self._tell([StageEvent(record, _RECEIVED, now)])

    def _look_up(self, user: User | None, attributes: Attributes) -> _PolicyLookup:
        lasts = attributes.verb in _LASTING_VERBS or attributes.subresource in _LASTING_PARTS
        return _PolicyLookup(attributes, user, self._policy.handling(user, attributes), lasts)

    async def stored(self, record: Record, stage: Stage) -> bool:
        """Send an event to the slow backends, and wait for their answers; return whether the request may continue."""
        if stage in record.handling.omitted:
            return True
        event = StageEvent(record, stage, self._clock.now())
        kept = [(await backend.store(event)) or not backend.is_strict for backend in self._slow]
        return all(kept)

    def end(self, request: Request, record: Record) -> Stage:
        """Send the last audit event of a request that was answered or whose client disconnected.

        The method returns the stage of the event.
        """
        record.code = record.code or request.code or _CLIENT_CLOSED
        stage = _STARTED if record.user is None else Stage.PANIC if record.panicked else _COMPLETE
        handling = record.handling
        COUNTS.levels[handling.level] += 1
        if stage not in handling.omitted:
            self._ended.append(StageEvent(record, stage, self._clock.now()))
            if not self._in_round:
                self._tell_ended()
        return stage

    def begin_batch(self) -> None:
        """Begin a round: until `end_batch`, the event loop answers several requests in one turn."""
        self._in_round = True

    def end_batch(self) -> None:
        """Send the last audit events of the requests that were answered in this round."""
        self._in_round = False
        if self._ended:
            self._tell_ended()

    def _tell_ended(self) -> None:
        ended, self._ended = self._ended, []
        self._tell(ended)
        for register in self._registers:
            register.note(ended)

    def _started(self, record: Record) -> None:
        if _STARTED not in record.handling.omitted:
            self._tell([StageEvent(record, _STARTED, self._clock.now())])
        if self._slow:  # the head of the answer must not be delayed, even if storing fails
            task = asyncio.get_running_loop().create_task(self.stored(record, _STARTED))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    def _tell(self, events: Sequence[StageEvent]) -> bool:
        """Send audit events to the backends; return whether all strict backends stored the events."""
        COUNTS.events += len(events)
        may = True
        for backend in self.backends:
            if not backend.process_events(events) and backend.is_strict:
                may = False
        return may

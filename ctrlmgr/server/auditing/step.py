"""The audit step of the chain: it begins a record of each request that the policy wants, and tells the backends of it.

Guarantees:
- A request that the policy does not want costs the look at the policy, and nothing from then on.
- A backend that fails is counted, and loses the event; the request is answered all the same, unless the backend is
  strict and knows nothing of the request yet: then it is not made.
- A backend that does not batch has an event before its answer leaves the process; the last events of requests that are
  answered in one turn of the loop it has as one, which is what makes them cheap.

Rules: apiserver `pkg/endpoints/filters/{audit,authn_audit,audit_init}.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ctrlmgr.audit.counts import COUNTS
from ctrlmgr.audit.policy import NOT_AUDITED, Handling, Level, Policy, Stage
from ctrlmgr.audit.record import Record
from ctrlmgr.audit.telling import Telling
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import Clock
from ctrlmgr.server.http.request import Request

_LASTING_VERBS = frozenset({"watch", "proxy"})
_LASTING_PARTS = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_CLIENT_CLOSED = 499
_NONE = Level.NONE
_RECEIVED, _STARTED, _COMPLETE = Stage.REQUEST_RECEIVED, Stage.RESPONSE_STARTED, Stage.RESPONSE_COMPLETE
"""Python 3.11 calls a function to find a member of an enumeration."""


class Backend(Protocol):
    """What keeps audit events; it neither raises nor waits for another process."""

    @property
    def is_strict(self) -> bool:
        """Whether a request may not be made whose first event is not kept."""

    def tell(self, events: Sequence[Telling]) -> bool:
        """Take events; return whether all are kept, as far as that is known."""


class SlowBackend(Protocol):
    """What keeps audit events elsewhere, and has requests wait for that; it does not raise."""

    @property
    def is_strict(self) -> bool:
        """Whether a request may not be made whose first event is not kept."""

    async def store(self, event: Telling) -> bool:
        """Take an event; return whether it is kept."""


class Register(Protocol):
    """What keeps how requests ended, to be asked about them."""

    def note(self, events: Sequence[Telling]) -> None:
        """Take the last events of requests that have been answered."""


class _Asked(NamedTuple):
    """What a request was about, and what becomes of such a one: the next is about the same, more often than not."""

    attributes: Attributes | None
    user: User | None
    handling: Handling
    lasts: bool
    """Whether it takes long until it has been answered."""


class Auditing:
    """See the module's docstring; used on the event loop only."""

    def __init__(
        self,
        policy: Policy,
        backends: Sequence[Backend],
        registers: Sequence[Register] = (),
        slow: Sequence[SlowBackend] = (),
        *,
        clock: Clock,
    ) -> None:
        """Apply `policy`, and tell `backends` of events and `registers` of requests.

        Requests wait for the `slow` backends.
        """
        self._slow = slow
        self.waits = bool(slow)
        """Whether requests have to wait until their events are `stored`."""
        self._storing: set[asyncio.Task[bool]] = set()
        self._policy = policy
        self.backends = backends
        self._registers = registers
        self._clock = clock
        self._asked = _Asked(None, None, NOT_AUDITED, lasts=False)
        self._in_round = False
        self._ended: list[Telling] = []  # the last events of requests of this round

    def begin(self, request: Request, attributes: Attributes, user: User | None) -> bool:
        """Begin the record of a request by `user`, None if it is not known who sends it; if it is to have one.

        Return whether the request may be made: not if it cannot be written down and has to be.
        """
        asked = self._asked
        if asked.attributes is not attributes or asked.user != user:
            self._asked = asked = self._look_up(user, attributes)
        handling = asked.handling
        if handling.level is _NONE:
            return True
        now = self._clock.now()
        request.audit = record = Record(handling, attributes, user, request, now, request.told.annotations)
        if user is None:
            return True  # its one event is told of when it has been answered
        if asked.lasts:
            record.started = self._started
        if _RECEIVED in handling.omitted:
            return True
        return self._tell([Telling(record, _RECEIVED, now)])

    def _look_up(self, user: User | None, attributes: Attributes) -> _Asked:
        lasts = attributes.verb in _LASTING_VERBS or attributes.subresource in _LASTING_PARTS
        return _Asked(attributes, user, self._policy.handling(user, attributes), lasts)

    async def stored(self, record: Record, stage: Stage) -> bool:
        """Have an event stored where that takes time; return whether the request may be made, as `begin` does."""
        if stage in record.handling.omitted:
            return True
        event = Telling(record, stage, self._clock.now())
        kept = [(await backend.store(event)) or not backend.is_strict for backend in self._slow]
        return all(kept)

    def end(self, request: Request, record: Record) -> Stage:
        """Tell of a request that has been answered, or whose client has gone away; return the stage that this is."""
        record.code = record.code or request.code or _CLIENT_CLOSED
        stage = _STARTED if record.user is None else Stage.PANIC if record.panicked else _COMPLETE
        handling = record.handling
        COUNTS.levels[handling.level] += 1
        if stage not in handling.omitted:
            self._ended.append(Telling(record, stage, self._clock.now()))
            if not self._in_round:
                self._tell_ended()
        return stage

    def begin_round(self) -> None:
        """Note that several requests are answered from here to `end_round`, in one turn of the event loop."""
        self._in_round = True

    def end_round(self) -> None:
        """Tell of the requests that have been answered in this round."""
        self._in_round = False
        if self._ended:
            self._tell_ended()

    def _tell_ended(self) -> None:
        told, self._ended = self._ended, []
        self._tell(told)
        for register in self._registers:
            register.note(told)

    def _started(self, record: Record) -> None:
        if _STARTED not in record.handling.omitted:
            self._tell([Telling(record, _STARTED, self._clock.now())])
        if self._slow:  # the head of an answer is sent at once, whatever becomes of this
            task = asyncio.get_running_loop().create_task(self.stored(record, _STARTED))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    def _tell(self, events: Sequence[Telling]) -> bool:
        """Tell of events; return whether all backends have them that have to."""
        COUNTS.events += len(events)
        may = True
        for backend in self.backends:
            if not backend.tell(events) and backend.is_strict:
                may = False
        return may

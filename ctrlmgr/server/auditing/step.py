"""The audit step of the chain: it begins a record of each request that the policy wants, and tells the backends of it.

Guarantees:
- A request that the policy does not want costs the look at the policy, and nothing from then on.
- A backend that fails is counted, and loses the event; the request is answered all the same, unless the backend is
  strict and knows nothing of the request yet: then it is not made.

Rules: apiserver `pkg/endpoints/filters/{audit,authn_audit,audit_init}.go`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Protocol

from ctrlmgr.audit.event import Record
from ctrlmgr.audit.policy import Level, Policy, Stage
from ctrlmgr.audit.telling import Telling
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import Clock
from ctrlmgr.metrics import AUDIT_EVENTS, AUDIT_LEVELS
from ctrlmgr.server.http.request import Request

_LASTING_VERBS = frozenset({"watch", "proxy"})
_LASTING_PARTS = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_CLIENT_CLOSED = 499

_FORWARDED = b"x-forwarded-for"
_REAL = b"x-real-ip"


class Backend(Protocol):
    """What keeps audit events; it neither raises nor waits for another process."""

    @property
    def is_strict(self) -> bool:
        """Whether a request may not be made whose first event is not kept."""

    def tell(self, event: Telling) -> bool:
        """Take an event; return whether it is kept, as far as that is known."""


class SlowBackend(Protocol):
    """What keeps audit events elsewhere, and has requests wait for that; it does not raise."""

    @property
    def is_strict(self) -> bool:
        """Whether a request may not be made whose first event is not kept."""

    async def store(self, event: Telling) -> bool:
        """Take an event; return whether it is kept."""


class Register(Protocol):
    """What keeps how requests ended, to be asked about them."""

    def note(self, record: Record, now: int) -> None:
        """Take a request that has been answered."""


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

    def begin(self, request: Request, attributes: Attributes, user: User | None) -> bool:
        """Begin the record of a request by `user`, None if it is not known who sends it; if it is to have one.

        Return whether the request may be made: not if it cannot be written down and has to be.
        """
        handling = self._policy.handling(user, attributes)
        if handling.level is Level.NONE:
            return True
        request.audit = record = Record(
            handling,
            attributes,
            user,
            id=request.id.decode("utf-8", "replace"),
            uri=request.uri,
            agent=request.header(b"user-agent").decode("utf-8", "replace"),
            sources=_sources(request),
            received=self._clock.now(),
            lasts=attributes.verb in _LASTING_VERBS or attributes.subresource in _LASTING_PARTS,
            started=self._started,
        )
        AUDIT_LEVELS[record.level].inc()
        if user is not None:
            return self._tell(record, Stage.REQUEST_RECEIVED)
        record.lasts = False  # its one event is told of when it has been answered
        return True

    async def stored(self, record: Record, stage: Stage) -> bool:
        """Have an event stored where that takes time; return whether the request may be made, as `begin` does."""
        if stage in record.handling.omitted:
            return True
        event = Telling(record, stage, self._clock.now())
        kept = [(await backend.store(event)) or not backend.is_strict for backend in self._slow]
        return all(kept)

    def end(self, request: Request, record: Record) -> Stage:
        """Tell of a request that has been answered, or whose client has gone away; return the stage that this is."""
        record.annotations.update(request.told.annotations)
        record.code = record.code or request.code or _CLIENT_CLOSED
        if record.user is None:
            stage = Stage.RESPONSE_STARTED
        else:
            stage = Stage.PANIC if record.panicked else Stage.RESPONSE_COMPLETE
        self._tell(record, stage)
        if stage not in record.handling.omitted:
            now = self._clock.now()
            for register in self._registers:
                register.note(record, now)
        return stage

    def _started(self, record: Record) -> None:
        record.lasts = False
        self._tell(record, Stage.RESPONSE_STARTED)
        if self._slow:  # the head of an answer is sent at once, whatever becomes of this
            task = asyncio.get_running_loop().create_task(self.stored(record, Stage.RESPONSE_STARTED))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    def _tell(self, record: Record, stage: Stage) -> bool:
        """Tell of an event; return whether all backends have it that have to."""
        if stage in record.handling.omitted:
            return True
        AUDIT_EVENTS.inc()
        may = True
        if self.backends:
            event = Telling(record, stage, self._clock.now())
            for backend in self.backends:
                if not backend.tell(event) and backend.is_strict:
                    may = False
        return may


def _sources(request: Request) -> list[str]:
    """Return where a request came from, through which proxies, as far as they say so (apimachinery `SourceIPs`)."""
    found: list[str] = []
    if forwarded := request.header(_FORWARDED):
        found += [each for part in forwarded.split(b",") if (each := _address(part))]
    if (real := request.header(_REAL)) and (address := _address(real)) and address not in found:
        found.append(address)
    if request.peer and (not found or found[-1] != request.peer):
        found.append(request.peer)
    return found


def _address(text: bytes) -> str:
    try:
        return str(ipaddress.ip_address(text.decode("ascii").strip()))
    except ValueError:
        return ""

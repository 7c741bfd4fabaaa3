"""The audit step of the chain: it begins a record of each request that the policy wants, and tells the backends of it.

Guarantees:
- A request that the policy does not want costs the look at the policy, and nothing from then on.
- A backend that fails is counted, and loses the event; the request is answered all the same.

Rules: apiserver `pkg/endpoints/filters/{audit,authn_audit,audit_init}.go`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from random import Random
from typing import Protocol

from ctrlmgr.audit.event import Record
from ctrlmgr.audit.policy import Level, Policy, Stage
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import Clock
from ctrlmgr.engine.names import new_uid
from ctrlmgr.metrics import AUDIT_EVENTS, AUDIT_LEVELS
from ctrlmgr.server.http.request import Request

_LASTING_VERBS = frozenset({"watch", "proxy"})
_LASTING_PARTS = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_CLIENT_CLOSED = 499

_ID = b"audit-id"
_FORWARDED = b"x-forwarded-for"
_REAL = b"x-real-ip"


class Backend(Protocol):
    """What keeps audit events; neither method raises, or waits for another process."""

    def tell(self, line: bytes) -> None:
        """Take an event, as a line of JSON."""


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
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Apply `policy`, and tell `backends` of events and `registers` of requests; `random` names requests."""
        self._policy = policy
        self._backends = backends
        self._registers = registers
        self._clock = clock
        self._random = random

    def begin(self, request: Request, attributes: Attributes, user: User | None) -> None:
        """Begin the record of a request by `user`, None if it is not known who sends it; if it is to have one."""
        handling = self._policy.handling(user, attributes)
        if handling.level is Level.NONE:
            return
        request.audit = record = Record(
            handling,
            attributes,
            user,
            id=request.header(_ID).decode("utf-8", "replace") or new_uid(self._random),
            uri=request.uri,
            agent=request.header(b"user-agent").decode("utf-8", "replace"),
            sources=_sources(request),
            received=self._clock.now(),
            lasts=attributes.verb in _LASTING_VERBS or attributes.subresource in _LASTING_PARTS,
            started=self._started,
        )
        AUDIT_LEVELS[record.level].inc()
        if user is not None:
            self._tell(record, Stage.REQUEST_RECEIVED)
        else:
            record.lasts = False  # its one event is told of when it has been answered

    def end(self, request: Request, record: Record) -> None:
        """Tell of a request that has been answered, or whose client has gone away."""
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

    def _started(self, record: Record) -> None:
        record.lasts = False
        self._tell(record, Stage.RESPONSE_STARTED)

    def _tell(self, record: Record, stage: Stage) -> None:
        if stage in record.handling.omitted:
            return
        AUDIT_EVENTS.inc()
        if self._backends:
            line = record.line(stage, self._clock.now())
            for backend in self._backends:
                backend.tell(line)


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

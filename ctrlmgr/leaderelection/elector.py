"""The elector decides the next step of the election, writes the lease, and knows whether this process leads.

The following guarantees hold in addition to those of `election_step` and `lock`:
- `fence` returns a term only while this process can be sure to be the leader. A leader that renews its lease too late
  loses its leadership without any other event.
- A new term begins only after all controllers of the last term have finished (`ended` reports this). The elector also
  releases the lease only after all controllers of the term have finished.
- A takeover succeeds only if the lease still has the revision on which the decision was based. The condition on the
  revision is necessary because the check of the holder's session takes time. If another candidate takes the lease
  during this check, the log refuses the takeover.
- The outcome of an interrupted write of the lease is unknown. After an interrupted write, a leader assumes that the
  lease was not renewed, and a candidate waits until its informer reads the lease.

One thread calls `step`, and the informers' thread calls `observe`. Any thread may call the methods that only read.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ApiError, Fenced, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog import Fence
from ctrlmgr.eventlog.session import Sessions
from ctrlmgr.leaderelection.election_step import (
    Decision,
    Observed,
    Renew,
    StepDown,
    TakeOver,
    Term,
    Timing,
    Wait,
    decide,
)
from ctrlmgr.leaderelection.lease_record import ObservedRecord, held
from ctrlmgr.leaderelection.lock import LeaseLock

log = structlog.get_logger(__name__)

TOLERANCE: Final = 20.0
"""Seconds after the end of its lease for which a leader that cannot renew the lease counts as healthy, as in
Kubernetes.
"""

TRUSTED: Final = 1 << 30
"""The maximum term that is read from the Lease; if the log contains a higher term, only the log determines the next
term.

The maximum is safe because clients cannot write the terms in the log. Because of the maximum, a client that writes the
Lease cannot raise the term beyond an int32, the type of `leaseTransitions`.
"""

_FOR_EVER: Final = float("inf")
_PASSING = (ApiError, LogUnavailable, OutcomeUnknown, TimeoutError)
"""The temporary errors of a write of the lease: another writer was first, or the database is unavailable."""


class _ObservedLease(NamedTuple):
    """The lease at one revision; `since` is the time when the lease's content last changed (monotonic seconds)."""

    revision: Revision = 0
    lease: Object | None = None
    held: ObservedRecord | None = None
    since: float = 0.0


class Elector:
    """A candidate for leadership: the holder of one lease leads."""

    def __init__(self, lock: LeaseLock, sessions: Sessions, timing: Timing, *, clock: Clock) -> None:
        """Create a candidate for the lease that `lock` writes.

        `sessions` can determine whether the holder's database session has ended.
        """
        self._lock = lock
        self._sessions = sessions
        self._timing = timing
        self._clock = clock
        # The attribute is replaced as a whole, so that any thread may read it.
        self._term: Term | None = None
        # Whether a controller of one of this process's terms may still run.
        self._at_work = False
        self._newest_term = 0  # The newest known term in the log.
        # The revision of the lease at a failed attempt: the next attempt requires a newer revision, or waits until this
        # monotonic time.
        self._failed_on: Revision = -1
        self._tries_at = 0.0
        # Guards changes of `_seen`. The attribute is replaced as a whole, so that any thread may read it.
        self._learning = threading.Lock()
        self._seen = _ObservedLease()
        self._seen_leader = False

    @property
    def key(self) -> Key:
        """The key of the Lease that this candidate competes for."""
        return self._lock.key

    @property
    def identity(self) -> str:
        """The identity that this candidate writes into the lease."""
        return self._lock.identity

    @property
    def lease(self) -> Object | None:
        """The lease as this process last observed it."""
        return self._seen.lease

    @property
    def term(self) -> int:
        """The term in which this process leads; 0 if it does not lead."""
        term = self._term
        return 0 if term is None else term.number

    def has_seen_leader(self) -> bool:
        """Return whether this process knows a leader, which may be this process itself."""
        return self._seen_leader

    def fence(self) -> Fence:
        """Return the fence that a write of the leader must pass.

        Raises `Fenced` if this process does not lead, or may have lost the lease.
        """
        term = self._term
        if term is None:
            raise Fenced("this process does not lead")
        if self._clock.monotonic() >= self._trusted_until(term):
            raise Fenced(f"term {term.number} may be over: the lease was not renewed in time")
        return self._lock.fence(term.number)

    def _trusted_until(self, term: Term) -> float:
        return term.renewed_at + self._timing.renew_deadline

    def problem(self) -> str | None:
        """Return the problem with the leadership, None if there is no problem (client-go's `LeaderElector.Check`)."""
        term = self._term
        if term is None or self._clock.monotonic() < term.renewed_at + self._timing.lease_duration + TOLERANCE:
            return None
        return f"failed election to renew leadership on lease {self._lock.key.name}"

    def foreign_holder(self) -> str:
        """Return the lease's holder if the holder is known not to belong to this control plane; otherwise return "".

        A process writes its own database session into the lease; a process that cannot hold a session, such as one
        behind a pooler, writes none. Therefore a holder with the session of another process is not part of this control
        plane. If the lease contains no session, it is unknown whether the holder is part of this control plane.
        """
        now = self._seen.held
        if self._term is not None or now is None or now.holder in ("", self.identity):
            return ""
        return now.holder if now.session and now.session != self._sessions.name(now.holder) else ""

    def observe(self, lease: Object | None, revision: Revision) -> int:
        """Store the lease that was observed at `revision`.

        Return the lease's term if the lease names this process as its holder, otherwise 0.
        """
        now = self._learn(lease, revision).held
        return now.term if now is not None and now.holder == self.identity else 0

    def _learn(self, lease: Object | None, revision: Revision) -> _ObservedLease:
        """Store the lease that was observed at `revision`, unless a newer lease is already stored.

        Return the newest stored lease.
        """
        with self._learning:
            before = self._seen
            if revision < before.revision:
                return before
            now = None if lease is None else held(lease)
            since = before.since if now == before.held else self._clock.monotonic()
            self._seen = _ObservedLease(revision, lease, now, since)
            return self._seen

    def step(self) -> float:
        """Take the elector's next step.

        Return the time (monotonic seconds) of the following step; if the lease changes before this time, the caller
        calls `step` earlier.

        After an error that this method raises, the process must not write to the log any more.
        """
        now = self._clock.monotonic()
        seen = self._seen
        if self._term is None and self._at_work:
            return _FOR_EVER
        if self._term is None and seen.revision == self._failed_on and now < self._tries_at:
            return self._tries_at
        decision = decide(self._observed(seen), self._term, identity=self.identity, now=now, timing=self._timing)
        return self._act(decision, seen, now)

    def _observed(self, seen: _ObservedLease) -> Observed | None:
        if seen.held is None:
            return None
        gone = self._term is None and self._is_gone(seen.held)
        return Observed(seen.held, seen.since, gone)

    def _is_gone(self, now: ObservedRecord) -> bool:
        """Return whether the database session that the lease names for its holder has ended."""
        is_own = now.session and now.session == self._sessions.name(now.holder)
        return bool(is_own) and self._sessions.has_ended(now.session)

    def _act(self, decision: Decision, seen: _ObservedLease, now: float) -> float:
        match decision:
            case TakeOver(after):
                return self._take_over(after, seen, now)
            case Renew():
                return self._renew(seen, now)
            case StepDown(reason):
                self.step_down(reason)
                return now
            case Wait(until):
                return self._wait(until, seen.held, now)

    def _wait(self, until: float, lease: ObservedRecord | None, now: float) -> float:
        """Return the time of the next step: the decided time, or an earlier time to check the holder's session."""
        self._seen_leader = True
        if self._term is None:
            has_session = lease is not None and lease.session
            return min(until, now + self._sessions.look_again) if has_session else until
        until = min(until, self._trusted_until(self._term))
        if not self._sessions.may_be_lost:
            return until
        self._sessions.hold(self.identity)
        return min(until, now + self._sessions.look_again)

    def _take_over(self, after: int, seen: _ObservedLease, now: float) -> float:
        number = max(after if after < TRUSTED else 0, self._newest_term) + 1
        session = self._sessions.hold(self.identity)
        patience = self._timing.renew_deadline
        try:
            lease = self._lock.take_over(
                seen.lease, number, duration=self._timing.lease_duration, session=session, patience=patience
            )
        except Fenced as error:
            self._newest_term = max(self._newest_term, error.current)
            return now
        except _PASSING as error:
            return self._later("the lease could not be acquired", error, seen, now)
        self._newest_term = number
        self._at_work = True
        self._term = Term(number, now, self._clock.now())
        self._seen_leader = True
        self._took(lease)
        log.info("became leader", identity=self.identity, term=number)
        return now + self._timing.retry_period

    def _renew(self, seen: _ObservedLease, now: float) -> float:
        term = self._term
        assert term is not None, "only the leader renews the lease"
        session = self._sessions.hold(self.identity)
        patience = max(self._trusted_until(term) - self._clock.monotonic(), 0.0)
        try:
            lease = self._lock.renew(
                seen.lease, term, duration=self._timing.lease_duration, session=session, patience=patience
            )
        except Fenced as error:
            self.step_down(str(error))
            return now
        except _PASSING as error:
            return min(self._later("the lease could not be renewed", error, seen, now), self._trusted_until(term))
        if self._term is term:
            self._term = term._replace(renewed_at=now)
        self._took(lease)
        return now + self._timing.retry_period

    def _later(self, what: str, error: Exception, seen: _ObservedLease, now: float) -> float:
        log.warning(what, error=str(error) or type(error).__name__, retry_in=self._timing.retry_period)
        self._failed_on, self._tries_at = seen.revision, now + self._timing.retry_period
        return self._tries_at

    def _took(self, lease: Object) -> None:
        self._learn(lease, lease.revision)

    def step_down(self, reason: str) -> None:
        """End this process's leadership at once; the caller must then end the controllers and call `ended`."""
        term, self._term = self._term, None
        if term is not None:
            log.warning("stopped leading", identity=self.identity, term=term.number, reason=reason)

    def ended(self) -> bool:
        """Record that all controllers of the last term have finished; return whether they were running before."""
        was_at_work, self._at_work = self._at_work, False
        return was_at_work

    def release(self, patience: float) -> None:
        """If all controllers have finished, release the lease and end this process's leadership."""
        term = self._term
        if term is None or self._at_work:
            return
        self._term = None
        log.info("stopped leading", identity=self.identity, term=term.number, reason="released")
        try:
            self._took(self._lock.release(self._seen.lease, term, patience=patience))
        except (Fenced, *_PASSING) as error:
            log.warning("releasing lease failed", error=str(error) or type(error).__name__)

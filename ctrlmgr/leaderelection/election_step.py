"""Decides the next step of an elector, as a pure function of the observed lease and the local monotonic clock.

Guarantees, which hold even if clocks are wrong and even without the log's fence:
- A candidate takes a held lease only after the lease has not changed for its whole duration, *measured by the local
  clock*. A candidate takes a lease earlier only if the lease's holder has released the lease, or is known to have
  ended. The election never compares the times in a lease with a clock.
- A leader regards itself as the leader for `renew_deadline` seconds from the *beginning* of its last successful
  renewal.
- A candidate waits until a certain time or until the lease changes. A candidate never polls the lease.

The three durations and their defaults are those of client-go's `tools/leaderelection`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.errors import SettingsError
from ctrlmgr.leaderelection.lease_record import ObservedRecord

JITTER: Final = 1.2
"""The factor by which `renew_deadline` must exceed `retry_period` (client-go's `JitterFactor`)."""


class Timing(NamedTuple):
    """The durations of the leader election, in seconds.

    A lease is valid for `lease_duration`. A leader tries to renew its lease every `retry_period` seconds, and steps
    down if no renewal has succeeded for `renew_deadline` seconds.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def check(self) -> None:
        """Raise `SettingsError` unless the durations are consistent, by client-go's rules."""
        if self.lease_duration < 1 or self.lease_duration != int(self.lease_duration):
            raise SettingsError("leader_election.lease_duration must be whole seconds, and at least one")
        if self.lease_duration <= self.renew_deadline:
            raise SettingsError("leader_election.lease_duration must be greater than leader_election.renew_deadline")
        if self.retry_period <= 0:
            raise SettingsError("leader_election.retry_period must be greater than zero")
        if self.renew_deadline <= JITTER * self.retry_period:
            raise SettingsError(
                f"leader_election.renew_deadline must be greater than {JITTER} times leader_election.retry_period"
            )


LONGEST: Final = 10
"""The maximum duration of another client's lease that the elector respects, in lease durations of the elector.

The elector limits the duration, because another client may have written any duration into the lease.
"""


class Observed(NamedTuple):
    """The lease that this process observed; `since` is the time of the lease's last change (monotonic seconds)."""

    held: ObservedRecord
    since: float
    holder_is_gone: bool = False


class Term(NamedTuple):
    """The leadership of this process in one term.

    `renewed_at` is the time when the last successful renewal began (monotonic seconds).
    """

    number: int
    renewed_at: float
    acquired_at: int
    """The time when the term began, in microseconds since 1970; no decision depends on this time."""


class TakeOver(NamedTuple):
    """The step that begins the term after the term `after`."""

    after: int


class Renew(NamedTuple):
    """The step that renews the lease."""


class Wait(NamedTuple):
    """The step that waits until `until` (monotonic seconds), or until the lease changes."""

    until: float


class StepDown(NamedTuple):
    """The step that ends this process's leadership."""

    reason: str


Decision: TypeAlias = TakeOver | Renew | Wait | StepDown


def decide(observed: Observed | None, term: Term | None, *, identity: str, now: float, timing: Timing) -> Decision:
    """Return the elector's step at the time `now`.

    `observed` is None if there is no lease; `term` is None if this process does not lead.
    """
    if term is not None:
        return _lead(observed, term, identity, now, timing)
    if observed is None:
        return TakeOver(0)
    held = observed.held
    expires_at = observed.since + min(held.duration, LONGEST * timing.lease_duration)
    # If this process holds the lease without leading, it has stepped down, or does not know that its takeover
    # succeeded.
    if held.holder in ("", identity) or observed.holder_is_gone or now >= expires_at:
        return TakeOver(held.term)
    return Wait(expires_at)


def _lead(observed: Observed | None, term: Term, identity: str, now: float, timing: Timing) -> Decision:
    if observed is not None and observed.held.holder not in ("", identity):
        return StepDown(f"{observed.held.holder} holds the lease")
    trusted_until = term.renewed_at + timing.renew_deadline
    if now >= trusted_until:
        return StepDown(f"the lease could not be renewed for {timing.renew_deadline:g} s")
    renews_at = term.renewed_at + timing.retry_period
    return Renew() if now >= renews_at else Wait(renews_at)

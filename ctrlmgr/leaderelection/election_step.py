"""Decides the next step of an elector, as a pure function of the observed lease and the local monotonic clock.

Guarantees, even with wrong clocks and before the log's fence refuses a write:
- A held lease is taken only after it has been unchanged for its duration, *measured by the local clock*. The lease is
  taken earlier only if its holder is known to have crashed or ended, or has released it. The lease's own times are
  never compared with a clock.
- A leader trusts itself for `renew_deadline` seconds from the *beginning* of its last successful renewal.
- A candidate waits until a certain moment or until the lease changes. A candidate never polls.

The three durations and their defaults are those of client-go's `tools/leaderelection`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.errors import SettingsError
from ctrlmgr.leaderelection.lease_record import ObservedRecord

JITTER: Final = 1.2
"""The factor by which `renew_deadline` must exceed `retry_period` (client-go's `JitterFactor`)."""


class Timing(NamedTuple):
    """The durations of the election, in seconds.

    A lease is valid for `lease_duration`. A leader tries to renew it every `retry_period`, and steps down if it has not
    succeeded for `renew_deadline`.
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
"""The maximum duration of another client's lease that is respected, as a multiple of our own. A client may have written
any number.
"""


class Observed(NamedTuple):
    """The lease as this process sees it; `since` is the time when its content last changed (monotonic seconds)."""

    held: ObservedRecord
    since: float
    holder_is_gone: bool = False


class Term(NamedTuple):
    """The leadership of this process.

    `renewed_at` is the time when the last successful renewal began (monotonic seconds).
    """

    number: int
    renewed_at: float
    acquired_at: int
    """The time when the term began, in microseconds since 1970; used only for display."""


class TakeOver(NamedTuple):
    """The step that begins the term after the term `after`."""

    after: int


class Renew(NamedTuple):
    """The step that renews the lease."""


class Wait(NamedTuple):
    """The step that waits until `until` (monotonic seconds), or until the lease changes."""

    until: float


class StepDown(NamedTuple):
    """Stop leading."""

    reason: str


Decision: TypeAlias = TakeOver | Renew | Wait | StepDown


def decide(observed: Observed | None, term: Term | None, *, identity: str, now: float, timing: Timing) -> Decision:
    """Return the step at the time `now`.

    `observed` is None if there is no lease, `term` is None unless this process leads.
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

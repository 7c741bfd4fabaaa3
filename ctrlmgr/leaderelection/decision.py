"""What an elector is to do next: decided purely, from what it has seen and its own clock.

Guarantees, whichever clocks go wrong, and before the log's fence even has to say no:
- A lease that is held is not taken before it has stood still, *as seen by our own clock*, for as long as it is
  good for; unless its holder is known to be gone, or has given it back. Its times are never compared with our clock.
- A leader trusts itself only for `renew_deadline` seconds from when it *began* the last renewal that succeeded.
- A candidate waits for one exact moment, or for the lease to change: none polls.

After client-go's `tools/leaderelection`, which is where the three durations and their defaults come from.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.errors import SettingsError
from ctrlmgr.leaderelection.record import Held

JITTER: Final = 1.2
"""By how much `renew_deadline` must exceed `retry_period` (client-go's `JitterFactor`)."""


class Timing(NamedTuple):
    """Durations in seconds.

    A lease is good for `lease_duration`; a leader gives up when it could not renew it for `renew_deadline`, and tries
    to every `retry_period`.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def check(self) -> None:
        """Raise `SettingsError` unless they go together, in what client-go's words come to."""
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
"""How many times our own lease's duration another's is waited for: its number is what a client may have written."""


class Observed(NamedTuple):
    """A lease as we see it: it has said this since `since` (our monotonic seconds)."""

    held: Held
    since: float
    holder_is_gone: bool = False


class Term(NamedTuple):
    """Our own leadership; `renewed_at` is when we began the last renewal that succeeded (monotonic seconds)."""

    number: int
    renewed_at: float
    acquired_at: int
    """When it began, in microseconds since 1970: for people."""


class TakeOver(NamedTuple):
    """Begin the term after `after`."""

    after: int


class Renew(NamedTuple):
    """Renew the lease."""


class Wait(NamedTuple):
    """Do nothing until `until` (monotonic seconds), or until the lease changes."""

    until: float


class StepDown(NamedTuple):
    """Lead no longer."""

    reason: str


Decision: TypeAlias = TakeOver | Renew | Wait | StepDown


def decide(observed: Observed | None, term: Term | None, *, identity: str, now: float, timing: Timing) -> Decision:
    """Return what to do at `now`; `observed` is None when there is no lease, `term` when we do not lead."""
    if term is not None:
        return _lead(observed, term, identity, now, timing)
    if observed is None:
        return TakeOver(0)
    held = observed.held
    expires_at = observed.since + min(held.duration, LONGEST * timing.lease_duration)
    # Holding it without leading, we have stepped down, or never learned that taking it had succeeded.
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

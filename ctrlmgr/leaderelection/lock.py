"""The Lease in the log: how it is taken, renewed and given back.

Guarantees:
- Taking over is an append like any other, with a fence that starts the term: from that revision on the log refuses
  every append of an older term, wherever its author was frozen.
- Renewing and giving back carry the fence of their term, so an old leader's late renewal is refused, too.
- Every write is conditional on the lease as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import Author, EventLog, EventType, Fence, Proposal
from ctrlmgr.leaderelection.decision import Term
from ctrlmgr.leaderelection.record import RELEASED_FOR, LeaseRecord, write


class LeaseLock:
    """One Lease, as its candidates write it; what is seen of it comes from an informer."""

    def __init__(
        self, event_log: EventLog, key: Key, *, identity: str, author: Author, clock: Clock, new_uid: Callable[[], str]
    ) -> None:
        """Write the Lease `key` in the name of the candidate `identity`."""
        self.key = key
        self.identity = identity
        self._log = event_log
        self._author = author
        self._clock = clock
        self._new_uid = new_uid

    @property
    def name(self) -> str:
        """What the log knows it by."""
        return f"{LEASES}/{self.key}"

    def fence(self, term: int) -> Fence:
        """Return the fence of a term."""
        return Fence(self.name, term)

    def take_over(self, seen: Object | None, term: int, *, duration: float, session: str, patience: float) -> Object:
        """Begin `term` and return the lease; `seen` is what it was until now.

        All three raise what `append` raises, and `TimeoutError` after `patience` seconds, when it is still under way.
        """
        now = self._clock.now()
        record = LeaseRecord(self.identity, term, duration, now, now, session)
        return self._append(seen, record, Fence(self.name, term, takeover=True), patience)

    def renew(self, seen: Object | None, term: Term, *, duration: float, session: str, patience: float) -> Object:
        """Say that the holder lives; a lease that was deleted is made anew."""
        record = LeaseRecord(self.identity, term.number, duration, term.acquired_at, self._clock.now(), session)
        return self._append(seen, record, self.fence(term.number), patience)

    def release(self, seen: Object | None, term: Term, *, patience: float) -> Object:
        """Give the lease back: a candidate that sees it may take it at once."""
        now = self._clock.now()
        record = LeaseRecord("", term.number, RELEASED_FOR, now, now)
        return self._append(seen, record, self.fence(term.number), patience)

    def _append(self, seen: Object | None, record: LeaseRecord, fence: Fence, patience: float) -> Object:
        lease = write(self.key, seen, record, uid=self._new_uid() if seen is None else "")
        kind = EventType.ADDED if seen is None else EventType.MODIFIED
        proposal = Proposal(kind, lease, 0 if seen is None else seen.revision)
        appending = self._log.submit([proposal], author=self._author, fence=fence)
        return appending.result(patience)[0].object

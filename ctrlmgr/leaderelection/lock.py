"""Writes the Lease in the log: takes, renews and releases it.

Guarantees:
- A takeover is an append whose fence begins a new term. From the revision of the takeover on, the log refuses every
  append of an older term, even if a suspended process continues.
- Renewals and releases contain the fence of their term, so the log refuses the late renewal of an old leader.
- Every write of the Lease is conditional on the revision of the Lease that was read.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import Author, EventLog, EventType, Fence, Proposal
from ctrlmgr.leaderelection.election_step import Term
from ctrlmgr.leaderelection.lease_record import RELEASED_FOR, LeaseRecord, write


class LeaseLock:
    """Writes one Lease for a candidate; the candidate reads the Lease through an informer."""

    def __init__(
        self, event_log: EventLog, key: Key, *, identity: str, author: Author, clock: Clock, new_uid: Callable[[], str]
    ) -> None:
        """Create an instance that writes the Lease `key` for the candidate `identity`."""
        self.key = key
        self.identity = identity
        self._log = event_log
        self._author = author
        self._clock = clock
        self._new_uid = new_uid

    @property
    def name(self) -> str:
        """The name of the fence in the log."""
        return f"{LEASES}/{self.key}"

    def fence(self, term: int) -> Fence:
        """Return the fence of a leader's term."""
        return Fence(self.name, term)

    def take_over(self, seen: Object | None, term: int, *, duration: float, session: str, patience: float) -> Object:
        """Begin the term `term` and return the new lease; `seen` is the lease before the takeover.

        All methods that write raise the errors of `append`, and `TimeoutError` if the append takes more than `patience`
        seconds.
        """
        now = self._clock.now()
        record = LeaseRecord(self.identity, term, duration, now, now, session)
        return self._append(seen, record, Fence(self.name, term, takeover=True), patience)

    def renew(self, seen: Object | None, term: Term, *, duration: float, session: str, patience: float) -> Object:
        """Renew the Lease; if the Lease was deleted, create it again."""
        record = LeaseRecord(self.identity, term.number, duration, term.acquired_at, self._clock.now(), session)
        return self._append(seen, record, self.fence(term.number), patience)

    def release(self, seen: Object | None, term: Term, *, patience: float) -> Object:
        """Release the Lease, so that another candidate can take the Lease at once."""
        now = self._clock.now()
        record = LeaseRecord("", term.number, RELEASED_FOR, now, now)
        return self._append(seen, record, self.fence(term.number), patience)

    def _append(self, seen: Object | None, record: LeaseRecord, fence: Fence, patience: float) -> Object:
        lease = write(self.key, seen, record, uid=self._new_uid() if seen is None else "")
        kind = EventType.ADDED if seen is None else EventType.MODIFIED
        proposal = Proposal(kind, lease, 0 if seen is None else seen.revision)
        appending = self._log.submit([proposal], author=self._author, fence=fence)
        return appending.result(patience)[0].object

"""Candidates of a leader election on one log in memory; each candidate has its own caches."""

from __future__ import annotations

from random import Random

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.eventlog.session import NoSessions, Sessions
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.leaderelection import Elector, LeaseLock, Timing
from ctrlmgr.testing import FakeClock

KEY = Key("kube-system", "ctrlmgr")
ALICE = Author("alice")


class SharedClockAndLog:
    """The clock and the log that all candidates share."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=Random(1))

    @property
    def lease(self) -> Object:
        lease = self.log.get(LEASES, KEY)
        assert lease is not None
        return lease

    def write(self, lease: Object, revision: int) -> None:
        """Write the Lease as a client that is not a candidate."""
        self.log.append([Proposal(EventType.MODIFIED, lease, revision)], author=ALICE)

    def delete(self) -> None:
        """Delete the Lease as a client that is not a candidate."""
        self.log.append([Proposal(EventType.DELETED, self.lease, self.lease.revision)], author=ALICE)


class Candidate:
    """An elector that reads the Lease from informers; `hear` updates these informers."""

    def __init__(self, shared: SharedClockAndLog, identity: str, *, sessions: Sessions | None = None) -> None:
        lock = LeaseLock(
            shared.log,
            KEY,
            identity=identity,
            author=Author("system:controller:leader-election"),
            clock=shared.clock,
            new_uid=lambda: f"uid-by-{identity}",
        )
        self.elector = Elector(lock, sessions or NoSessions(), Timing(), clock=shared.clock)
        feed = EventWindow(shared.log, clock=shared.clock)
        self.informers = Informers(shared.log, feed, clock=shared.clock)
        self.informers.informer(LEASES).add_handler(self._on_lease)

    def _on_lease(self, change: Change) -> None:
        self.elector.observe(change.new, change.revision)

    def hear(self) -> None:
        """Update the caches to the newest revision of the log."""
        if not self.informers.has_synced():
            self.informers.sync()
        while self.informers.step():
            pass

    def step(self) -> float:
        """Update the caches, and run a step of the elector."""
        self.hear()
        return self.elector.step()

"""The seam: one event log, three implementations (`memory`, `sqlite`, `postgres`), one contract suite.

Every implementation guarantees:
- **Order.** Revisions are gapless and commit order is revision order: who has seen revision n has missed nothing
  below it. (Two exceptions are recorded: a restore from backup, which starts a new incarnation, and what was imported
  with revisions of its own, `imports`. Commit order is revision order there too.)
- **Atomic, conditional.** The proposals of one append become events together or not at all; each is checked
  against the object's current revision, and its Namespace's if it names that (`Proposal.within`), under the same
  lock that assigns the new ones.
- **Durable.** When `append` returns, its events survive the death of the process and, on SQLite and PostgreSQL,
  of the machine.
- **Definite.** An append that raised anything but `OutcomeUnknown` is not in the log and never will be.
- **Fenced.** See `Fence`.
- **Evident.** Each event carries a hash chained to the one before it (`eventlog.chain`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import Author, Cause, Event, Failure, Fence, Head, Outcome, Proposal, Reconcile, Snapshot
from ctrlmgr.eventlog.imports import Imported, Stretch


class Appending(Protocol):
    """An append under way."""

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        """Wait (seconds) for its events, or raise what the append raised; `TimeoutError` leaves it under way."""

    def add_done_callback(self, done: Callable[[Appending], None]) -> None:
        """Call `done` once it has ended, at once if it has; on the committer's thread, so return quickly."""


class EventLog(Protocol):
    """See the module's docstring for what holds, whichever the implementation."""

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Appending:
        """Queue an append and return at once; raises `TooManyRequests` when too many wait already."""

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Append atomically and durably.

        Raises `AlreadyExists` (ADDED, but it exists), `NotFound` (it, or the Namespace it was to be within, does not
        exist), `Conflict` (one of these is at another revision), `Fenced`, `LogUnavailable`, `OutcomeUnknown`,
        `TooManyRequests`, `LogClosed`.
        """

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Add recorded events, atomically and durably, at the revisions they were recorded at; return what they became.

        Revisions must ascend and be beyond the head. `imports` decides on the type that an event has in the log. The
        caller's thread does it, between two groups of appends. Raises `BadRequest` for a revision that is not beyond
        the one before, `LogUnavailable`, `OutcomeUnknown`, `LogClosed`.
        """

    def imports(self) -> Sequence[Stretch]:
        """Return the parts of the log that were imported, oldest first: there, and only there, revisions have gaps."""

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Record how a reconcile that appended something ended; queued, not waited for."""

    def record_failure(self, failure: Failure) -> None:
        """Record a failure, or bring its record up to date; queued, not waited for. See `FAILURES_KEPT`."""

    def failures(self) -> Sequence[Failure]:
        """Return the recorded failures, also those that have ended; the one that failed last comes first."""

    def flush(self) -> None:
        """Wait until everything queued so far, outcomes included, is in the log."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return what is known of a reconcile, by the id its events carry."""

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, ascending; of one resource if given.

        Raises `Expired` if compaction has removed an event the caller would have to see.
        """

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return what exists now, or existed at revision `at`; all resources unless one is given.

        Raises `Expired` if compaction has passed `at`, `BadRequest` if `at` is beyond the head.
        """

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return what existed of each of `resources` at revision `at`, in one read where there is a database to ask.

        Raises as `snapshot` does.
        """

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object now or at a revision, None if it did not exist; raises as `snapshot` does."""

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return those of some objects that existed at revision `at`, in few reads; raises as `snapshot` does."""

    def head(self) -> Head:
        """Return where the log ends."""

    def peek(self) -> Revision | None:
        """Return the newest revision, by whichever process, if it can be known in microseconds.

        None when finding out takes a round trip: then ask `head`, on a thread that may wait.
        """

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` (None: any of them) has been compacted."""

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment` (microseconds since 1970), 0 if none."""

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Forget superseded events and return how many rows went.

        An event goes if its successor is at or below `before`, it is not among the newest `keep` events of
        its object, and its resource is the one given (None: every one). Deletions at or below `before` go
        too, once nothing older of that object is kept. Each object's current state always stays.
        """

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` on, compacted stretches left out, for verify and export."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is beyond `after`, by whichever process, or `timeout` seconds; return the head."""

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Have `observer` called with the events of each of this process's commits, in revision order.

        It runs on the committing thread, right after the commit and before the appenders wake.
        """

    def close(self) -> None:
        """Finish what is queued, write the anchor, release everything. Further calls raise `LogClosed`."""

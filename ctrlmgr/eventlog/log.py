"""The event log's protocol, which `memory_log`, `sqlite` and `postgres` implement; one contract suite tests all three.

Every implementation guarantees:

- **Order.** Revisions have no gaps, and commit order is revision order. A reader of revision n has missed no earlier
  event. Gaps exist only where the log records them: after a restore from backup, which starts a new incarnation, and in
  stretches that were imported with their own revisions (`imports`).
- **Atomic, conditional.** The proposals of one append become events together or not at all. Under the lock that assigns
  revisions, the log checks each against the object's current revision, and against its Namespace's if `Proposal.within`
  is given.
- **Durable.** When `append` returns, its events survive the death of the process and, on SQLite and PostgreSQL, of the
  machine.
- **Definite.** An append that raised anything but `OutcomeUnknown` is not in the log and never will be.
- **Fenced.** See `Fence`.
- **Tamper-evident.** Each event carries a hash chained to the one before it (`eventlog.hash_chain`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import Author, Cause, Event, Failure, Fence, Head, Outcome, Proposal, Reconcile, Snapshot
from ctrlmgr.eventlog.imports import Imported, Stretch


class Appending(Protocol):
    """A submitted append."""

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        """Wait up to `timeout` seconds and return its events, or raise its error; `TimeoutError` does not cancel it."""

    def add_done_callback(self, done: Callable[[Appending], None]) -> None:
        """Call `done` when the append has finished, on the committer's thread; `done` must return quickly."""


class EventLog(Protocol):
    """An append-only log of all changes of objects; the module's docstring states its guarantees."""

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Appending:
        """Queue an append and return at once; raises `TooManyRequests` if too many appends are queued."""

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Append atomically and durably.

        Raises `AlreadyExists` (ADDED, but the object exists), `NotFound` (the object or its `within` Namespace does not
        exist), `Conflict` (one of these is at another revision), `Fenced`, `LogUnavailable`, `OutcomeUnknown`,
        `TooManyRequests`, `LogClosed`.
        """

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Add recorded events atomically and durably, at their recorded revisions; return the stored events.

        Revisions must ascend and be greater than the head. Types are corrected as `imports` says. The caller's thread
        writes them, between two groups of appends. Raises `BadRequest` for a revision that is not greater than the
        previous one, `LogUnavailable`, `OutcomeUnknown`, `LogClosed`.
        """

    def imports(self) -> Sequence[Stretch]:
        """Return the imported stretches, oldest first. Only there do revisions have gaps."""

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Queue the outcome of a reconcile that appended events."""

    def record_failure(self, failure: Failure) -> None:
        """Queue a failure record, new or updated. The log keeps `FAILURES_KEPT` of them."""

    def failures(self) -> Sequence[Failure]:
        """Return the recorded failures, ended ones included, most recent failure first."""

    def flush(self) -> None:
        """Wait until everything queued so far, outcomes included, is in the log."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return a recorded reconcile by its id, None if the log has none."""

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, ascending; only of `resource` if given.

        Raises `Expired` if compaction has removed an event that the caller would have to see.
        """

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that exist now, or existed at revision `at`; of all resources unless one is given.

        Raises `Expired` if compaction has passed `at`, `BadRequest` if `at` is beyond the head.
        """

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`; SQL logs use one read.

        Raises the same errors as `snapshot`.
        """

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object now or at a revision, None if it did not exist; raises as `snapshot` does."""

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return those of `keys` that existed at revision `at`, in few reads; raises as `snapshot` does."""

    def head(self) -> Head:
        """Return where the log ends."""

    def peek(self) -> Revision | None:
        """Return the newest revision of any process, if that takes only microseconds.

        Return None if it needs a round trip. Then call `head`, on a thread that may block.
        """

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` (None: any resource) has been compacted."""

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment` (microseconds since 1970), 0 if none."""

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Remove superseded events and return the number of removed rows.

        An event is removed if its successor is at or below `before`, it is not among the newest `keep` events of its
        object, and it has the given resource (None: any). A deletion at or below `before` is removed too, if no older
        event of its object is kept. Each object's current state is kept.
        """

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` on, for verification and export."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after`, or for `timeout` seconds; return the head."""

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call `observer` with the events of each of this process's commits, in revision order.

        It runs on the committing thread, after the commit and before the waiting appenders continue.
        """

    def close(self) -> None:
        """Commit the queue, write the anchor, and release all resources. Further calls raise `LogClosed`."""

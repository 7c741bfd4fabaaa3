"""The event log's protocol, which the modules `memory_log`, `sqlite` and `postgres` implement.

One contract suite tests all three logs. Every implementation guarantees:

- **Order.** Revisions have no gaps, and commit order is revision order. When a reader sees revision n, all earlier
  events are visible, too. Gaps exist only where the log records them: after a restore from backup, which starts a new
  incarnation, and in ranges that were imported with their own revisions (`imports`).
- **Atomic, conditional.** Either all proposals of one append become events, or none. Under the lock that assigns
  revisions, the log compares each proposal's expected revision with the object's current revision. If `Proposal.within`
  is given, the log also compares `within` with the current revision of the Namespace.
- **Durable.** When `append` returns, its events survive a crash of the process and, on SQLite and PostgreSQL, also a
  crash of the machine.
- **Definite.** An append that raised an error other than `OutcomeUnknown` is not in the log and never will be.
- **Fenced.** See `Fence`.
- **Tamper-evident.** Each event has a hash that includes the hash of the event before it (`eventlog.hash_chain`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import Author, Cause, Event, Failure, Fence, Head, Outcome, Proposal, Reconcile, Snapshot
from ctrlmgr.eventlog.imports import Imported, ImportedRange


class Appending(Protocol):
    """A submitted append."""

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        """Wait for the append for up to `timeout` seconds; return the events, or raise the error.

        `TimeoutError` does not mean that the append is cancelled.
        """

    def add_done_callback(self, done: Callable[[Appending], None]) -> None:
        """Call `done` when the append has finished, on the committer's thread; `done` must return quickly."""


class EventLog(Protocol):
    """An append-only log of all changes of objects; the module's docstring states its guarantees."""

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Appending:
        """Queue an append and return immediately; raises `TooManyRequests` if too many appends are queued."""

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Append proposals atomically and durably, and return the events.

        Raises `AlreadyExists` (ADDED, but the object exists), `NotFound` (the object or its `within` Namespace does not
        exist), `Conflict` (the object or the Namespace has another revision), `Fenced`, `LogUnavailable`,
        `OutcomeUnknown`, `TooManyRequests`, `LogClosed`.
        """

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Add recorded events atomically and durably, at their recorded revisions; return the stored events.

        The recorded revisions must ascend and be greater than the head. The module `imports` describes how the types of
        these events are corrected. The thread of the caller writes the events, between two groups of appends. Raises
        `BadRequest` if a revision is not greater than the previous one; also raises `LogUnavailable`, `OutcomeUnknown`
        and `LogClosed` as `append` does.
        """

    def imports(self) -> Sequence[ImportedRange]:
        """Return the imported ranges, oldest first. Revisions have gaps only within these ranges."""

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Queue the outcome of a reconcile that appended events."""

    def record_failure(self, failure: Failure) -> None:
        """Queue a new or updated failure record. The log keeps the most recent `FAILURES_KEPT` records."""

    def failures(self) -> Sequence[Failure]:
        """Return the recorded failures, including failures that have ended, the most recent first."""

    def flush(self) -> None:
        """Wait until everything that was queued so far, including outcomes, is in the log."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return the recorded reconcile with this id; None if the log does not contain it."""

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return the trace contexts of events whose appends were traced, in the order of the revisions.

        Compaction removes the trace context of an event together with the event.
        """

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, in ascending order; if `resource` is given, only its events.

        Raises `Expired` if compaction has removed an event that belongs to the result.
        """

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that exist now, or existed at revision `at`.

        If `resource` is given, return only objects of the resource. Raises `Expired` if compaction has passed `at`,
        and `BadRequest` if `at` is beyond the head.
        """

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`; the SQL logs read all of them with one query.

        The method raises the errors of `snapshot`.
        """

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object as it is now or was at a revision; None if it did not exist.

        Raises the errors of `snapshot`.
        """

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the objects of `keys` that existed at revision `at`, with few queries.

        Raises the errors of `snapshot`.
        """

    def head(self) -> Head:
        """Return the head of the log: its incarnation, newest revision and hash."""

    def peek(self) -> Revision | None:
        """Return the newest revision that any process has written, if that takes only microseconds.

        The method returns None if the answer needs a round trip to the database; the caller must then call `head`, on a
        thread that may block.
        """

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` has been compacted; None means the highest of all resources."""

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment` (microseconds since 1970); 0 if there is none."""

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Remove superseded events and return the number of removed events.

        Events of `resource` are removed; None means all resources. An event is removed if the next event of its object
        is at or below `before`, and the event is not among the newest `keep` events of its object. A DELETED event at
        or below `before` is also removed, if no older event of its object is kept. A compaction keeps the current state
        of each object.
        """

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from revision `start` on, for verification and export."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after`, or for `timeout` seconds; return the head."""

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call `observer` with the events of each of this process's commits, in revision order.

        The function `observer` runs on the committing thread, after the commit and before the waiting appenders
        continue.
        """

    def close(self) -> None:
        """Commit all queued appends, write the anchor, and release all resources.

        After `close`, further calls raise `LogClosed`.
        """

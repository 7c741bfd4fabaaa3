"""A read-only view of a log as of one revision.

Guarantees:
- Every read of a view returns the result that the log returned when the view's revision was the newest. If compaction
  has removed events that a read needs, the read raises `Expired`. Later appends to the log are not visible in the view.
- Appends to the view are refused (`Forbidden`).
- Snapshots do not contain a resource that was compacted beyond the view's revision.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import BadRequest, Forbidden, LogClosed
from ctrlmgr.eventlog.event import Author, Cause, Event, Failure, Fence, Head, Outcome, Proposal, Reconcile, Snapshot
from ctrlmgr.eventlog.imports import Imported, ImportedRange
from ctrlmgr.eventlog.log import Appending, EventLog


class HistoricalLog:
    """A read-only `EventLog` that ends at one revision of another log."""

    def __init__(
        self, log: EventLog, at: Revision, *, clock: Clock, resources: Collection[Resource] | None = None
    ) -> None:
        """Create a view of `log` as it was at revision `at`; closing the view closes `log`.

        A snapshot without a resource contains only the objects of `resources`, whose states at `at` are known. If
        `resources` is None, the snapshot contains all resources.
        """
        self._log = log
        self._at = at
        self._clock = clock
        self._resources = None if resources is None else sorted(resources, key=str)
        self._changed = threading.Condition()
        self._closed = False

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Appending:
        """Raise `Forbidden`, because a view of the past is read-only."""
        raise self._refusal()

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Raise `Forbidden`, because a view of the past is read-only."""
        raise self._refusal()

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Raise `Forbidden`, because a view of the past is read-only."""
        raise self._refusal()

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Raise `Forbidden`, because a view of the past is read-only."""
        raise self._refusal()

    def _refusal(self) -> Forbidden:
        return Forbidden(f"this is the log as it was at revision {self._at}; it is read-only")

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Do nothing, because a view accepts no appends, so there is no reconcile to record."""

    def record_failure(self, failure: Failure) -> None:
        """Do nothing, because the view is read-only."""

    def failures(self) -> Sequence[Failure]:
        """Return the failures of the underlying log, including those after this revision."""
        return self._log.failures()

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return the trace contexts of the underlying log."""
        return self._log.traces(revisions)

    def flush(self) -> None:
        """Return immediately, because this log has no queue."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return the recorded reconcile with this id; None if there is none."""
        return self._log.reconcile(id)

    def imports(self) -> Sequence[ImportedRange]:
        """Return the imported ranges of revisions up to this view's revision."""
        before = (each for each in self._log.imports() if each.after < self._at)
        return [each._replace(last=min(each.last, self._at)) for each in before]

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`, up to the view's revision."""
        if revision >= self._at:
            return []
        events = self._log.events_after(revision, resource=resource, limit=limit)
        return list(takewhile(self._has_happened, events))

    def _has_happened(self, event: Event) -> bool:
        return event.revision <= self._at

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that existed at the view's revision, or at an older revision."""
        revision = self._readable(at)
        if resource is not None or self._resources is None:
            return self._log.snapshot(resource, namespace=namespace, at=revision)
        found: list[Object] = []
        for each in self._resources:
            found += self._log.snapshot(each, namespace=namespace, at=revision).objects
        return Snapshot(revision, found)

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`, which is the view's revision or an older one."""
        return self._log.snapshots(resources, at=self._readable(at))

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object as it was at the view's revision, or at an older revision."""
        return self._log.get(resource, key, at=self._readable(at))

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the objects of `keys` that existed at revision `at`, which is the view's revision or an older one."""
        return self._log.states(resource, keys, at=self._readable(at))

    def _readable(self, at: Revision | None) -> Revision:
        if at is not None and at > self._at:
            raise BadRequest(f"revision {at} is beyond the head, {self._at}")
        return self._at if at is None else at

    def head(self) -> Head:
        """Return this view's revision with the hash of the log's current head.

        Raises an error if the log cannot be reached.
        """
        return self._log.head()._replace(revision=self._at)

    def peek(self) -> Revision:
        """Return the view's revision, which never changes."""
        if self._closed:
            raise LogClosed
        return self._at

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` has been compacted; None means the highest of all resources."""
        return self._log.floor(resource)

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment`, at most the view's revision."""
        return min(self._log.revision_at(moment), self._at)

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` to the view's revision."""
        return takewhile(self._has_happened, self._log.scan(start=start))

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Return the view's revision, which never changes.

        If `after` is not below the view's revision, first wait `timeout` seconds, because no further event can arrive.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while self._at <= after:
                if self._closed:
                    raise LogClosed
                left = None if deadline is None else deadline - self._clock.monotonic()
                if (left is not None and left <= 0) or not self._clock.wait(self._changed, left):
                    break
        return self._at

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Do nothing, because a view never commits events."""

    def close(self) -> None:
        """Close the underlying log, and wake all waiting threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._log.close()

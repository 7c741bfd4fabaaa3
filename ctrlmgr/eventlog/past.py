"""A log as it was at some revision: nothing later exists, and nothing can be added.

Guarantees:
- Every read answers what the log itself would have answered when that revision was its newest, for as long as
  compaction has not taken it; then it is `Expired`, as ever. What others append to the log meanwhile is not seen.
- Nothing is written, for any caller: appends are refused (`Forbidden`).
- Of a resource that was compacted by itself beyond that revision nothing is known, and nothing is told in a snapshot.
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
from ctrlmgr.eventlog.imports import Imported, Stretch
from ctrlmgr.eventlog.log import Appending, EventLog


class PastLog:
    """An `EventLog` that ends at a revision of another one, and stays there."""

    def __init__(
        self, log: EventLog, at: Revision, *, clock: Clock, resources: Collection[Resource] | None = None
    ) -> None:
        """Show `log` as it was at `at`.

        A snapshot of everything is made of `resources`: all of which something is known; None when that is simply all.
        Takes over `log` and closes it with itself.
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
        """Refuse."""
        raise self._refusal()

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Refuse."""
        raise self._refusal()

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Refuse."""
        raise self._refusal()

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Refuse."""
        raise self._refusal()

    def _refusal(self) -> Forbidden:
        return Forbidden(f"this is the log as it was at revision {self._at}; it is read-only")

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Return: without appends there is no reconcile to record anything about."""

    def record_failure(self, failure: Failure) -> None:
        """Return: nothing is written to a log of the past."""

    def failures(self) -> Sequence[Failure]:
        """Return the failures of the log itself, also later ones: their times say when they were."""
        return self._log.failures()

    def flush(self) -> None:
        """Return: nothing is ever queued."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return what is known of a reconcile."""
        return self._log.reconcile(id)

    def imports(self) -> Sequence[Stretch]:
        """Return the parts that were imported."""
        before = (each for each in self._log.imports() if each.after < self._at)
        return [each._replace(last=min(each.last, self._at)) for each in before]

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`; none after the one we are at."""
        if revision >= self._at:
            return []
        events = self._log.events_after(revision, resource=resource, limit=limit)
        return list(takewhile(self._has_happened, events))

    def _has_happened(self, event: Event) -> bool:
        return event.revision <= self._at

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return what existed at our revision, or at an older one."""
        revision = self._readable(at)
        if resource is not None or self._resources is None:
            return self._log.snapshot(resource, namespace=namespace, at=revision)
        found: list[Object] = []
        for each in self._resources:
            found += self._log.snapshot(each, namespace=namespace, at=revision).objects
        return Snapshot(revision, found)

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return what existed of each of `resources` at revision `at`, which is ours or an older one."""
        return self._log.snapshots(resources, at=self._readable(at))

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object as it was at our revision, or at an older one."""
        return self._log.get(resource, key, at=self._readable(at))

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return those of some objects that existed at revision `at`, which is ours or an older one."""
        return self._log.states(resource, keys, at=self._readable(at))

    def _readable(self, at: Revision | None) -> Revision:
        if at is not None and at > self._at:
            raise BadRequest(f"revision {at} is beyond the head, {self._at}")
        return self._at if at is None else at

    def head(self) -> Head:
        """Return where we are; asks the log, so it fails when that cannot be reached. The hash is the log's now."""
        return self._log.head()._replace(revision=self._at)

    def peek(self) -> Revision:
        """Return the revision we are at."""
        if self._closed:
            raise LogClosed
        return self._at

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` (None: any of them) has been compacted."""
        return self._log.floor(resource)

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment`, none after the one we are at."""
        return min(self._log.revision_at(moment), self._at)

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` on, up to our revision."""
        return takewhile(self._has_happened, self._log.scan(start=start))

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block for `timeout` seconds, for nothing ever comes after our revision; return that."""
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
        """Return: there will be no commits."""

    def close(self) -> None:
        """Close the log, and wake all that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._log.close()

"""A client for what the log keeps for itself: `internal.ctrlmgr.io`, and nothing else.

Objects of the API are written through the engine (`EngineClient`); this client knows neither schemas nor admission.

Guarantees:
- Every write is conditional on the revision the caller read (`obj.revision`): no other change is overwritten
  unseen. What the log refuses, it raises in the log's own words; what was refused changed nothing.
- A write carries the author, the fence as it stands at that moment, and the reconcile it comes from. No reconcile
  begins when there is no fence to be had.
- An update that changes no byte appends nothing.
- uid, creationTimestamp and the mark of a deletion under way belong to the server: an update cannot change them.
- An object with finalizers is only marked as deleted, and goes with its last finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.client.fencing import Fencing, pinned
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.engine.patch import merge_patch
from ctrlmgr.engine.verbs.canonical import keeping_server_owned
from ctrlmgr.errors import NotFound, OutcomeUnknown
from ctrlmgr.eventlog.event import Author, Cause, EventType, Proposal
from ctrlmgr.eventlog.log import EventLog


class LogClient:
    """A `Client` that writes straight to an event log. Threads may share one, or take one a reconcile."""

    def __init__(
        self,
        log: EventLog,
        *,
        author: Author,
        clock: Clock,
        new_uid: Callable[[], str],
        fence: Fencing | None = None,
        cause: Cause | None = None,
    ) -> None:
        """Write as `author`, with what `fence` returns at each append (no fence if it returns None).

        `fence` may raise `Fenced`: this process has ceased to lead.
        """
        self._log = log
        self._author = author
        self._clock = clock
        self._new_uid = new_uid
        self._fence = fence
        self._cause = cause
        self.wrote = False
        """Whether this client appended anything, or may have (`OutcomeUnknown`)."""

    @property
    def changed_by(self) -> Collection[str]:
        """Nothing: what it writes meets no admission."""
        return ()

    def for_reconcile(self, cause: Cause) -> LogClient:
        """Return the same client for one reconcile: its appends carry `cause`, its `wrote` starts False."""
        return LogClient(
            self._log,
            author=self._author,
            clock=self._clock,
            new_uid=self._new_uid,
            fence=pinned(self._fence),
            cause=cause,
        )

    def create(self, obj: Object) -> Object:
        """Store a new object; see `Client`. Its generation stays as it is."""
        created = obj.with_metadata(uid=self._new_uid(), creation_timestamp=self._now())
        return self._append(EventType.ADDED, created, 0)

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace an object; see `Client`. The log knows no parts: all of `obj` is written, whatever `subresource`."""
        current = self._current(obj)
        if current is None:
            return self._append(EventType.MODIFIED, obj, obj.revision)
        wanted = keeping_server_owned(obj, current.metadata)
        if _is_finished(wanted.metadata):
            return self._append(EventType.DELETED, wanted, obj.revision)
        if wanted.body == current.body:
            return current
        return self._append(EventType.MODIFIED, wanted, obj.revision)

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Merge a patch into the object of this name, whatever it has become; lists are replaced. Raises `NotFound`."""
        current = self._log.get(obj.resource, obj.key)
        if current is None:
            raise NotFound(f"there is no {obj.resource} {obj.key}")
        merged = merge_patch(current.to_dict(), patch, has_nulls=False)
        return self.update(Object.from_dict(merged).at(current.revision), subresource)

    def delete(self, obj: Object) -> None:
        """Delete an object; see `Client`. Deleting what is terminating already changes nothing."""
        current = self._current(obj)
        if current is None or not current.metadata.finalizers:
            self._append(EventType.DELETED, current or obj, obj.revision)
        elif not current.is_terminating:
            marked = current.with_metadata(deletion_timestamp=self._now(), deletion_grace_period_seconds=0)
            self._append(EventType.MODIFIED, marked, obj.revision)

    def _now(self) -> str:
        return format_time_seconds(self._clock.now())

    def _current(self, obj: Object) -> Object | None:
        """Return what is stored if it is what the caller read; None is for the log to refuse, in its words."""
        current = self._log.get(obj.resource, obj.key)
        return current if current is not None and current.revision == obj.revision else None

    def _append(self, type: EventType, obj: Object, expected: int) -> Object:
        fence = self._fence() if self._fence is not None else None
        try:
            events = self._log.append(
                [Proposal(type, obj, expected)], author=self._author, fence=fence, cause=self._cause
            )
        except OutcomeUnknown:
            self.wrote = True
            raise
        self.wrote = True
        return events[0].object


def _is_finished(metadata: ObjectMeta) -> bool:
    """Whether nothing holds a terminating object any more (`registry.ShouldDeleteDuringUpdate`)."""
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
    )

"""A client for ctrlmgr's internal objects in the log, which have the API group `internal.ctrlmgr.io`.

Controllers write the API's objects through the engine (`EngineClient`). The client for internal objects uses neither
schemas nor admission.

Guarantees:
- Every write is conditional on the revision that the caller read (`obj.revision`), so a write never overwrites a change
  that the caller has not seen. If the log refuses a write, the client raises the log's own error, and the log is
  unchanged.
- Each event stores the author, the current fence and the reconcile of the write. A reconcile cannot begin if the
  process has no fence.
- An update that leaves the object's bytes unchanged appends nothing.
- An update cannot change the uid, the creationTimestamp or the deletionTimestamp, because the server owns these fields.
- Deleting an object with finalizers only marks the object as terminating. The update that removes the last finalizer of
  a terminating object deletes the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.client.fencing import Fencing, pinned
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.engine.patch import merge_patch
from ctrlmgr.engine.verbs.canonical_writes import keeping_server_owned
from ctrlmgr.errors import NotFound, OutcomeUnknown
from ctrlmgr.eventlog.event import Author, Cause, EventType, Proposal
from ctrlmgr.eventlog.log import EventLog


class LogClient:
    """A `Client` that writes directly to an event log. Several threads may share a client."""

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
        """Create a client that writes as `author`; `fence` returns the fence of each append, or None for no fence.

        `fence` raises `Fenced` if this process no longer leads.
        """
        self._log = log
        self._author = author
        self._clock = clock
        self._new_uid = new_uid
        self._fence = fence
        self._cause = cause
        self.wrote = False
        """Whether this client appended an event, or may have done so (`OutcomeUnknown`)."""

    @property
    def changed_by(self) -> Collection[str]:
        """The admission plugins that changed objects: always empty, because these writes pass no admission."""
        return ()

    def for_reconcile(self, cause: Cause) -> LogClient:
        """Return the client for one reconcile.

        Each event that the new client appends contains `cause`. The new client's `wrote` is False until the client's
        first append.
        """
        return LogClient(
            self._log,
            author=self._author,
            clock=self._clock,
            new_uid=self._new_uid,
            fence=pinned(self._fence),
            cause=cause,
        )

    def create(self, obj: Object) -> Object:
        """Store a new object, as `Client.create` specifies. This client does not set the object's generation."""
        created = obj.with_metadata(uid=self._new_uid(), creation_timestamp=self._now())
        return self._append(EventType.ADDED, created, 0)

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace an object, as `Client.update` specifies.

        The client writes the whole object, even if a `subresource` is given.
        """
        current = self._current(obj)
        if current is None:
            return self._append(EventType.MODIFIED, obj, obj.revision)
        desired = keeping_server_owned(obj, current.metadata)
        if _is_finished(desired.metadata):
            return self._append(EventType.DELETED, desired, obj.revision)
        if desired.body == current.body:
            return current
        return self._append(EventType.MODIFIED, desired, obj.revision)

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Merge a patch into the object with this name, regardless of its revision; lists are replaced, not merged.

        Raises `NotFound`.
        """
        current = self._log.get(obj.resource, obj.key)
        if current is None:
            raise NotFound(f"there is no {obj.resource} {obj.key}")
        merged = merge_patch(current.to_dict(), patch, has_nulls=False)
        return self.update(Object.from_dict(merged).at(current.revision), subresource)

    def delete(self, obj: Object) -> None:
        """Delete an object, as `Client.delete` specifies; the deletion of a terminating object changes nothing."""
        current = self._current(obj)
        if current is None or not current.metadata.finalizers:
            self._append(EventType.DELETED, current or obj, obj.revision)
        elif not current.is_terminating:
            marked = current.with_metadata(deletion_timestamp=self._now(), deletion_grace_period_seconds=0)
            self._append(EventType.MODIFIED, marked, obj.revision)

    def _now(self) -> str:
        return format_time_seconds(self._clock.now())

    def _current(self, obj: Object) -> Object | None:
        """Return the stored object if it has the caller's revision.

        If the stored object has another revision, return None; the log then refuses the write.
        """
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
    """Return whether a terminating object can be deleted now (`registry.ShouldDeleteDuringUpdate`)."""
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
    )

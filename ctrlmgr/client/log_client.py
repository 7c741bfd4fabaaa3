"""A client that writes straight to an event log, with the API server's manners and the log's guarantees.

Guarantees:
- Every write is conditional on the revision the caller read (`obj.revision`): nobody's change is overwritten
  unseen. What the log refuses, it raises in the log's own words; what was refused changed nothing.
- A write carries the author, the fence as it stands at that moment, and the reconcile it comes from. No reconcile
  begins when there is no fence to be had.
- With `marks`, what is written says in its managedFields whose its fields are.
- An update that changes no byte appends nothing.
- uid, creationTimestamp and the mark of a deletion under way belong to the server: an update cannot change them.
- An object with finalizers is only marked as deleted, and goes with its last finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import NAMESPACES, Key, Revision
from ctrlmgr.client.fencing import Fencing, pinned
from ctrlmgr.client.field_marks import FieldMarks
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.errors import Conflict, NamespaceTerminating, NotFound, OutcomeUnknown
from ctrlmgr.eventlog.event import Author, Cause, Event, EventType, Proposal
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.store import Lister

_SERVER_OWNED = ("uid", "creation_timestamp", "deletion_timestamp", "deletion_grace_period_seconds")
"""Metadata that an update takes from the stored object, as `rest.BeforeUpdate` and its validation do."""


class LogClient:
    """A `Client` that writes straight to an event log. Threads may share one, or take one a reconcile."""

    def __init__(
        self,
        log: EventLog,
        *,
        author: Author,
        clock: Clock,
        new_uid: Callable[[], str],
        namespaces: Lister | None = None,
        fence: Fencing | None = None,
        marks: FieldMarks | None = None,
        cause: Cause | None = None,
    ) -> None:
        """Write as `author`, with what `fence` returns at each append (no fence if it returns None).

        `fence` may raise `Fenced`, which nobody catches: this process has ceased to lead.
        `namespaces` lists the namespaces in which things may be created; without it anything may be.
        Without `marks` managedFields are left as the caller has them.
        """
        self._log = log
        self._author = author
        self._clock = clock
        self._new_uid = new_uid
        self._namespaces = namespaces
        self._fence = fence
        self._marks = marks
        self._cause = cause
        self.wrote = False
        """Whether this client appended anything, or may have (`OutcomeUnknown`)."""

    def for_reconcile(self, cause: Cause) -> LogClient:
        """Return the same client for one reconcile: its appends carry `cause`, its `wrote` starts False."""
        return LogClient(
            self._log,
            author=self._author,
            clock=self._clock,
            new_uid=self._new_uid,
            namespaces=self._namespaces,
            fence=pinned(self._fence),
            marks=self._marks,
            cause=cause,
        )

    def create(self, obj: Object) -> Object:
        """Store a new object; see `Client`. Its generation stays as it is."""
        key = Key("", obj.namespace)
        within = None
        if self._namespaces is not None and obj.namespace:
            within = self._admit(obj, self._namespaces.get(key) or self._log.get(NAMESPACES, key))
        now = self._now()
        created = obj.with_metadata(uid=self._new_uid(), creation_timestamp=now)
        if self._marks is not None:
            created = self._marks.marked(None, created, now)
        try:
            return self._append(EventType.ADDED, created, 0, within)
        except (Conflict, NotFound):
            # The cache is behind: the namespace has changed, though perhaps not in a way that matters.
            within = self._admit(obj, self._log.get(NAMESPACES, key))
            return self._append(EventType.ADDED, created, 0, within)

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace an object; see `Client`. The log knows no parts: all of `obj` is written, whatever `subresource`."""
        current = self._current(obj)
        if current is None:
            return self._append(EventType.MODIFIED, obj, obj.revision)
        wanted = _keeping_server_owned(obj, current.metadata)
        if _is_finished(wanted.metadata):
            return self._append(EventType.DELETED, wanted, obj.revision)
        if wanted.body == current.body:
            return current
        if self._marks is not None:
            wanted = self._marks.marked(current, wanted, self._now())
            if wanted.body == current.body:  # the caller left out managedFields, and nothing else
                return current
        return self._append(EventType.MODIFIED, wanted, obj.revision)

    def delete(self, obj: Object) -> None:
        """Delete an object; see `Client`. Deleting what is terminating already changes nothing."""
        current = self._current(obj)
        if current is None or not current.metadata.finalizers:
            self._append(EventType.DELETED, current or obj, obj.revision)
        elif not current.is_terminating:
            marked = current.with_metadata(deletion_timestamp=self._now(), deletion_grace_period_seconds=0)
            self._append(EventType.MODIFIED, marked, obj.revision)

    def expire(self, objects: Sequence[Object]) -> None:
        """Delete all of these in one append, whatever finalizers they have: their time is over.

        Raises `NotFound` or `Conflict`, and deletes none, if one of them has changed since it was read.
        """
        self._append_all([Proposal(EventType.DELETED, obj, obj.revision) for obj in objects])

    def _now(self) -> str:
        return format_time_seconds(self._clock.now())

    def _current(self, obj: Object) -> Object | None:
        """Return what is stored if it is what the caller read; None is for the log to refuse, in its words."""
        current = self._log.get(obj.resource, obj.key)
        return current if current is not None and current.revision == obj.revision else None

    def _admit(self, obj: Object, namespace: Object | None) -> Revision | None:
        """Refuse to create in a namespace that is missing or terminating; return the revision at which it is not.

        None for a stand-in that was never in a log, as replays of recordings without namespaces have them.
        """
        if namespace is None:
            raise NotFound(f'namespaces "{obj.namespace}" not found')
        if _namespace_is_terminating(namespace):
            raise NamespaceTerminating(
                f'{obj.resource} "{obj.name}" is forbidden: unable to create new content in namespace '
                f"{obj.namespace} because it is being terminated"
            )
        return namespace.revision or None

    def _append(self, type: EventType, obj: Object, expected: int, within: Revision | None = None) -> Object:
        return self._append_all([Proposal(type, obj, expected, within)])[0].object

    def _append_all(self, proposals: Sequence[Proposal]) -> Sequence[Event]:
        fence = self._fence() if self._fence is not None else None
        try:
            events = self._log.append(proposals, author=self._author, fence=fence, cause=self._cause)
        except OutcomeUnknown:
            self.wrote = True
            raise
        self.wrote = True
        return events


class _NamespaceStatus(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    status: _NamespaceStatus | None = None


def _namespace_is_terminating(namespace: Object) -> bool:
    status = namespace.view(_Namespace).status
    return namespace.is_terminating or (status is not None and status.phase == "Terminating")


def _keeping_server_owned(obj: Object, stored: ObjectMeta) -> Object:
    kept: dict[str, Any] = {
        field: getattr(stored, field)
        for field in _SERVER_OWNED
        if getattr(obj.metadata, field) != getattr(stored, field)
    }
    return obj.with_metadata(**kept) if kept else obj


def _is_finished(metadata: ObjectMeta) -> bool:
    """Whether nothing holds a terminating object any more (`registry.ShouldDeleteDuringUpdate`)."""
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
    )

"""Writes objects that are already in their final form, as the built-in controllers compute them.

The full path of a write decodes a body against its schema, sets defaults, validates it and encodes it again. Decoding,
defaulting and validation do not change an object in the schema's canonical form, but take more time than all other
steps of the write. The verbs of this module skip decoding, defaulting and validation, for clients that promise
canonical objects (`EngineClient`, `canonical`). Tests verify this promise by writing the controllers' objects through
the full path and comparing the results.

Guarantees, as on the full path: - Admission decides about every write. If admission needs the object, the write takes
the full path. - The server sets the uid, the creation time and the deletion time; managedFields name the owners of the
fields. - Every write is conditional on the revision that the caller read. An update that changes nothing appends
nothing. A terminating object is removed when it has no more finalizers.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.api_errors import already_exists, conflict, not_found
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.managedfields.controller_entries import FieldMarks
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.change import decide_change, is_released
from ctrlmgr.engine.verbs.create import decide_create
from ctrlmgr.engine.writes.attempts import Decision
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.eventlog.event import EventType, Proposal

_SERVER_OWNED = ("uid", "creation_timestamp", "deletion_timestamp", "deletion_grace_period_seconds")
"""The metadata fields that an update copies from the stored object, because clients cannot change these fields
(`rest.BeforeUpdate`).
"""


def create_canonical(request: Request, obj: Object, marks: FieldMarks) -> Operation[Decision]:
    """Decide the creation of an object that already has its name; its generation is not changed."""
    ctx = request.context()
    attributes = request.attributes(ctx, Verb.CREATE, None)
    if request.admission.wants_object(attributes):
        return (yield from decide_create(request, obj.to_dict()))
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)
    there = request.current()
    if there is not None:
        raise already_exists(request.plan.resource, obj.name, terminating=there.is_terminating)
    created = obj.with_metadata(uid=new_uid(request.random), creation_timestamp=request.now)
    created = marks.marked(None, created, request.now)
    proposals = (Proposal(EventType.ADDED, created, 0, attributes.within), *ctx.companions)
    return Decision(201, proposals, 0, late=attributes.late)


def update_canonical(request: Request, obj: Object, marks: FieldMarks) -> Operation[Decision]:
    """Decide the replacement of the object that the caller read at `obj.revision`."""
    current = _current(request, obj)
    ctx = request.context()
    attributes = request.attributes(ctx, Verb.UPDATE, None)
    if request.admission.wants_object(attributes):
        return (yield from decide_change(request, lambda ctx, current: _owned(request, obj, current)))
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)
    desired = keeping_server_owned(obj, current.metadata)
    if is_released(request.plan.strategy.finalizers, desired, current):
        return _removed(request, ctx, current, desired)
    if desired.body == current.body:
        return Decision(200, object=current)
    desired = marks.marked(current, desired, request.now)
    if desired.body == current.body:  # only managedFields differ, because `obj` has none
        return Decision(200, object=current)
    return Decision(200, (Proposal(EventType.MODIFIED, desired, current.revision), *ctx.companions), 0)


def _current(request: Request, obj: Object) -> Object:
    """Return the stored object; raises `Conflict` if the object does not have the revision that the caller read."""
    current = request.current()
    if current is None:
        raise not_found(request.plan.resource, obj.name)
    if current.revision != obj.revision:
        raise conflict(request.plan.resource, obj.name)
    return current


def _owned(request: Request, obj: Object, current: Object) -> dict[str, Any]:
    plan = request.plan
    fields = {**obj.to_dict(), "metadata": {**obj.to_dict()["metadata"], "resourceVersion": str(obj.revision)}}
    return plan.owned(plan.live(current), fields, request.manager, request.now, "")


def _removed(request: Request, ctx: Context, current: Object, shown: Object) -> Decision:
    request.plan.strategy.begin_delete(ctx, current)
    proposals = (Proposal(EventType.DELETED, current, current.revision), *ctx.companions)
    return Decision(200, proposals, None, shown.at(current.revision))


def keeping_server_owned(obj: Object, stored: ObjectMeta) -> Object:
    """Return an object whose `_SERVER_OWNED` metadata is that of the stored object."""
    kept: dict[str, Any] = {
        field: getattr(stored, field)
        for field in _SERVER_OWNED
        if getattr(obj.metadata, field) != getattr(stored, field)
    }
    return obj.with_metadata(**kept) if kept else obj

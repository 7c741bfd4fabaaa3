"""Writing objects that are in their final form already: those that our own controllers compute.

The full path decodes a body against its schema, sets defaults, validates it and encodes it again. For what a controller
computes as the schema's canonical form all this comes out as it went in, and costs more than everything else of the
write. A client that promises canonical objects (`EngineClient`, `canonical`) therefore skips it; tests hold the
controllers that do so to the promise, by writing the same objects through the full path.

Guarantees, as on the full path:
- Admission decides. Where it wants to see the object, the write takes the full path after all.
- uid, creation time and the mark of a deletion are the server's; managedFields say whose the fields are.
- A write is conditional on the revision that the caller read; an update that changes nothing appends nothing; a
  terminating object goes when nothing holds it any more.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.engine.attributes import Verb
from ctrlmgr.engine.managedfields.marks import FieldMarks
from ctrlmgr.engine.names import new_uid
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.refusals import already_exists, conflict, not_found
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.change import decide_change, is_released
from ctrlmgr.engine.verbs.create import decide_create
from ctrlmgr.engine.writes.attempts import Decision
from ctrlmgr.engine.writes.request import Request
from ctrlmgr.eventlog.event import EventType, Proposal

_SERVER_OWNED = ("uid", "creation_timestamp", "deletion_timestamp", "deletion_grace_period_seconds")
"""Metadata that an update takes from the stored object, as `rest.BeforeUpdate` and its validation do."""


def create_canonical(request: Request, obj: Object, marks: FieldMarks) -> Operation[Decision]:
    """Decide on adding an object that has its name; its generation stays as it is."""
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
    """Decide on replacing the object that was read at `obj.revision`."""
    current = _current(request, obj)
    ctx = request.context()
    attributes = request.attributes(ctx, Verb.UPDATE, None)
    if request.admission.wants_object(attributes):
        return (yield from decide_change(request, lambda ctx, current: _owned(request, obj, current)))
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)
    wanted = keeping_server_owned(obj, current.metadata)
    if is_released(request.plan.strategy.finalizers, wanted, current):
        return _removed(request, ctx, current, wanted)
    if wanted.body == current.body:
        return Decision(200, object=current)
    wanted = marks.marked(current, wanted, request.now)
    if wanted.body == current.body:  # the caller left out managedFields, and nothing else
        return Decision(200, object=current)
    return Decision(200, (Proposal(EventType.MODIFIED, wanted, current.revision), *ctx.companions), 0)


def _current(request: Request, obj: Object) -> Object:
    """Return what is stored, if it is what the caller read."""
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
    """Return an object with the metadata that is the server's to say, as it is stored."""
    kept: dict[str, Any] = {
        field: getattr(stored, field)
        for field in _SERVER_OWNED
        if getattr(obj.metadata, field) != getattr(stored, field)
    }
    return obj.with_metadata(**kept) if kept else obj

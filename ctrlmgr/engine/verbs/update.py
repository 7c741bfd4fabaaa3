"""The verb PUT: the body replaces the stored object (apiserver `endpoints/handlers/update.go`)."""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.operations import Answer, Operation
from ctrlmgr.engine.request_options import Body
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.change import decide_change, parse_version
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.body_metadata import check_place
from ctrlmgr.engine.writes.write_context import Bodies, Request


def update(request: Request, body: Body) -> Operation[Answer]:
    """Replace the object by the object in the body, or create it if its kind allows this."""
    target, bodies = request.target, Bodies(request, body)
    bodies.read()
    check_place(request, bodies.first)

    def replaced(ctx: Context, current: Object) -> Unstructured:
        plan = request.plan
        live = ctx.old if plan.kind.from_storage is None else plan.live(current)
        return plan.owned(live, bodies.take(), request.manager, request.now, target.subresource)

    def new() -> Unstructured:
        """Return the object to create; the resourceVersion in the body is ignored (etcd3 `updateState`)."""
        fields = bodies.take()
        parse_version(metadata_of(fields).pop("resourceVersion", ""))
        return fields

    may_create = request.plan.strategy.allow_create_on_update and not target.subresource
    uid = metadata_of(bodies.first).get("uid") or ""

    def attempt() -> Operation[Decision]:
        return decide_change(request, replaced, uid=uid, new=new if may_create else None)

    return (yield from decide_and_append(request, attempt, limit=RETRIES))

"""Deletes an object: converts a decision of `engine.deletion` to proposals that mark or remove the object.

Guarantees: a single append contains the removal of an object and the release of its allocations. An object with a grace
period of zero is marked and removed in one append. Watchers receive an event for the mark and an event for the removal,
and no other write can occur between the two events.
"""

from __future__ import annotations

from ctrlmgr.api import status_responses
from ctrlmgr.api.object import Object
from ctrlmgr.engine import deletion
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.operations import Answer, Operation
from ctrlmgr.engine.request_options import DeleteOptions
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.eventlog.event import EventType, Proposal


def delete(request: Request, options: DeleteOptions) -> Operation[Answer]:
    """Delete the object: remove it now, or mark it for removal after its last finalizer and its grace period."""
    if options.propagation_policy is None and options.orphan_dependents is None:
        request.warnings += request.plan.strategy.default_propagation_warnings

    def attempt() -> Operation[Decision]:
        decision = yield from decide_delete(request, options)
        return decision._replace(warnings=request.all_warnings())

    return decide_and_append(request, attempt, limit=RETRIES)


def decide_delete(
    request: Request, options: DeleteOptions, changed: Object | None = None, *, admitted: bool = False
) -> Operation[Decision]:
    """Decide the deletion of the stored object, which is either removed now or marked as terminating.

    The argument `changed` replaces the object's last state. The argument `admitted` says whether this deletion is part
    of a write that admission has already accepted.
    """
    plan = request.plan
    current = request.current()
    if current is None:
        raise not_found(plan.resource, request.target.name)
    if plan.kind.calls_out:  # the conversion must succeed, because the object is read first
        yield from request.shown(current, anew=True)
    own_words = plan.strategy.own_preconditions
    deletion.check_preconditions(current, options, plan.resource, plan.kind.name, own_words=own_words)
    going = deletion.decide(current, options, plan.strategy, request.now)
    code = 202 if options.orphan_dependents is False and not going.is_removable else 200
    if going.is_pending:
        return _gone(request, current, code)
    ctx = request.context()
    if not admitted and request.admission.handles(plan.resource, request.target.subresource, Verb.DELETE):
        yield from _admit(request, ctx, options, current)
    if going.is_removable and going.grace is None:
        return _remove(request, ctx, current, changed or current)
    marked = yield from _marked(request, ctx, changed or current, going)
    if going.is_removable:
        return _remove(request, ctx, current, marked)
    if marked.body == current.body:
        return Decision(code, object=current)
    if request.options.dry_run:
        return Decision(code, object=marked.at(current.revision))
    return Decision(code, (Proposal(EventType.MODIFIED, marked, current.revision), *ctx.companions), 0)


def _admit(request: Request, ctx: Context, options: DeleteOptions, current: Object) -> Operation[None]:
    """Run mutating and validating admission; mutating admission cannot change anything in a deletion."""
    old = yield from request.converting(lambda: request.plan.read(current))
    old["metadata"]["resourceVersion"] = str(current.revision)
    attributes = request.attributes(ctx, Verb.DELETE, None, old)
    attributes.options = options
    if request.is_of_collection:
        attributes.name = ""  # the client named no object
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)


def _marked(request: Request, ctx: Context, obj: Object, going: deletion.DeletionDecision) -> Operation[Object]:
    fields = yield from request.converting(lambda: request.plan.read(obj))
    going.mark(fields["metadata"], request.now)
    request.plan.strategy.begin_termination(ctx, fields)
    return (yield from request.converting(lambda: request.plan.encode(fields)))


def _remove(request: Request, ctx: Context, current: Object, last: Object) -> Decision:
    """Decide the removal of an object; if `last` differs from the current state, first change the object to `last`."""
    request.plan.strategy.begin_delete(ctx, current)
    if request.options.dry_run:
        return _gone(request, last.at(current.revision), 200)
    if last.body == current.body:
        proposals = [Proposal(EventType.DELETED, current, current.revision)]
    else:
        # The preceding proposal of the same append sets the revision, which is not known yet. A revision of None
        # accepts any revision.
        proposals = [
            Proposal(EventType.MODIFIED, last, current.revision),
            Proposal(EventType.DELETED, last, None),
        ]
    decision = _gone(request, current, 200)
    shown = len(proposals) - 1 if decision.object is not None else None
    return decision._replace(proposals=(*proposals, *ctx.companions), shown=shown)


def _gone(request: Request, obj: Object, code: int) -> Decision:
    """Return the response of a deletion: the object or a Status, depending on the kind."""
    if request.plan.strategy.returns_deleted:
        return Decision(code, object=obj)
    return Decision(code, status=status_responses.deleted(request.plan.resource, obj.name, obj.uid))

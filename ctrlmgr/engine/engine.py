"""The engine: all verbs, those that read and those that write, over one cacher."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from ctrlmgr.api.resource import DEFINITIONS, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.attributes import NO_ADMISSION, Admission, Verb
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.engine.history import History
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Append, Listing, Operation, Target
from ctrlmgr.engine.options import (
    Body,
    DeleteOptions,
    ListOptions,
    Requester,
    WriteOptions,
)
from ctrlmgr.engine.subresources import SUBRESOURCES, Handler
from ctrlmgr.engine.verbs import reading
from ctrlmgr.engine.verbs.attempts import RETRIES, Decision, settle
from ctrlmgr.engine.verbs.deleting import delete
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.engine.watch import Selection, Start
<<<<<<< HEAD
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, MethodNotAllowed, NotFound, StatusDetails
=======
from ctrlmgr.engine.writing import WriteEngine
from ctrlmgr.errors import AlreadyExists, Conflict, NotFound
>>>>>>> main
from ctrlmgr.eventlog.log import EventLog

BINDINGS = Resource("", "bindings")
"""What is created here is `pods/NAME/binding` under another name."""

_DELETED_TOGETHER = 100
"""How many objects of a collection go in one append."""


class Engine(WriteEngine):
    """All verbs, on the state that a cacher has; for the one thread that the cacher belongs to."""

    def __init__(
        self,
        kinds: Kinds,
        cacher: Cacher,
        log: EventLog,
        *,
        clock: Clock,
        random: Random,
        admission: Admission = NO_ADMISSION,
        subresources: Mapping[str, Handler] = SUBRESOURCES,
    ) -> None:
        """Serve `kinds` from `cacher`; `log` is what commands read; for the rest see `WriteEngine`."""
        super().__init__(kinds, cacher, clock=clock, random=random, admission=admission, subresources=subresources)
        self.cacher = cacher
        self._log = log
        cacher.follow(DEFINITIONS, lambda: kinds.refresh(cacher.list(DEFINITIONS)))

    def list(self, kind: Kind, namespace: str | None, options: ListOptions) -> Operation[Listing]:
        """Return the objects of one namespace (None: of all) in etcd's order, or a page of them."""
        return reading.list_objects(self.cacher, self._log, kind, namespace, options)

    def watch(self, kind: Kind, namespace: str | None, options: ListOptions) -> Operation[Start]:
        """Return how a watch begins; from there on `Cacher.changes_after` and `history` have what follows."""
        return reading.start_watch(self.cacher, self._log, kind, namespace, options)

    def history(self, selection: Selection, revision: Revision, limit: int) -> Operation[History]:
        """Return changes that the cacher has no more; raises `Expired`."""
        return reading.history(self._log, selection, revision, limit)

<<<<<<< HEAD
    # Writing.

    def create(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Create what the body says, in the target's namespace; `target.name` is for subresources."""
        if target.kind.resource == BINDINGS:
            return self._subresources["binding"].create(self, target, body, options, requester)
        if target.subresource:
            handler = self._handler(target)
            if handler is None:
                raise MethodNotAllowed(details=StatusDetails())
            return handler.create(self, target, body, options, requester)
        if "get" not in target.kind.verbs:  # a review, say: there is nothing to keep
            raise MethodNotAllowed(details=StatusDetails())
        request = self.request(target, options, requester)
        bodies = _Bodies(request, body)
        return settle(request, lambda: create(request, bodies.take()), limit=NAME_ATTEMPTS)

    def admit(
        self,
        target: Target,
        operation: Verb,
        body: Unstructured,
        kind: GroupVersionKind | None,
        options: WriteOptions,
        requester: Requester,
    ) -> Operation[Answer]:
        """Let admission have its say about what is answered and not kept: a review, a token, a connection.

        `body` is what was sent, of `kind`, and is changed in place; the answer has nothing but what else is to be told.
        """
        request = self.request(target, options, requester)
        ctx = request.context()
        attributes = request.attributes(ctx, operation, body, None, kind)
        try:
            yield from self.admission.admit(attributes)
            yield from self.admission.validate(attributes)
        except ApiError as error:
            error.warnings, error.annotations = error.warnings or request.told(), request.annotations
            raise
        if attributes.object is not body:
            body.clear()
            body.update(attributes.fields)
        return Answer(200, warnings=tuple(request.told()), annotations=request.annotations)

    def update(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Replace what is there by what the body says; where its kind allows it, create it."""
        if target.subresource and (handler := self._handler(target)) is not None:
            return handler.update(self, target, body, options, requester)
        request = self.request(target, options, requester)
        bodies = _Bodies(request, body)
        check_place(request, bodies.first)

        def replaced(ctx: Context, current: Object) -> Unstructured:
            plan = request.plan
            live = ctx.old if plan.kind.from_storage is None else plan.live(current)
            return plan.owned(live, bodies.take(), request.manager, request.now, target.subresource)

        may_create = request.plan.strategy.allow_create_on_update and not target.subresource
        new = bodies.take_new if may_create else None
        uid = metadata_of(bodies.first).get("uid") or ""
        return settle(request, lambda: change(request, replaced, uid=uid, new=new), limit=RETRIES)

    def patch(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Patch what is there; `body.media_type` says how, and an apply creates what is not there."""
        if target.subresource and (handler := self._handler(target)) is not None:
            return handler.patch(self, target, body, options, requester)
        request = self.request(target, options, requester)
        patch = Patch(body, options)
        if patch.is_apply:
            applied = _Applying(request, patch)
            new = None if target.subresource else applied.new
            return settle(request, lambda: change(request, applied.changed, new=new, managed=True), limit=RETRIES)

        def patched(ctx: Context, current: Object) -> Unstructured:
            plan = request.plan
            live = plan.live(current)
            fields, warnings = patch.apply(live, plan.codec, plan.kind.strategic)
            request.warnings += warnings
            check_place(request, fields)
            return plan.owned(live, fields, request.manager, request.now, target.subresource)

        return settle(request, lambda: change(request, patched), limit=RETRIES)

    def delete(
        self, target: Target, body: Body | None, options: DeleteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Delete what is there, now or later; a body's options override `options`, which are the query's."""
        options = self._delete_options(body, options)
        request = self.request(target, WriteOptions(dry_run=bool(options.dry_run)), requester)
        if options.propagation_policy is None and options.orphan_dependents is None:
            request.warnings += request.plan.strategy.default_propagation_warnings

        def decide() -> Operation[Decision]:
            decision = yield from delete(request, options)
            return decision._replace(warnings=request.told())

        return settle(request, decide, limit=RETRIES)

=======
>>>>>>> main
    def delete_collection(
        self,
        kind: Kind,
        namespace: str | None,
        list_options: ListOptions,
        body: Body | None,
        options: DeleteOptions,
        requester: Requester,
    ) -> Operation[Listing]:
        """Delete everything that a list shows, and return that list; not atomic, the first error ends it."""
        options = self.options_of(body, options)
        return self._delete_collection(kind, namespace, list_options, options, requester)

    def _delete_collection(
        self,
        kind: Kind,
        namespace: str | None,
        list_options: ListOptions,
        options: DeleteOptions,
        requester: Requester,
    ) -> Operation[Listing]:
        listing = yield from self.list(kind, namespace, list_options)
        write = WriteOptions(dry_run=bool(options.dry_run))
        requests = [self.request(Target(kind, *obj.key), write, requester) for obj in listing.objects]
        for request in requests:
            request.is_of_collection = True
        for start in range(0, len(requests), _DELETED_TOGETHER):
            yield from _delete_all(requests[start : start + _DELETED_TOGETHER], options)
        return listing


def _delete_all(requests: list[Request], options: DeleteOptions) -> Operation[None]:
    """Delete some objects in one append, or one by one if the log refuses that; what is gone already is gone."""
    decisions: list[Decision] = []
    for request in requests:
        try:
            decisions.append((yield from delete(request, options)))
        except NotFound:
            continue
    proposals = [proposal for decision in decisions for proposal in decision.proposals]
    if not proposals:
        return
    try:
        yield Append(proposals, requests[0].requester.author)
    except (AlreadyExists, Conflict, NotFound):
        for request in requests:
            yield from _delete_one(request, options)


def _delete_one(request: Request, options: DeleteOptions) -> Operation[None]:
    try:
        yield from settle(request, lambda: delete(request, options), limit=RETRIES)
    except NotFound:
        return

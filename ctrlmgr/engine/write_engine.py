"""The engine for controllers: each verb returns an operation, which a driver runs (`engine.operations`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.engine.admission_attributes import NO_ADMISSION, Admission, Verb
from ctrlmgr.engine.calls.call import CallInputs
from ctrlmgr.engine.conversion import shown_all
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.managedfields.controller_entries import FieldMarks
from ctrlmgr.engine.operations import REFRESH, Answer, Append, Operation, Target
from ctrlmgr.engine.request_options import (
    DELETE_OPTIONS,
    Body,
    DeleteOptions,
    GetOptions,
    Requester,
    WriteOptions,
    check_delete,
    delete_options,
)
from ctrlmgr.engine.strategy import State
from ctrlmgr.engine.subresources import SUBRESOURCES, Handler
from ctrlmgr.engine.verbs import read_verbs
from ctrlmgr.engine.verbs.apply import apply
from ctrlmgr.engine.verbs.canonical_writes import create_canonical, update_canonical
from ctrlmgr.engine.verbs.create import create, decide_create
from ctrlmgr.engine.verbs.delete import delete
from ctrlmgr.engine.verbs.patch import patch as patched
from ctrlmgr.engine.verbs.recreate import recreate
from ctrlmgr.engine.verbs.update import update
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.object_size import refuse_large
from ctrlmgr.engine.writes.patching import Patch
from ctrlmgr.engine.writes.plan import Plan
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.errors import ApiError, MethodNotAllowed, NotFound, StatusDetails
from ctrlmgr.eventlog.event import EventType, Proposal

BINDINGS = Resource("", "bindings")
"""The resource `bindings`; the engine treats its creation as a creation of `pods/NAME/binding`."""


class WriteEngine:
    """The verbs that controllers use: writes that are decided on any `State`, and reads of this state.

    Several threads may share an engine if they may share the engine's state.
    """

    def __init__(
        self,
        kinds: Kinds,
        state: State,
        *,
        clock: Clock,
        random: Random,
        admission: Admission = NO_ADMISSION,
        subresources: Mapping[str, Handler] = SUBRESOURCES,
    ) -> None:
        """Create an engine that decides writes to `kinds` on `state`; `random` is the source of names and uids.

        The argument `admission` decides on every write. The argument `subresources` contains the handlers of those
        subresources that have their own handler, by name.
        """
        self.kinds = kinds
        self.state = state
        self._clock = clock
        self._random = random
        self._subresources = subresources
        self.admission = admission
        self._plans: dict[Kind, Plan] = {}
        self._epoch = kinds.epoch
        self._marks: dict[str, FieldMarks] = {}

    @property
    def call_inputs(self) -> CallInputs:
        """The view of the state and the random source, which conversions need."""
        return CallInputs(self.state, self._random)

    @property
    def now(self) -> str:
        """The current time in the format of RFC 3339, with seconds."""
        return format_time_seconds(self._clock.now())

    def plan(self, kind: Kind) -> Plan:
        """Return the plan of a kind, which is created on first use."""
        if self._epoch != self.kinds.epoch:
            self._epoch = self.kinds.epoch
            self._plans = {each: plan for each, plan in self._plans.items() if self.kinds.by_gvk(each.gvk) is each}
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = Plan(kind, self.kinds)
        return plan

    def request(self, target: Target, options: WriteOptions, requester: Requester) -> Request:
        """Return the context of a write."""
        return Request(
            self.plan(target.kind),
            target,
            options,
            requester,
            state=self.state,
            now=self.now,
            random=self._random,
            admission=self.admission,
        )

    def handler(self, target: Target) -> Handler | None:
        """Return the handler of a subresource; None if the usual verbs handle the subresource.

        Raises `NotFound` if the kind does not have the subresource.
        """
        part = target.kind.subresources.get(target.subresource)
        handler = self._subresources.get(target.subresource)
        is_the_object = part is not None and part.kind == target.kind.gvk and "update" in part.verbs
        if part is None or not (handler or is_the_object):
            raise NotFound("the server could not find the requested resource", details=StatusDetails())
        return handler

    def get(self, target: Target, options: GetOptions) -> Operation[Object]:
        """Return an object in the served version.

        Raises `NotFound` if it does not exist, and `RequestTimeout` if the log does not reach the requested version.
        """
        if target.subresource and (handler := self.handler(target)) is not None:
            return handler.get(self, target, options)
        return read_verbs.get(self.call_inputs, target, options)

    def stored(self, resource: Resource) -> Operation[Sequence[Object]]:
        """Return every object of a resource in its stored form."""
        yield REFRESH
        return self.state.list(resource)

    def everything(self, kind: Kind, namespace: str) -> Operation[Sequence[Object]]:
        """Return the current objects of a kind in one namespace, in the served version."""
        yield REFRESH
        return (yield from shown_all(kind, self.state.list(kind.storage, namespace), self.call_inputs))

    def create(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Create the object in the body, in the target's namespace; `target.name` is used only for subresources."""
        if target.kind.resource == BINDINGS:
            return self._subresources["binding"].create(self, target, body, options, requester)
        if target.subresource:
            handler = self.handler(target)
            if handler is None:
                raise MethodNotAllowed(details=StatusDetails())
            return handler.create(self, target, body, options, requester)
        if "get" not in target.kind.verbs:  # for example, a review is not stored
            raise MethodNotAllowed(details=StatusDetails())
        return create(self.request(target, options, requester), body)

    def create_all(
        self, bodies: Sequence[tuple[Target, Body]], options: WriteOptions, requester: Requester
    ) -> Operation[None]:
        """Create several objects in one append.

        Raises `AlreadyExists`, and creates none, if one of the objects exists.
        """
        proposals: list[Proposal] = []
        for target, body in bodies:
            request = self.request(target, options, requester)
            decision = yield from decide_create(request, request.plan.decode(body, options, request.warnings))
            proposals += decision.proposals
        refuse_large(self.state, proposals, "")
        yield Append(proposals, requester.author)

    def admit(
        self,
        target: Target,
        operation: Verb,
        body: Unstructured,
        kind: GroupVersionKind | None,
        options: WriteOptions,
        requester: Requester,
        complete: Callable[[Unstructured], None] = lambda body: None,
    ) -> Operation[Answer]:
        """Run admission for an object that is not stored: a review, a token, a connection.

        The argument `body` is the object of `kind` that the client sent; it is changed in place. The operation's result
        contains only warnings and annotations. The function `complete` sets missing fields, after mutating and before
        validating admission.
        """
        request = self.request(target, options, requester)
        ctx = request.context()
        attributes = request.attributes(ctx, operation, body, None, kind)
        try:
            yield from self.admission.admit(attributes)
            complete(attributes.fields)
            yield from self.admission.validate(attributes)
        except ApiError as error:
            error.warnings, error.annotations = error.warnings or request.all_warnings(), request.annotations
            raise
        if attributes.object is not body:
            body.clear()
            body.update(attributes.fields)
        return Answer(200, warnings=tuple(request.all_warnings()), annotations=request.annotations)

    def update(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Replace the object by the object in the body, or create it if its kind allows this."""
        if target.subresource and (handler := self.handler(target)) is not None:
            return handler.update(self, target, body, options, requester)
        return update(self.request(target, options, requester), body)

    def patch(self, target: Target, body: Body, options: WriteOptions, requester: Requester) -> Operation[Answer]:
        """Patch the object; `body.media_type` is the type of the patch.

        An apply creates the object if it is missing.
        """
        if target.subresource and (handler := self.handler(target)) is not None:
            return handler.patch(self, target, body, options, requester)
        request = self.request(target, options, requester)
        patch = Patch(body, options)
        return apply(request, patch) if patch.is_apply else patched(request, patch)

    def delete(
        self, target: Target, body: Body | None, options: DeleteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Delete the object immediately or mark it as terminating.

        Options in the body replace `options`, which come from the query.
        """
        options = self.options_of(body, options)
        request = self.request(target, WriteOptions(dry_run=bool(options.dry_run)), requester)
        return (yield from delete(request, options))

    def recreate(
        self, target: Target, body: Body, gone: DeleteOptions, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Delete the object, and create the object in the body in its place, in one append; see `verbs.recreate`.

        The argument `gone` contains the options of the deletion, including its preconditions.
        """
        deletion = self.request(target, WriteOptions(), requester)
        creation = self.request(target._replace(name=""), options, requester)

        def decide() -> Operation[Decision]:
            return recreate(deletion, creation, gone, lambda: creation.plan.decode(body, options, creation.warnings))

        return decide_and_append(deletion, decide, limit=RETRIES)

    def create_canonical(
        self, target: Target, obj: Object, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Create an object that is in its final form and already has its name; see `verbs.canonical_writes`."""
        request = self.request(target, options, requester)
        marks = self._marks_of(request.manager)
        return decide_and_append(request, lambda: create_canonical(request, obj, marks), limit=RETRIES)

    def update_canonical(
        self, target: Target, obj: Object, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Replace the object that the caller read at `obj.revision` by `obj`, which is in its final form.

        See `verbs.canonical_writes`.
        """
        request = self.request(target, options, requester)
        marks = self._marks_of(request.manager)
        return decide_and_append(request, lambda: update_canonical(request, obj, marks), limit=RETRIES)

    def expire(self, objects: Sequence[Object], requester: Requester) -> Operation[None]:
        """Delete several expired objects in one append, even if they have finalizers.

        Raises `NotFound` or `Conflict`, and deletes no object, if one of the objects has changed since the object was
        read.
        """
        yield Append([Proposal(EventType.DELETED, obj, obj.revision) for obj in objects], requester.author)

    def _marks_of(self, manager: str) -> FieldMarks:
        marks = self._marks.get(manager)
        if marks is None:
            marks = self._marks[manager] = FieldMarks(self.kinds, manager)
        return marks

    def options_of(self, body: Body | None, options: DeleteOptions) -> DeleteOptions:
        """Return the options of a deletion: those in the body, or `options` if there is no body.

        Raises an error if options are invalid.
        """
        if body is not None and body.data:
            codec = self.kinds.codec_for(DELETE_OPTIONS)
            fields = codec.decode(body.data, body.media_type).fields
            if body.heard is not None:
                internal = {**fields, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
                body.heard(fields, lambda: codec.encode(internal))
            options = delete_options(fields)
        check_delete(options)
        return options

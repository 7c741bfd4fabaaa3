"""The context of one write: its target, its requester, its options, warnings and annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Admission, Attributes, Verb
from ctrlmgr.engine.calls.call import Calling, CallInputs
from ctrlmgr.engine.conversion import converting, shown
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation, Target
from ctrlmgr.engine.request_options import Body, Requester, WriteOptions
from ctrlmgr.engine.strategy import Context, State
from ctrlmgr.engine.writes.plan import Plan

T = TypeVar("T")


class Requests(Protocol):
    """The interface of the engine that the handlers of subresources use."""

    kinds: Kinds
    state: State

    @property
    def call_inputs(self) -> CallInputs:
        """The view of the state and the random source, which conversions need."""

    def plan(self, kind: Kind) -> Plan:
        """Return the plan of a kind."""

    def request(self, target: Target, options: WriteOptions, requester: Requester) -> Request:
        """Return the context of a write."""


class Request:
    """A write in progress; `warnings` contains the warnings that apply to every attempt."""

    __slots__ = (
        "_attempt",
        "admission",
        "annotations",
        "asked",
        "is_of_collection",
        "now",
        "options",
        "plan",
        "random",
        "requester",
        "sent",
        "state",
        "target",
        "upserts",
        "warnings",
    )

    def __init__(
        self,
        plan: Plan,
        target: Target,
        options: WriteOptions,
        requester: Requester,
        *,
        state: State,
        now: str,
        random: Random,
        admission: Admission,
    ) -> None:
        """Create the context of a write to `target` by `requester` at `now` (RFC 3339), subject to `admission`."""
        self.plan = plan
        self.target = target
        self.options = options
        self.requester = requester
        self.state = state
        self.random = random
        self.now = now
        self.warnings: list[str] = []
        self.admission = admission
        self.is_of_collection = False
        """Whether the write is part of the deletion of a collection, so that the client did not name the object."""
        self.upserts = False
        """Whether the write is an update or an apply that creates a missing object."""
        self.annotations: dict[str, str] = {}
        """Annotations that are added to the audit event."""
        self.asked: set[str] = set()
        """The other processes that this write has called."""
        self.sent: Body | None = None
        """The body of the request, if the body is an object."""
        self._attempt: Context | None = None

    def current(self) -> Object | None:
        """Return the stored object, or None if it does not exist."""
        return self.state.get(self.plan.storage, Key(self.target.namespace, self.target.name))

    @property
    def call_inputs(self) -> CallInputs:
        """The view of the state and the random source, which conversions need."""
        return CallInputs(self.state, self.random)

    def converting(self, call: Callable[[], T]) -> Operation[T]:
        """Return the result of `call`, which may need conversions by a webhook and may be called several times."""
        if not self.plan.kind.calls_out:
            return call()
        return (yield from converting(call, self.call_inputs))

    def shown(self, obj: Object, *, anew: bool = False) -> Calling[Object]:
        """Return a stored object in the served version; if `anew` is set, do not use cached conversions."""
        if not self.plan.kind.calls_out:
            return self.plan.shown(obj)
        return (yield from shown(self.plan.kind, obj, self.call_inputs, anew=anew))

    def context(self, old: Unstructured | None = None) -> Context:
        """Return the strategy's context of a new attempt."""
        self._attempt = ctx = Context(
            kind=self.plan.kind,
            view=self.state,
            now=self.now,
            random=self.random,
            user=self.requester.user,
            subresource=self.target.subresource,
            dry_run=self.options.dry_run,
            old=old,
            uid=self.requester.uid,
            groups=self.requester.groups,
            extra=self.requester.extra,
            sent=self.sent.value if self.sent else None,
        )
        return ctx

    def attributes(
        self,
        ctx: Context,
        operation: Verb,
        obj: Unstructured | None,
        old: Unstructured | None = None,
        body_kind: GroupVersionKind | None = None,
    ) -> Attributes:
        """Return the admission attributes of the current attempt, which share warnings and companions with `ctx`."""
        target, kind = self.target, self.plan.kind
        name = target.name
        if not name and obj is not None:
            name = (obj.get("metadata") or {}).get("name") or ""
        resource = kind.resource
        attributes = Attributes(
            kind,
            resource,
            target.namespace if kind.namespaced or resource != NAMESPACES else name,
            name,
            operation,
            self.requester,
            self.state,
            self.now,
            self.random,
            obj,
            old,
            target.subresource,
            body_kind,
            self.options,
            self.options.dry_run,
            ctx.warnings,
            self.annotations,
            ctx.companions,
            asked=self.asked,
        )
        attributes.upserts = self.upserts
        return attributes

    @property
    def manager(self) -> str:
        """The field manager of the write."""
        return self.options.field_manager or self.requester.manager

    def all_warnings(self, ctx: Context | None = None) -> Sequence[str]:
        """Return all warnings without duplicates (apiserver `endpoints/filters/warning.go`)."""
        ctx = ctx or self._attempt
        if ctx is None or not ctx.warnings:
            return self.warnings if len(self.warnings) < 2 else list(dict.fromkeys(self.warnings))
        return list(dict.fromkeys([*self.warnings, *ctx.warnings]))


class Bodies:
    """The body of a request; it is decoded again for each attempt, because an attempt changes the decoded object."""

    def __init__(self, request: Request, body: Body) -> None:
        """Create an instance for the body of `request`."""
        request.sent = body
        self._request = request
        self._body = body
        self._taken = False
        self.first: Unstructured = {}
        """The object in the body, after `read` has decoded it."""

    def read(self) -> None:
        """Decode the body for the first attempt; raises the decoder's errors if the body is invalid."""
        request, body = self._request, self._body
        self.first = request.plan.decode(body, request.options, request.warnings)

    def take(self) -> Unstructured:
        """Return the object of the body for one attempt; the attempt may change this object."""
        if not self._taken:
            self._taken = True
            return self.first
        return self._request.plan.decode(self._body, self._request.options, [])

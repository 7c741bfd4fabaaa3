"""One write as the engine carries it along: what it is about, who asks for it, what is said on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.attributes import Admission, Attributes, Verb
from ctrlmgr.engine.calls.call import Calling, Surroundings
from ctrlmgr.engine.conversion import converting, shown
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Operation, Target
from ctrlmgr.engine.options import Body, Requester, WriteOptions
from ctrlmgr.engine.strategy import Context, State
from ctrlmgr.engine.writes.plan import Plan

T = TypeVar("T")


class Requests(Protocol):
    """What makes requests: an engine, as the handlers of subresources see it."""

    kinds: Kinds
    state: State

    @property
    def around(self) -> Surroundings:
        """What it takes to have an object converted."""

    def plan(self, kind: Kind) -> Plan:
        """Return a kind's plan."""

    def request(self, target: Target, options: WriteOptions, requester: Requester) -> Request:
        """Return what a write carries along."""


class Request:
    """A write under way; `warnings` are those that hold whatever its attempts come to."""

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
        """Carry out `options` on `target` for `requester` at `now` (RFC 3339), if `admission` lets that be."""
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
        """Whether it is one of many that a caller did not name."""
        self.upserts = False
        """Whether it is to update or to apply, and creates because nothing is there."""
        self.annotations: dict[str, str] = {}
        """What the audit log is told of this write."""
        self.asked: set[str] = set()
        """Which other processes were asked about this write."""
        self.sent: Body | None = None
        """The body, where it is an object."""
        self._attempt: Context | None = None

    def current(self) -> Object | None:
        """Return what is there now, as stored."""
        return self.state.get(self.plan.storage, Key(self.target.namespace, self.target.name))

    @property
    def around(self) -> Surroundings:
        """What it takes to have an object converted."""
        return Surroundings(self.state, self.random)

    def converting(self, call: Callable[[], T]) -> Operation[T]:
        """Return the result of `call`, which may need conversions by a webhook and may be called several times."""
        if not self.plan.kind.calls_out:
            return call()
        return (yield from converting(call, self.around))

    def shown(self, obj: Object, *, anew: bool = False) -> Calling[Object]:
        """Return a stored object in the served version; with `anew` that is asked for whatever was known before."""
        if not self.plan.kind.calls_out:
            return self.plan.shown(obj)
        return (yield from shown(self.plan.kind, obj, self.around, anew=anew))

    def context(self, old: Unstructured | None = None) -> Context:
        """Return what a strategy sees of this attempt."""
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
        """Return what admission sees of this attempt; its warnings and companions are those of `ctx`."""
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
        """Whose the fields are that this write sets."""
        return self.options.field_manager or self.requester.manager

    def told(self, ctx: Context | None = None) -> Sequence[str]:
        """Return all warnings, each once (apiserver `endpoints/filters/warning.go`)."""
        ctx = ctx or self._attempt
        if ctx is None or not ctx.warnings:
            return self.warnings if len(self.warnings) < 2 else list(dict.fromkeys(self.warnings))
        return list(dict.fromkeys([*self.warnings, *ctx.warnings]))


class Bodies:
    """A request's body, decoded once for each attempt, because an attempt uses it up."""

    def __init__(self, request: Request, body: Body) -> None:
        """Take the body as it came."""
        request.sent = body
        self._request = request
        self._body = body
        self._taken = False
        self.first: Unstructured = {}
        """The object, once it has been read."""

    def read(self) -> None:
        """Decode it for the first time; raises what decoding raises."""
        request, body = self._request, self._body
        self.first = request.plan.decode(body, request.options, request.warnings)

    def take(self) -> Unstructured:
        """Return the object, to be used up."""
        if not self._taken:
            self._taken = True
            return self.first
        return self._request.plan.decode(self._body, self._request.options, [])

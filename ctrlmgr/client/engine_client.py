"""A client that writes as the API does: defaulted, validated, allocated, with managedFields and finalizers.

Guarantees: what it writes is what the same request over HTTP would have written, and it is refused in the same words.
Every write carries the author, the fence as it stands when it begins, and the reconcile it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.client.fencing import Fencing, pinned
from ctrlmgr.client.rights import Rights
from ctrlmgr.engine.calls.call import Call, Calling, CallOut, Reply
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.options import (
    APPLY_PATCH,
    Body,
    DeleteOptions,
    GetOptions,
    Requester,
    WriteOptions,
)
from ctrlmgr.engine.refusals import already_exists
from ctrlmgr.engine.writes.together import together
from ctrlmgr.engine.writing import WriteEngine
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound, OutcomeUnknown, RequestTimeout
from ctrlmgr.eventlog.event import Cause, Fence

T = TypeVar("T")
_JSON = "application/json"
_STRATEGIC = "application/strategic-merge-patch+json"


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str


class Runner(Protocol):
    """What runs the engine."""

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation to its end on the engine's thread, its appends carrying `cause` and `fence`.

        Called on any other thread. Raises what the operation raises, and `Fenced`.
        """


class EngineClient:
    """A `ReconcileClient` over the engine; threads may share one, or take one a reconcile."""

    def __init__(
        self,
        engine: WriteEngine,
        run: Runner,
        requester: Requester,
        cause: Cause | None = None,
        *,
        fence: Fencing | None = None,
        manager: str = "",
        canonical: bool = False,
        rights: Rights | None = None,
        rights_of: Callable[[User], Rights] | None = None,
    ) -> None:
        """Write as `requester` through `run`, with what `fence` returns at each write; see `LogClient`.

        `manager` is the field manager of what is written, by default what the user agent says. `canonical` promises
        that objects which `create` and `update` are given are in their final form: see `engine.verbs.canonical`.
        `rights` are what it may do, and `rights_of` says what those may do in whose name it acts; without them,
        everything.
        """
        self._rights = rights
        self._rights_of = rights_of
        self.engine = engine
        self._run = run
        self._requester = requester
        self._cause = cause
        self._fence = fence
        self._manager = manager
        self._canonical = canonical
        self._options = WriteOptions(field_manager=manager)
        self._parent: EngineClient | None = None
        self._wrote = False
        self._changed_by: dict[str, None] = {}

    @property
    def changed_by(self) -> Collection[str]:
        """What has changed this client's objects on their way; also those of one that acts for it in another name."""
        return self._changed_by.keys()

    @property
    def wrote(self) -> bool:
        """Whether this client appended anything, or may have; one that acts for it in another name too."""
        return self._wrote

    @wrote.setter
    def wrote(self, value: bool) -> None:
        self._wrote = value
        if self._parent is not None:
            self._parent.wrote = value

    def for_reconcile(self, cause: Cause) -> EngineClient:
        """Return the same client for one reconcile; raises `Fenced` when this process does not lead."""
        return EngineClient(
            self.engine,
            self._run,
            self._requester,
            cause,
            fence=pinned(self._fence),
            manager=self._manager,
            canonical=self._canonical,
            rights=self._rights,
            rights_of=self._rights_of,
        )

    def acting_as(self, user: str, groups: Sequence[str]) -> EngineClient:
        """Return a client for the same reconcile that writes in the name of another user, with that one's rights."""
        requester = Requester(user, tuple(groups), self._requester.user_agent)
        other = EngineClient(
            self.engine,
            self._run,
            requester,
            self._cause,
            fence=self._fence,
            canonical=self._canonical,
            rights=self._rights_of(User(user, "", tuple(groups))) if self._rights_of is not None else None,
        )
        other._parent = self
        other._changed_by = self._changed_by
        return other

    def through(self, run: Runner) -> EngineClient:
        """Return the same client with its operations run by `run`."""
        return self._with(run, canonical=self._canonical)

    def of_canonical_objects(self) -> EngineClient:
        """Return the same client with the promise that objects are in their final form."""
        return self._with(self._run, canonical=True)

    def _with(self, run: Runner, *, canonical: bool) -> EngineClient:
        return EngineClient(
            self.engine,
            run,
            self._requester,
            self._cause,
            fence=self._fence,
            manager=self._manager,
            canonical=canonical,
            rights=self._rights,
            rights_of=self._rights_of,
        )

    def list_all(self, resource: Resource) -> Sequence[Object]:
        """Return every object of a resource as it is stored: what is acknowledged before this call is in it."""
        if self._rights is not None:
            kind = self.engine.kinds.stored(resource)
            if kind is not None:
                self._rights.check("list", Target(kind, "", ""))
        return self._run(self.engine.stored(resource), self._cause)

    def create(self, obj: Object) -> Object:
        """Store a new object and return it as stored; see `Client`, and raises `Invalid` too."""
        named = self._target(obj)
        target = named._replace(name="")
        self._check("create", target)
        if self._canonical and obj.name:
            return self._write(self.engine.create_canonical(named, obj, self._options, self._requester))
        return self._write(self.engine.create(target, _body(obj), self._options, self._requester))

    def create_all(self, objects: Sequence[Object]) -> None:
        """Store new objects that have their names, all of them or none; raises `AlreadyExists` if one is there."""
        bodies = [(self._target(obj)._replace(name=""), _body(obj)) for obj in objects]
        for target, _ in bodies:
            self._check("create", target)
        self._answer(self.engine.create_all(bodies, self._options, self._requester))

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object read at `obj.revision`, or a part of it (`status`, `finalize`); see `Client`."""
        target = self._target(obj)._replace(subresource=subresource)
        self._check("update", target)
        return self._write(self._updating(target, obj))

    def _updating(self, target: Target, obj: Object) -> Operation[Answer]:
        if self._canonical and not target.subresource:
            return self.engine.update_canonical(target, obj, self._options, self._requester)
        return self.engine.update(target, _body(obj), self._options, self._requester)

    def update_each(self, writes: Sequence[tuple[EngineClient, Object]]) -> list[Object | ApiError]:
        """Replace objects, each in the name of the client beside it, and return each as stored, or why it is not.

        It is `update` for each of them, at the same time; they share this client's reconcile and fence. Raises what
        the log raises: `Fenced`, `OutcomeUnknown` and so on.
        """
        outcomes = self._answer(together([client._checked_update(obj) for client, obj in writes]))
        return [_object_or_refusal(each) for each in outcomes]

    def _checked_update(self, obj: Object) -> Operation[Answer]:
        target = self._target(obj)
        self._check("update", target)
        return (yield from self._updating(target, obj))

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Server-side apply what `obj` says, of it or of its `status`, as `manager`; return the whole object as stored.

        What `manager` said before and does not say any more goes. With `force` fields of other managers become its own.
        Raises `Invalid`, and `ApplyConflict` without `force`.
        """
        options = WriteOptions(field_manager=manager, force=force)
        body = Body(APPLY_PATCH, obj.wire())
        target = self._target(obj)._replace(subresource=subresource)
        self._check("patch", target)
        return self._write(self.engine.patch(target, body, options, self._requester))

    def list(self, kind: Kind, namespace: str) -> Sequence[Object]:
        """Return the objects of a kind in one namespace as they are now, as a request for them would."""
        self._check("list", Target(kind, namespace, ""))
        return self._run(self.engine.everything(kind, namespace))

    def call(self, call: Call) -> Reply:
        """Call another server, and return what it answers, or why it did not."""
        return self._run(_called(call))

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the Scale of an object as it is now; raises `NotFound`, also for a kind that has no such thing."""
        target = Target(kind, namespace, name, "scale")
        self._check("get", target)
        return self._run(self.engine.get(target, GetOptions()))

    def rescale(self, kind: Kind, scale: Object) -> Object:
        """Replace the Scale read at `scale.revision` and return it as stored; see `update`."""
        target = Target(kind, scale.namespace, scale.name, "scale")
        self._check("update", target)
        return self._write(self.engine.update(target, _body(scale), self._options, self._requester))

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Patch the object of this name by a strategic merge patch, whatever it has become, and return it as stored.

        A patch that holds a `metadata.uid` is for that incarnation alone. Raises `NotFound`, `Conflict`, `Invalid`.
        """
        target = self._target(obj)._replace(subresource=subresource)
        body = Body(_STRATEGIC, msgspec.json.encode(patch))
        self._check("patch", target)
        return self._write(self.engine.patch(target, body, self._options, self._requester))

    def bind(self, pod: Object, node: str) -> None:
        """Say that the very pod read runs on a node; raises `Conflict` if it has one, or is another pod by now."""
        place = self._target(pod)._replace(subresource="binding")
        body = Body(_JSON, msgspec.json.encode(binding(pod, node)))
        self._check("create", place)
        self._answer(self.engine.create(place, body, self._options, self._requester))

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        """Ask for the deletion of the very object read: whatever has changed about it since, or only if nothing has.

        It is the latter when `propagation` says what becomes of its dependents (`Background`, `Foreground`,
        `Orphan`), and from a client of canonical objects; without, they are left to the garbage collector, as with
        Background. A kind that knows graceful deletion is given `grace` seconds; without, its own. Raises `NotFound`,
        and `Conflict` when another object has taken its name, or when it has changed.
        """
        conditional = propagation is not None or self._canonical
        options = DeleteOptions(
            grace_period_seconds=grace,
            propagation_policy=propagation or "Background",
            uid=obj.uid,
            resource_version=str(obj.revision) if conditional else None,
        )
        target = self._target(obj)
        self._check("delete", target)
        self._answer(self.engine.delete(target, None, options, self._requester))

    def recreate(self, read: Object, anew: Object) -> Object:
        """Delete the object `read`, if it has not changed since, and create `anew` of its name, in one append.

        Returns the new one as stored. Raises `NotFound`, `Conflict`, `Invalid`; `AlreadyExists` if finalizers hold the
        old one, which is marked as terminating then.
        """
        target = self._target(anew)
        self._check("delete", target)
        self._check("create", target._replace(name=""))
        gone = DeleteOptions(uid=read.uid, resource_version=str(read.revision), propagation_policy="Background")
        stored = self._write(self.engine.recreate(target, _body(anew), gone, self._options, self._requester))
        if stored.uid == read.uid:
            raise already_exists(target.kind.resource, read.name, terminating=True)
        return stored

    def expire(self, objects: Sequence[Object]) -> None:
        """Delete all of these in one append, whatever finalizers they have: their time is over.

        Raises `NotFound` or `Conflict`, and deletes none, if one of them has changed since it was read.
        """
        for obj in objects:
            self._check("delete", self._target(obj))
        self._answer(self.engine.expire(objects, self._requester))

    def _check(self, verb: str, target: Target) -> None:
        if self._rights is not None:
            self._rights.check(verb, target)

    def _write(self, operation: Operation[Answer]) -> Object:
        answer = self._answer(operation)
        if answer.object is None:
            raise NotFound("the object went with this write")
        return answer.object

    def _answer(self, operation: Operation[T]) -> T:
        try:
            answer = self._run(operation, self._cause, self._fence() if self._fence is not None else None)
        except (OutcomeUnknown, RequestTimeout):
            self.wrote = True
            raise
        self.wrote = True
        if isinstance(answer, Answer) and answer.changed_by:
            self._changed_by.update(dict.fromkeys(answer.changed_by))
        return answer

    def _target(self, obj: Object) -> Target:
        return Target(self._kind(obj), obj.namespace, obj.name)

    def _kind(self, obj: Object) -> Kind:
        kind = self.engine.kinds.stored(obj.resource)
        if kind is None:
            raise NotFound(f"{obj.resource} is not served")
        if kind.is_custom:  # in whichever version it was stored
            group, _, version = obj.view(_TypeMeta).api_version.rpartition("/")
            return self.engine.kinds.by_gvk(GroupVersionKind(group, version, kind.name)) or kind
        return kind


def _body(obj: Object) -> Body:
    return Body(_JSON, obj.wire())


def _object_or_refusal(outcome: Answer | CtrlmgrError) -> Object | ApiError:
    if isinstance(outcome, Answer):
        return outcome.object or NotFound("the object went with this write")
    if isinstance(outcome, ApiError):
        return outcome
    raise outcome


def _called(call: Call) -> Calling[Reply]:
    (reply,) = yield CallOut([call])
    return reply


def binding(pod: Object, node: str) -> dict[str, Any]:
    """Return the Binding of the very pod read to a node."""
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}

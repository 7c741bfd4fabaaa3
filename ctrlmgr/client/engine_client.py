"""A client that writes like the API server, with defaults, validation, allocation, managedFields and finalizers.

Guarantees: a write has the result, or the error, of the equivalent HTTP request. Every appended event contains the
author, the current fence, and the reconcile that wrote the event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.client.controller_rights import Rights
from ctrlmgr.client.fencing import Fencing, pinned
from ctrlmgr.engine.api_errors import already_exists
from ctrlmgr.engine.calls.call import Call, Calling, CallOut, Reply
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import (
    APPLY_PATCH,
    Body,
    DeleteOptions,
    GetOptions,
    Requester,
    WriteOptions,
)
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.engine.writes.concurrent_writes import together
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound, OutcomeUnknown, RequestTimeout
from ctrlmgr.eventlog.event import Cause, Fence

T = TypeVar("T")
_JSON = "application/json"
_STRATEGIC = "application/strategic-merge-patch+json"


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str


class Runner(Protocol):
    """Runs the operations of the API's engine."""

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation until it has finished; its appends carry `cause` and `fence`.

        Any thread except the engine's own thread may call this method. The method raises the operation's errors, and
        `Fenced` if this process no longer leads.
        """


class EngineClient:
    """A `ReconcileClient` that writes through the engine. Several threads may share a client."""

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
        """Create a client that writes as `requester` through `run`; `fence` returns the fence of each write.

        `manager` is the field manager, by default the user agent's name. With `canonical`, the caller promises that
        objects for `create` and `update` are in their final form: see `engine.verbs.canonical_writes`. `rights` are the
        requester's rights. If the requester acts as another user, `rights_of` returns the rights of that user. If
        `rights` and `rights_of` are None, every request is allowed.
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
        """The admission plugins that changed objects written by this client or by clients derived with `acting_as`."""
        return self._changed_by.keys()

    @property
    def wrote(self) -> bool:
        """Return whether this client, or a client derived from this one, appended an event or may have appended one."""
        return self._wrote

    @wrote.setter
    def wrote(self, value: bool) -> None:
        self._wrote = value
        if self._parent is not None:
            self._parent.wrote = value

    def for_reconcile(self, cause: Cause) -> EngineClient:
        """Return the client for one reconcile; raises `Fenced` if this process does not lead."""
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
        """Return a client for this client's reconcile that writes as another user and has only that user's rights."""
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
        """Return a copy of this client that runs its operations with `run`."""
        return self._with(run, canonical=self._canonical)

    def of_canonical_objects(self) -> EngineClient:
        """Return a copy of this client; the caller promises that all objects for the copy are in their final form."""
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
        """Return every stored object of a resource, including all writes acknowledged before this call."""
        if self._rights is not None:
            kind = self.engine.kinds.stored(resource)
            if kind is not None:
                self._rights.check("list", Target(kind, "", ""))
        return self._run(self.engine.stored(resource), self._cause)

    def create(self, obj: Object) -> Object:
        """Store a new object and return the stored object, as `Client.create` specifies.

        Raises `Invalid` if validation fails, in addition to the errors of `Client.create`.
        """
        named = self._target(obj)
        target = named._replace(name="")
        self._check("create", target)
        if self._canonical and obj.name:
            return self._write(self.engine.create_canonical(named, obj, self._options, self._requester))
        return self._write(self.engine.create(target, _body(obj), self._options, self._requester))

    def create_all(self, objects: Sequence[Object]) -> None:
        """Store several new objects, which must have names; if one of the objects cannot be stored, store none.

        Raises `AlreadyExists` if an object with one of the names exists.
        """
        bodies = [(self._target(obj)._replace(name=""), _body(obj)) for obj in objects]
        for target, _ in bodies:
            self._check("create", target)
        self._answer(self.engine.create_all(bodies, self._options, self._requester))

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Replace the object read at `obj.revision`, or a subresource (`status`, `finalize`); see `Client.update`."""
        target = self._target(obj)._replace(subresource=subresource)
        self._check("update", target)
        return self._write(self._updating(target, obj))

    def _updating(self, target: Target, obj: Object) -> Operation[Answer]:
        if self._canonical and not target.subresource:
            return self.engine.update_canonical(target, obj, self._options, self._requester)
        return self.engine.update(target, _body(obj), self._options, self._requester)

    def update_each(self, writes: Sequence[tuple[EngineClient, Object]]) -> list[Object | ApiError]:
        """Replace several objects concurrently; each object is paired with the client that writes the object.

        Return, for each pair, the stored object or the error of the write. All events contain this client's reconcile
        and fence. Raises the log's errors if the writes cannot be appended, such as `Fenced` and `OutcomeUnknown`.
        """
        outcomes = self._answer(together([client._checked_update(obj) for client, obj in writes]))
        return [_object_or_refusal(each) for each in outcomes]

    def _checked_update(self, obj: Object) -> Operation[Answer]:
        target = self._target(obj)
        self._check("update", target)
        return (yield from self._updating(target, obj))

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Apply `obj`, or its `status`, by server-side apply as `manager`; return the whole object as stored.

        The apply removes the fields that `manager` applied earlier and that `obj` no longer has. If `force` is set,
        `manager` takes over fields of other managers. Raises `Invalid` if validation fails, and `ApplyConflict` if
        another manager owns a changed field and `force` is not set.
        """
        options = WriteOptions(field_manager=manager, force=force)
        body = Body(APPLY_PATCH, obj.wire())
        target = self._target(obj)._replace(subresource=subresource)
        self._check("patch", target)
        return self._write(self.engine.patch(target, body, options, self._requester))

    def list(self, kind: Kind, namespace: str) -> Sequence[Object]:
        """Return the current objects of a kind in one namespace, as a list request to the API server does."""
        self._check("list", Target(kind, namespace, ""))
        return self._run(self.engine.everything(kind, namespace))

    def call(self, call: Call) -> Reply:
        """Call another server; return the other server's reply, or the problem that prevented the call."""
        return self._run(_called(call))

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the current Scale of an object.

        Raises `NotFound` if the object does not exist or its kind has no Scale subresource.
        """
        target = Target(kind, namespace, name, "scale")
        self._check("get", target)
        return self._run(self.engine.get(target, GetOptions()))

    def rescale(self, kind: Kind, scale: Object) -> Object:
        """Replace the Scale that was read at `scale.revision`, and return the stored Scale."""
        target = Target(kind, scale.namespace, scale.name, "scale")
        self._check("update", target)
        return self._write(self.engine.update(target, _body(scale), self._options, self._requester))

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> Object:
        """Apply a strategic merge patch to the object with this name, regardless of its revision.

        Return the stored object. A patch with a `metadata.uid` changes only an object with that uid. Raises `NotFound`
        if the object does not exist, `Conflict` if the object has another uid, and `Invalid` if validation fails.
        """
        target = self._target(obj)._replace(subresource=subresource)
        body = Body(_STRATEGIC, msgspec.json.encode(patch))
        self._check("patch", target)
        return self._write(self.engine.patch(target, body, self._options, self._requester))

    def bind(self, pod: Object, node: str) -> None:
        """Bind `pod` to a node; raises `Conflict` if the pod already has a node, or if another pod has replaced it."""
        place = self._target(pod)._replace(subresource="binding")
        body = Body(_JSON, msgspec.json.encode(binding(pod, node)))
        self._check("create", place)
        self._answer(self.engine.create(place, body, self._options, self._requester))

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        """Delete `obj`, regardless of its revision, or only if `obj` is unchanged since the caller read it.

        The object must be unchanged if `propagation` (`Background`, `Foreground`, `Orphan`) is given, or if this client
        writes canonical objects. If `propagation` is not given, the garbage collector deletes the dependents, as with
        `Background`. `grace` is the grace period in seconds for kinds with graceful deletion; the default is the
        object's own grace period. Raises `NotFound`, and `Conflict` if another object has replaced `obj` or if `obj`
        has changed.
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
        """Delete the object `read` if it is unchanged, and create `anew` with its name; both changes are one append.

        Return the new object as the engine stored it. Raises `NotFound` if the old object does not exist, `Conflict` if
        the old object has changed, and `Invalid` if validation fails. If the old object has finalizers, the method
        marks the old object as terminating and raises `AlreadyExists`.
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
        """Delete expired objects in one append, even if they have finalizers.

        If one of the objects has changed since the caller read it, the method deletes no object, and raises `NotFound`
        or `Conflict`.
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
            raise NotFound("this write removed the object")
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
        if kind.is_custom:  # in the API version of the stored object
            group, _, version = obj.view(_TypeMeta).api_version.rpartition("/")
            return self.engine.kinds.by_gvk(GroupVersionKind(group, version, kind.name)) or kind
        return kind


def _body(obj: Object) -> Body:
    return Body(_JSON, obj.wire())


def _object_or_refusal(outcome: Answer | CtrlmgrError) -> Object | ApiError:
    if isinstance(outcome, Answer):
        return outcome.object or NotFound("this write removed the object")
    if isinstance(outcome, ApiError):
        return outcome
    raise outcome


def _called(call: Call) -> Calling[Reply]:
    (reply,) = yield CallOut([call])
    return reply


def binding(pod: Object, node: str) -> dict[str, Any]:
    """Return the Binding that assigns `pod` to a node."""
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}

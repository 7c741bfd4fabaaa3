"""The context of a reconcile: the function's second argument, with which it reads caches and writes objects.

Guarantees:

- Objects are written with server-side apply, with the controller's name as the field manager. The server is called only
  if the object differs from the object that was applied last, or from the stored object.
- An object that another controller owns is not changed.
- If the reconcile function changes `object.status`, the status is written once, after the function.
- Every write names this reconcile as its cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.client import ReconcileClient
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, is_controlled_by
from ctrlmgr.errors import AlreadyExists, NotFound
from ctrlmgr.framework.cached_objects import Cache, read
from ctrlmgr.framework.children import Child, declared, manifest, owned, says, to_object
from ctrlmgr.framework.class_declaration import Declaration, declaration_of
from ctrlmgr.framework.typed_kinds import Condition, Kind, Status, Untyped

K = TypeVar("K", bound=Kind)


class Writer(ReconcileClient, Protocol):
    """The client with which a context writes."""

    def apply(self, obj: Object, manager: str, *, force: bool = False, subresource: str = "") -> Object:
        """Server-side apply a whole object or some of its fields; return the stored object."""


class Applied(NamedTuple):
    """The object that the controller applied last, and the object that the server stored."""

    wanted: Mapping[str, Any]
    uid: str
    revision: Revision


@dataclass(slots=True)
class Memory:
    """The state that a controller keeps about one object between reconciles; only one worker uses it at a time."""

    applied: dict[tuple[Resource, Key], Applied] = field(default_factory=dict)
    seen: Object | None = None
    """The object's state at the last successful reconcile."""


class Context:
    """The context of one reconcile of one object."""

    def __init__(
        self,
        controller: str,
        declaration: Declaration,
        raw: Object,
        obj: Any,
        *,
        cache: Cache,
        client: Writer,
        recorder: Recorder,
        clock: Clock,
        random: Random,
        memory: Memory,
    ) -> None:
        """Create a context; only the framework calls this constructor."""
        self.cache = cache
        """The caches of the controller, for reads in any namespace."""
        self.random = random
        """The source of random numbers, which is deterministic in tests."""
        self.log = structlog.get_logger(f"ctrlmgr.app.{controller}").bind(
            kind=declaration.kind, object=str(raw.key), revision=raw.revision
        )
        """A logger that adds the object's name to each line."""
        self._controller = controller
        self._declaration = declaration
        self._raw = raw
        self._obj = obj
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._memory = memory

    @property
    def old(self) -> Any:
        """The object as it was at the last successful reconcile.

        None before the first success since the process started. The previous object is only a hint about changes,
        because a reconcile does not see every change.
        """
        seen = self._memory.seen
        return None if seen is None or seen.uid != self._raw.uid else read(self._declaration, seen)

    def continue_as(self, other: Context) -> None:
        """Take over the state of a newer context of the same object; a daemon keeps its context across changes."""
        self.log, self._raw, self._obj, self._client = other.log, other._raw, other._obj, other._client

    def now(self) -> int:
        """Return the time, in microseconds since 1970."""
        return self._clock.now()

    def at(self, text: str) -> int:
        """Convert an object's timestamp (RFC 3339) to microseconds since 1970.

        Raises ValueError if the text is not a timestamp.
        """
        return parse_time(text)

    @overload
    def get(self, kind: type[K], name: str, namespace: str | None = None) -> K | None: ...

    @overload
    def get(self, kind: str, name: str, namespace: str | None = None) -> Untyped | None: ...

    def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return an object from the caches; None if the object does not exist.

        `namespace` is by default the namespace of the reconciled object. Raises LookupError if the controller does not
        declare the kind.
        """
        return self.cache.get(kind, name, self._namespace(declaration_of(kind), namespace))

    @overload
    def list(
        self, kind: type[K], namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[K]: ...

    @overload
    def list(
        self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Untyped]: ...

    def list(self, kind: Any, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Return the objects in a namespace, by default the namespace of the reconciled object.

        If the reconciled object is cluster-scoped, return the objects in all namespaces.
        """
        where = namespace if namespace is not None else self._raw.namespace or None
        return self.cache.list(kind, where, labels)

    @overload
    def owned(self, kind: type[K]) -> Sequence[K]: ...

    @overload
    def owned(self, kind: str) -> Sequence[Untyped]: ...

    def owned(self, kind: Any) -> Any:
        """Return the objects of a kind that the reconciled object controls."""
        declaration = declaration_of(kind)
        found = self.cache.lister(declaration).list(self._raw.namespace or None)
        return [read(declaration, each) for each in found if is_controlled_by(each, self._raw)]

    @overload
    def apply(self, child: K, *, owned: bool = True) -> K: ...

    @overload
    def apply(self, child: Untyped | Mapping[str, Any], *, owned: bool = True) -> Untyped: ...

    def apply(self, child: Child, *, owned: bool = True) -> Any:
        """Apply `child`, and return the stored object.

        Fields that `child` does not contain stay unchanged, but fields that the previous apply contained are removed if
        `child` does not contain them. The reconciled object becomes the owner of `child`, unless `owned` is False. A
        `child` without a namespace gets the namespace of the reconciled object. Raises `AlreadyExists` if another
        object controls `child`, and `ApiError` if the API server refuses the write.
        """
        declaration = declared(child)
        desired = self._desired(manifest(child), declaration, is_owned=owned)
        metadata = desired["metadata"]
        place = (declaration.resource, Key(metadata.get("namespace", ""), metadata["name"]))
        cached = self._cached(declaration, place[1])
        if cached is not None:
            if owned and (other := controller_of(cached)) is not None and other.uid != self._raw.uid:
                raise AlreadyExists(f"{declaration.resource} {place[1]} is controlled by {other.kind} {other.name}")
            if cached.is_terminating or self._is_applied(cached, desired, self._memory.applied.get(place)):
                return read(declaration, cached)
        stored = self._client.apply(to_object(desired, declaration.resource), self._controller, force=True)
        self._memory.applied[place] = Applied(desired, stored.uid, stored.revision)
        return read(declaration, stored)

    def delete(self, child: Kind | Untyped) -> None:
        """Delete an object that the function has read, unless a new object with the same name has replaced it."""
        declaration = declared(child)
        raw = self.cache.lister(declaration).get(Key(child.namespace, child.name))
        if raw is None or raw.uid != child.metadata.uid or raw.is_terminating:
            return
        self._memory.applied.pop((declaration.resource, raw.key), None)
        try:
            self._client.delete(raw)
        except NotFound:
            return

    def condition(
        self, type: str, status: bool | None, reason: str, message: str = "", *, generation: int | None = None
    ) -> None:
        """Set a condition in the status of the reconciled object (`meta.SetStatusCondition`).

        A `status` of None is stored as Unknown. Raises TypeError unless the object's class has a `status` that is a
        `Status`.
        """
        holder = getattr(self._obj, "status", None)
        if not isinstance(holder, Status):
            raise TypeError(
                f"{self._declaration.where} has no status with conditions; write `status: Status = Status()`"
            )
        word: Literal["True", "False", "Unknown"] = "Unknown" if status is None else "True" if status else "False"
        now = format_time_seconds(self._clock.now())
        before = next((each for each in holder.conditions if each.type == type), None)
        since = before.last_transition_time if before is not None and before.status == word else now
        seen = self._obj.metadata.generation if generation is None else generation
        condition = Condition(
            type=type,
            status=word,
            reason=reason,
            message=message,
            last_transition_time=since,
            observed_generation=seen or None,
        )
        others = [each for each in holder.conditions if each.type != type]
        at = holder.conditions.index(before) if before is not None else len(others)
        holder.conditions = [*others[:at], condition, *others[at:]]

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an Event about the reconciled object; `reason` is one word in CamelCase."""
        self._recorder.event(self._raw, WARNING if warning else NORMAL, reason, message)

    def _desired(self, fields: dict[str, Any], declaration: Declaration, *, is_owned: bool) -> dict[str, Any]:
        metadata = fields["metadata"]
        if not metadata.get("name"):
            raise ValueError(f"a {declaration.kind} to apply has no name")
        if declaration.namespaced and not metadata.get("namespace"):
            if not self._raw.namespace:
                raise ValueError(f"{declaration.kind} {metadata['name']} needs a namespace")
            fields = {**fields, "metadata": {**metadata, "namespace": self._raw.namespace}}
        return owned(fields, self._raw, self._declaration) if is_owned else fields

    def _cached(self, declaration: Declaration, key: Key) -> Object | None:
        try:
            return self.cache.lister(declaration).get(key)
        except LookupError:  # The applied kind may have no cache, because it need not be watched.
            return None

    def _is_applied(self, cached: Object, desired: Mapping[str, Any], last: Applied | None) -> bool:
        if last is None or last.wanted != desired or last.uid != cached.uid:
            return False
        # The cache contains this write, an older state, or a later change of another client; all three are acceptable
        # here.
        return cached.revision <= last.revision or says(msgspec.json.decode(cached.body), desired)

    def _namespace(self, declaration: Declaration, namespace: str | None) -> str:
        if namespace is not None:
            return namespace
        return self._raw.namespace if declaration.namespaced else ""

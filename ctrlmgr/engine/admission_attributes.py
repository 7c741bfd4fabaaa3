"""Defines the attributes of a write that admission reads and may change (apiserver `pkg/admission/attributes.go`).

The engine calls an `Admission` twice for each attempt at a write. The engine first calls `admit`, which may change the
new object. When the object is complete and valid according to its schema and strategy, the engine calls `validate`.
`admit` and `validate` return operations. While such an operation waits for another process, the engine works on other
requests. If an attempt conflicts with another write, the engine makes a new attempt with new attributes and calls
admission again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.api_errors import forbidden
from ctrlmgr.engine.calls.call import CallInputs
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import DeleteOptions, Requester, WriteOptions
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import Forbidden, StatusCause
from ctrlmgr.eventlog.event import Proposal


class Verb(StrEnum):
    """The operation that a write performs, such as create or update."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Changer(NamedTuple):
    """The plugin or webhook that changed an object during admission."""

    what: str
    """A description of the plugin or webhook, such as `webhook inject.example.com of mesh`."""
    revision: Revision = 0
    """The revision of the object that configures the change, such as a webhook configuration; 0 if there is none."""


class Attributes(msgspec.Struct):
    """One attempt at a write, in the form that admission receives."""

    kind: Kind
    """The kind of the written object. For a subresource, the kind to which the subresource belongs."""
    resource: Resource
    """The resource of `kind`: its group and plural."""
    namespace: str
    """The namespace of the object; empty for cluster-scoped kinds; for a Namespace, its own name."""
    name: str
    """The name of the object; empty until a generated name is known."""
    operation: Verb
    requester: Requester
    view: State
    """The state of the cluster on which the decision about the write is based."""
    now: str
    """The current time of the attempt in the format of RFC 3339, with seconds."""
    random: Random
    object: Unstructured | None = None
    """The new object in its stored version, or the body of a subresource.

    Only the method `admit` may change the new object in place.

    The value is None for deletions.
    """
    old: Unstructured | None = None
    """The object before the write; None for a creation. Admission must not change this object."""
    subresource: str = ""
    body_kind: GroupVersionKind | None = None
    """The kind of `object` and `old` if it differs from `kind`: a Scale, a Binding or an Eviction."""
    options: WriteOptions | DeleteOptions = WriteOptions()
    dry_run: bool = False
    warnings: list[str] = []
    """The warnings for the response's `Warning` headers."""
    annotations: dict[str, str] = {}
    """Annotations that are added to the audit event."""
    companions: list[Proposal] = []
    """Proposals that must be appended together with the object.

    If one of these proposals conflicts with another write, the engine makes a new attempt at the write.
    """
    late: list[DeferredProposals] = []
    """Proposals that the engine computes just before the append, and appends together with the object."""
    within: Revision | None = None
    """The revision of the namespace that admission has checked.

    The log refuses the write if the namespace has changed.
    """
    memory: dict[str, Any] = {}
    """Values that plugins store in the first call of `admit`, for later calls of `admit` and `validate` in the same
    attempt.
    """
    asked: set[str] = set()
    """The other processes that any attempt at this write has called.

    A new attempt at the write calls these processes again, so the number of attempts is limited.
    """
    changed_by: list[Changer] = []
    """The plugins and webhooks that have changed the object; the command `ctrlmgr why` names them."""
    should_reinvoke: bool = False
    """Whether a plugin changed the object and requested that all plugins process it again."""
    upserts: bool = False
    """Whether the write is an update or an apply that found no object and creates one."""
    is_reinvocation: bool = False
    """Whether this is the second call of `admit` in this attempt."""
    _home: Object | None = None

    @property
    def home(self) -> Object | None:
        """The object's Namespace; None if the Namespace does not exist.

        The Namespace is read only once for each attempt.
        """
        if self._home is None:
            self._home = self.view.get(NAMESPACES, Key("", self.namespace))
        return self._home

    @property
    def fields(self) -> Unstructured:
        """The new object. A deletion has no new object, so this property must not be read for a deletion."""
        assert self.object is not None, f"{self.operation} has no object"
        return self.object

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the new object, or of the old object if there is no new object."""
        metadata: Mapping[str, Any] = (self.object or self.old or {}).get("metadata") or {}
        return metadata

    @property
    def call_inputs(self) -> CallInputs:
        """The view and the random source that a conversion needs."""
        return CallInputs(self.view, self.random)

    def changed(self, plugin: str) -> None:
        """Record that the plugin `plugin` has changed the object."""
        self.changed_by.append(_plugin(plugin))

    def called(self) -> str:
        """Return the object's name for an error message; if the name is not generated yet, return generateName."""
        if self.name:
            return self.name
        metadata = (self.object or {}).get("metadata") or {}
        return metadata.get("name") or metadata.get("generateName") or "Unknown"

    def forbidden(self, detail: str, *causes: StatusCause) -> Forbidden:
        """Return the `Forbidden` error (403) with which a plugin refuses the write."""
        return forbidden(self.resource, self.called(), detail, *causes)


@cache
def _plugin(name: str) -> Changer:
    return Changer(f"plugin {name}")


class Admission(Protocol):
    """The interface of admission, whose methods the engine calls between its own steps."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether `admit` or `validate` must be called for writes with this resource, subresource and verb."""

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the decision on this write needs the object; `attributes` may lack the object."""

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Change the new object, and raise an `ApiError` to refuse the write."""

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Check the write, and raise an `ApiError` to refuse it."""


class _AdmitsEverything:
    """Admission that accepts every write unchanged."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return False

    def wants_object(self, attributes: Attributes) -> bool:
        return False

    def admit(self, attributes: Attributes) -> Operation[None]:
        yield from ()

    def validate(self, attributes: Attributes) -> Operation[None]:
        yield from ()


NO_ADMISSION: Final[Admission] = _AdmitsEverything()
"""The admission of an engine that applies only the strategies of kinds."""

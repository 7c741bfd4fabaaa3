"""What admission is told of a write, and what it may do with it (apiserver `pkg/admission/attributes.go`).

The engine calls an `Admission` twice for each attempt at a write: `admit`, while the new object may still be changed,
and `validate`, when it is complete and valid by its schema and strategy. Both are operations: they may yield commands
and so wait for answers of others, while the engine goes on with other requests. An attempt that loses a race is made
again, admission included, on attributes of its own.
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
from ctrlmgr.engine.calls.call import Surroundings
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.options import DeleteOptions, Requester, WriteOptions
from ctrlmgr.engine.refusals import forbidden
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import Forbidden, StatusCause
from ctrlmgr.eventlog.event import Proposal


class Verb(StrEnum):
    """What a write does to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Changer(NamedTuple):
    """What changed an object on its way: a plugin or a webhook."""

    what: str
    """In words: `webhook inject.example.com of mesh`."""
    revision: Revision = 0
    """That of the object that asks for it, a webhook's configuration; 0: there is none."""


class Attributes(msgspec.Struct):
    """One attempt at a write, as admission sees it."""

    kind: Kind
    """What is written to; for a subresource the kind it belongs to."""
    resource: Resource
    """The group and plural of `kind`."""
    namespace: str
    """Empty for cluster-scoped kinds; for a Namespace its own name."""
    name: str
    """Empty while a generated name is not known yet."""
    operation: Verb
    requester: Requester
    view: State
    """The state the write is decided on."""
    now: str
    """The time as RFC 3339 with seconds."""
    random: Random
    object: Unstructured | None = None
    """The new object in its stored version, or the body of a subresource; `admit` may change it in place.
    None for deletions."""
    old: Unstructured | None = None
    """The object before, not to be changed; None for creations."""
    subresource: str = ""
    body_kind: GroupVersionKind | None = None
    """What `object` and `old` are where that is not `kind`: a Scale, a Binding, an Eviction."""
    options: WriteOptions | DeleteOptions = WriteOptions()
    dry_run: bool = False
    warnings: list[str] = []
    """What the caller is told in `Warning` headers."""
    annotations: dict[str, str] = {}
    """What the audit log is told of the decision."""
    companions: list[Proposal] = []
    """What must be appended together with the object; a lost race for one of them has the write decided again."""
    late: list[DeferredProposals] = []
    """What is appended together with the object and decided only in that moment."""
    within: Revision | None = None
    """The revision of the namespace that the write relies on; it is refused if the namespace has changed."""
    memory: dict[str, Any] = {}
    """What plugins remember from `admit` to a second `admit` of the same attempt, and to `validate`."""
    asked: set[str] = set()
    """Which other processes were asked about this write, in whichever attempt: it is not decided again lightly."""
    changed_by: list[Changer] = []
    """What has changed the object; `ctrlmgr why` names it."""
    should_reinvoke: bool = False
    """Whether a plugin asked that all plugins see the object once more, because it changed it."""
    upserts: bool = False
    """Whether it is a creation by a request to update or to apply, which found nothing there."""
    is_reinvocation: bool = False
    """Whether this is the second time that `admit` is called in this attempt."""
    _home: Object | None = None

    @property
    def home(self) -> Object | None:
        """The namespace that it is in, None if there is none; once it has been found it stays the same."""
        if self._home is None:
            self._home = self.view.get(NAMESPACES, Key("", self.namespace))
        return self._home

    @property
    def fields(self) -> Unstructured:
        """The new object, where there is one."""
        assert self.object is not None, f"{self.operation} has no object"
        return self.object

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the new object, or of the old one if there is no new one."""
        metadata: Mapping[str, Any] = (self.object or self.old or {}).get("metadata") or {}
        return metadata

    @property
    def around(self) -> Surroundings:
        """What it takes to have an object converted."""
        return Surroundings(self.view, self.random)

    def changed(self, plugin: str) -> None:
        """Note that a plugin has changed the object."""
        self.changed_by.append(_plugin(plugin))

    def called(self) -> str:
        """Return what to call the object in a refusal: a generated name may not be known yet."""
        if self.name:
            return self.name
        metadata = (self.object or {}).get("metadata") or {}
        return metadata.get("name") or metadata.get("generateName") or "Unknown"

    def forbidden(self, detail: str, *causes: StatusCause) -> Forbidden:
        """Return the 403 that a plugin refuses the write with."""
        return forbidden(self.resource, self.called(), detail, *causes)


@cache
def _plugin(name: str) -> Changer:
    return Changer(f"plugin {name}")


class Admission(Protocol):
    """What decides on writes between the engine's own steps."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether `admit` or `validate` would do anything at all with such writes."""

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether deciding on this write takes its object; `attributes` may be without one."""

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Change the new object, or refuse the write with an `ApiError`."""

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Refuse the write with an `ApiError`, or let it be."""


class _AdmitsEverything:
    """Admission that does nothing."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return False

    def wants_object(self, attributes: Attributes) -> bool:
        return False

    def admit(self, attributes: Attributes) -> Operation[None]:
        yield from ()

    def validate(self, attributes: Attributes) -> Operation[None]:
        yield from ()


NO_ADMISSION: Final[Admission] = _AdmitsEverything()
"""For an engine that nothing but its kinds' strategies has a say in."""

"""Describes a kind of object as data: its schema, strategy, verbs and names.

The package `ctrlmgr.kinds` defines the built-in kinds, and CustomResourceDefinitions define all others. No other module
has a table whose keys are kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import Filter
from ctrlmgr.engine.managedfields.schema_merge_types import Root, merge_type_of
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.table_printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import ObjectCodec
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema

PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
"""The media types of all patch formats."""


class GroupVersionKind(NamedTuple):
    """The full name of a kind: group, version and kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The apiVersion of the kind: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Subresource(NamedTuple):
    """A subresource: a part of an object with its own path, such as `status`, `scale` or `binding`."""

    name: str
    kind: GroupVersionKind
    """The kind of the subresource's bodies."""
    verbs: frozenset[str]
    printer: Printer = CREATED_AT
    """The columns of the subresource's tables, if its kind is not the kind of the object."""


class Replicas(NamedTuple):
    """The values of an object that its Scale contains."""

    wanted: int | None
    """The desired number of replicas; None if the object does not set it."""
    found: int
    selector: str
    """The label selector in the form of a query; empty if the object has no selector."""


class Scaling(Protocol):
    """The way in which objects of a kind are scaled."""

    @property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """The path of the desired number of replicas, by apiVersion; the path is empty if a version has no replicas."""

    def read(self, obj: Unstructured) -> Replicas:
        """Return an object's replicas and selector; raises `UnknownError` if the number of replicas is not a number."""

    def write(self, obj: Unstructured, replicas: int) -> None:
        """Set the desired number of replicas, in place; raises `ApiError` if the object cannot hold it."""


class Document(Protocol):
    """The part of the OpenAPI document (version 2) that describes a kind."""

    def definitions(self, *, v2: bool) -> Mapping[str, dict[str, Any]]:
        """Return the schema definitions of the kind by name.

        If `v2` is set, constructs that version 2 does not support are left out.
        """

    def paths(self) -> Mapping[str, dict[str, Any]]:
        """Return the kind's path items, by path."""


@dataclass(eq=False)
class Kind:
    """A kind: one version of one resource, as the API serves it.

    Kinds are compared by identity, because each kind has only one object.
    """

    resource: Resource
    """The resource of the kind: its group and plural, as in its URLs."""
    gvk: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    definition: str
    """The name of the kind's schema, such as `io.k8s.api.core.v1.Service`."""
    definitions: Definitions
    strategy: Strategy
    storage: Resource
    """The resource under which the log stores the objects.

    The stored resource usually equals `resource`; Events of `events.k8s.io` are stored as core Events.
    """
    to_storage: Callable[[Unstructured], Unstructured] | None = None
    """A function that converts an object of this version into the stored version; None if both versions are the same.

    The field `strategy` processes the stored version.
    """
    from_storage: Callable[[Object], Object] | None = None
    """A function that converts a stored object into this version, and keeps the object's revision; None if the versions
    are the same.
    """
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    printer: Printer = CREATED_AT
    """The columns of the kind's table."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write to a subresource cannot change, by subresource.

    If None, the defaults of `managedfields.reset_fields` apply.
    """
    deprecation: str = ""
    """The warning for clients that use this version; empty if there is no warning."""
    stored_version: str = ""
    """The version from which discovery's storage version hash is computed."""
    registry_path: str = ""
    """The path of the kind's objects in Kubernetes' storage, such as `services/specs`, which error messages contain.

    The value is empty if the path is the plural.
    """
    converts_last: bool = False
    """Whether the engine decides a write in this version, and then converts the object into the stored version.

    The engine does so for custom kinds. The engine converts objects of built-in kinds first, so that their `strategy`
    processes the stored version.
    """
    calls_out: bool = False
    """Whether a webhook converts between the kind's versions.

    If so, only code that `engine.conversion` runs may call `from_storage` and `to_storage`.
    """
    translate: Callable[[Unstructured, str], tuple[Root, Unstructured]] | None = None
    """A function that converts an object into another apiVersion without decoding the object by that version's schema.

    The function returns the merge type of the other version and the converted object. The value is None if the kind has
    only one version.
    """
    versions: frozenset[str] = frozenset()
    """The kind's other apiVersions, served or not; for a built-in kind, only served versions."""
    scaling: Scaling | None = None
    """The way in which the kind is scaled, if it differs from Kubernetes' built-in kinds."""
    patches: tuple[str, ...] = PATCHES
    """The media types of the patches that the kind accepts."""
    listed_verbs: tuple[str, ...] = ()
    """The kind's verbs in discovery's order; if there are none, discovery lists the verbs in alphabetical order."""
    list_kind: str = ""
    """The kind of lists of these objects; empty if it is the kind's name followed by `List`."""
    is_served: bool = True
    """Whether the API serves the kind at a path. A version of a custom kind may be stored but not served."""
    is_stored: bool = True
    """Whether the log stores objects of `storage` in this version; False for kinds that are never stored."""
    is_prepared: bool = True
    """Whether objects of the kind can be read and written immediately.

    If not, a caller must call `prepare` first, which takes long.
    """
    document: Document | None = None
    """The kind's part of the OpenAPI document; None for built-in kinds, which the published document contains."""

    def prepare(self) -> None:
        """Compile the schemas and codecs with which objects of the kind are read and written.

        Any thread may call this method, even repeatedly.
        """

    @property
    def api_version(self) -> str:
        """The apiVersion (group and version) in the form in which objects contain it."""
        return self.gvk.api_version

    @cached_property
    def schema(self) -> Schema:
        """The schema of the kind, compiled on first use."""
        return self.definitions.schema(self.definition)

    @cached_property
    def merge_type(self) -> Root:
        """The schema in the form that field management uses, created on first use."""
        return merge_type_of(self.schema)

    @property
    def strategic(self) -> Schema | None:
        """The schema of strategic merge patches; None if the kind does not accept strategic merge patches."""
        return self.schema

    @cached_property
    def codec(self) -> ObjectCodec:
        """The codec of the kind, compiled on first use."""
        return self.definitions.codec(self.gvk.kind, self.gvk.api_version, self.definition)

    def printer_of(self, shown: GroupVersionKind) -> Printer:
        """Return the columns of a table of objects of the kind `shown`, which is this kind or a subresource's kind."""
        if shown == self.gvk:
            return self.printer
        return next((part.printer for part in self.subresources.values() if part.kind == shown), CREATED_AT)

    @property
    def is_custom(self) -> bool:
        """Return whether a CustomResourceDefinition defines the kind."""
        return self.document is not None

    @property
    def name(self) -> str:
        """The name of the kind, such as `Service`."""
        return self.gvk.kind

    @property
    def list_name(self) -> str:
        """The name of the kind whose objects are lists of this kind, such as `ServiceList`."""
        return self.list_kind or f"{self.gvk.kind}List"

    def __repr__(self) -> str:
        return f"<Kind {self.gvk.api_version} {self.gvk.kind}>"

"""A kind of object as data: its schema, strategy, verbs and names.

Built-in kinds come from `ctrlmgr.kinds`, all others from a CustomResourceDefinition. No other table is keyed by kind.
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
from ctrlmgr.engine.managedfields.shape_of import Root, shape_of
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
"""The media types of all patches."""


class GroupVersionKind(NamedTuple):
    """A kind's full name."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Subresource(NamedTuple):
    """A part of an object with its own path: `status`, `scale`, `binding` and others."""

    name: str
    kind: GroupVersionKind
    """The kind of its bodies."""
    verbs: frozenset[str]
    printer: Printer = CREATED_AT
    """The columns of its tables, if it has another kind than its object."""


class Replicas(NamedTuple):
    """The values of an object that its Scale shows."""

    wanted: int | None
    """None if the object does not set it."""
    found: int
    selector: str
    """A label selector in the form of a query; empty if there is none."""


class Scaling(Protocol):
    """How a kind of object is scaled."""

    @property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """The path of the desired number of replicas, by apiVersion; an empty path if a version has none."""

    def read(self, obj: Unstructured) -> Replicas:
        """Return an object's replicas and selector; raises `UnknownError` if a value is not a number."""

    def write(self, obj: Unstructured, replicas: int) -> None:
        """Set the desired number of replicas, in place; raises `ApiError` if the object cannot hold it."""


class Document(Protocol):
    """A kind's part of the OpenAPI document, in the form of version 2."""

    def definitions(self, *, v2: bool) -> Mapping[str, dict[str, Any]]:
        """Return the kind's definitions by name. With `v2`, constructs that version 2 does not support are left out."""

    def paths(self) -> Mapping[str, dict[str, Any]]:
        """Return its path items by path."""


@dataclass(eq=False)
class Kind:
    """One version of one resource, as served. Kinds are compared by identity: each exists once."""

    resource: Resource
    """Its group and plural, as in its URLs."""
    gvk: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    definition: str
    """The name of its schema, such as `io.k8s.api.core.v1.Service`."""
    definitions: Definitions
    strategy: Strategy
    storage: Resource
    """The resource that the log stores it as: its own, unless another group or version of it is stored."""
    to_storage: Callable[[Unstructured], Unstructured] | None = None
    """Converts this version into the stored one; None if they are the same. `strategy` sees the stored version."""
    from_storage: Callable[[Object], Object] | None = None
    """Converts a stored object into this version and keeps its revision; None if the versions are the same."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    printer: Printer = CREATED_AT
    """The columns of its table."""
    resets: Mapping[str, Filter] | None = None
    """The fields that a write cannot change, by subresource; None for the defaults of `managedfields.reset_fields`."""
    deprecation: str = ""
    """The warning for clients that use it; empty for none."""
    stored_version: str = ""
    """The version that discovery's storage version hash is computed from."""
    registry_path: str = ""
    """The path of its objects in Kubernetes' storage, such as `services/specs`; error messages name it. Empty for its
    plural.
    """
    converts_last: bool = False
    """Whether a write is decided on this version and then converted into the stored version, as for custom kinds.
    Objects of built-in kinds are converted first, so `strategy` sees the stored version.
    """
    calls_out: bool = False
    """Whether a webhook converts between its versions. Then `from_storage` and `to_storage` work within
    `engine.conversion` only.
    """
    translate: Callable[[Unstructured, str], tuple[Root, Unstructured]] | None = None
    """Converts an object into another apiVersion without decoding it by that version's schema. Returns the version's
    shape and the object. None for a kind with one version.
    """
    versions: frozenset[str] = frozenset()
    """Its other apiVersions, served or not; for a built-in kind the served ones."""
    scaling: Scaling | None = None
    """How it is scaled, if it differs from Kubernetes' own kinds."""
    patches: tuple[str, ...] = PATCHES
    """The media types of the patches that it accepts."""
    listed_verbs: tuple[str, ...] = ()
    """Its verbs in discovery's order; empty for its verbs in alphabetical order."""
    list_kind: str = ""
    """The kind of its lists, if it is not the name followed by `List`."""
    is_served: bool = True
    """Whether it has a path. A version of a custom kind may be stored and not served."""
    is_stored: bool = True
    """Whether the log holds objects of `storage` in this version; false for reviews and other kinds that are never
    stored.
    """
    is_prepared: bool = True
    """Whether its objects can be read and written at once. If not, `prepare` must run first, which takes long."""
    document: Document | None = None
    """Its part of the OpenAPI document; None for built-in kinds, which the published document contains."""

    def prepare(self) -> None:
        """Compile what reading and writing objects needs. Any thread may call this, more than once."""

    @property
    def api_version(self) -> str:
        """Its apiVersion: group and version, as its objects name it."""
        return self.gvk.api_version

    @cached_property
    def schema(self) -> Schema:
        """Its schema, compiled on first use."""
        return self.definitions.schema(self.definition)

    @cached_property
    def shape(self) -> Root:
        """Its schema in the form that field management uses, made on first use."""
        return shape_of(self.schema)

    @property
    def strategic(self) -> Schema | None:
        """The schema of strategic merge patches; None if it accepts none."""
        return self.schema

    @cached_property
    def codec(self) -> ObjectCodec:
        """Its codec, compiled on first use."""
        return self.definitions.codec(self.gvk.kind, self.gvk.api_version, self.definition)

    def printer_of(self, shown: GroupVersionKind) -> Printer:
        """Return the columns of a table that shows objects as `shown`: this kind, or one of its subresources."""
        if shown == self.gvk:
            return self.printer
        return next((part.printer for part in self.subresources.values() if part.kind == shown), CREATED_AT)

    @property
    def is_custom(self) -> bool:
        """Return whether a CustomResourceDefinition defines it."""
        return self.document is not None

    @property
    def name(self) -> str:
        """Its kind, such as `Service`."""
        return self.gvk.kind

    @property
    def list_name(self) -> str:
        """The kind of its lists, such as `ServiceList`."""
        return self.list_kind or f"{self.gvk.kind}List"

    def __repr__(self) -> str:
        return f"<Kind {self.gvk.api_version} {self.gvk.kind}>"

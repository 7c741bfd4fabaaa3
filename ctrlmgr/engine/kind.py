"""A kind of object as data: everything that is known of it, however it was declared.

Built-in kinds come from `ctrlmgr.kinds`, all others from a CustomResourceDefinition; nothing else is keyed by kind.
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
from ctrlmgr.engine.tables.printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import ObjectCodec
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema

PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
"""The media types of patches that there are."""


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
    """A part of an object with a path of its own: `status`, `scale`, `binding` and others."""

    name: str
    kind: GroupVersionKind
    """What its bodies are."""
    verbs: frozenset[str]
    printer: Printer = CREATED_AT
    """The columns of tables of it, where it is of another kind than its object."""


class Replicas(NamedTuple):
    """What a Scale shows of an object."""

    wanted: int | None
    """None: the object does not say."""
    found: int
    selector: str
    """Written as a query; empty if there is none."""


class Scaling(Protocol):
    """How a kind of object is scaled."""

    @property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """Where each apiVersion has the number of replicas that is wanted; empty for one without."""

    def read(self, obj: Unstructured) -> Replicas:
        """Return what an object says; raises `UnknownError` for what is no number."""

    def write(self, obj: Unstructured, replicas: int) -> None:
        """Have an object want so many replicas, in place; raises `ApiError` where that cannot be."""


class Document(Protocol):
    """A kind as OpenAPI has it, in the form of version 2."""

    def definitions(self, *, v2: bool) -> Mapping[str, dict[str, Any]]:
        """Return its definitions by name; for version 2 without what that cannot say."""

    def paths(self) -> Mapping[str, dict[str, Any]]:
        """Return its path items by path."""


@dataclass(eq=False)
class Kind:
    """One version of one resource, as served. Kinds are compared by identity: there is one of each."""

    resource: Resource
    """Its group and plural, as in its URLs."""
    gvk: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    definition: str
    """The name of its schema: `io.k8s.api.core.v1.Service`."""
    definitions: Definitions
    strategy: Strategy
    storage: Resource
    """The resource it is stored as: its own, unless another group or version of it is what the log holds."""
    to_storage: Callable[[Unstructured], Unstructured] | None = None
    """Turns this version into the stored one; None where they are the same. `strategy` sees the stored one."""
    from_storage: Callable[[Object], Object] | None = None
    """Turns what is stored into this version, revision kept; None where they are the same."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    printer: Printer = CREATED_AT
    """The columns of its table."""
    resets: Mapping[str, Filter] | None = None
    """What a write cannot change, by subresource; None: what is usual (`managedfields.reset_fields`)."""
    deprecation: str = ""
    """What a client is told who uses it, empty for nothing."""
    stored_version: str = ""
    """The version that it is stored in, as its hash in discovery says."""
    registry_path: str = ""
    """Where Kubernetes' storage keeps it, `services/specs`, as errors name it; empty: under its plural."""
    converts_last: bool = False
    """Whether a write is decided on this version and what comes of it is turned into the stored one, as with custom
    kinds; built-in ones are turned into the stored version first, which is the one that `strategy` sees."""
    calls_out: bool = False
    """Whether a hook turns its versions into one another: then `from_storage` and `to_storage` work within
    `engine.conversion` only."""
    translate: Callable[[Unstructured, str], tuple[Root, Unstructured]] | None = None
    """Turns an object into another apiVersion, not read by that version's schema, and returns the version's shape with
    it; None where there is one version."""
    versions: frozenset[str] = frozenset()
    """The other apiVersions that there are of it, served or not; for a built-in kind those that are served."""
    scaling: Scaling | None = None
    """How it is scaled, if that is not how Kubernetes' own kinds are."""
    patches: tuple[str, ...] = PATCHES
    """The media types of patches that it takes."""
    listed_verbs: tuple[str, ...] = ()
    """Its verbs as discovery has them, in that order; empty: those that it has, sorted."""
    list_kind: str = ""
    """What a list of it is called, if that is not its name with `List` behind."""
    is_served: bool = True
    """Whether it has a path; a version of a custom kind may be stored only."""
    is_stored: bool = True
    """Whether it is as this version that objects of `storage` are in the log; never so for reviews and the like."""
    is_prepared: bool = True
    """Whether its objects can be read and written at once; if not, `prepare` comes first, which takes long."""
    document: Document | None = None
    """What OpenAPI has of it; None for built-in kinds, which are in the published document."""

    def prepare(self) -> None:
        """Have at hand what reading and writing objects takes; any thread may call it, more than once."""

    @property
    def api_version(self) -> str:
        """The group and version that it is of, as its objects say it."""
        return self.gvk.api_version

    @cached_property
    def schema(self) -> Schema:
        """Its schema, compiled on first use."""
        return self.definitions.schema(self.definition)

    @cached_property
    def shape(self) -> Root:
        """What field management sees of it, made on first use."""
        return shape_of(self.schema)

    @property
    def strategic(self) -> Schema | None:
        """The schema of strategic merge patches; None if it takes none."""
        return self.schema

    @cached_property
    def codec(self) -> ObjectCodec:
        """Its codec, compiled on first use."""
        return self.definitions.codec(self.gvk.kind, self.gvk.api_version, self.definition)

    def printer_of(self, shown: GroupVersionKind) -> Printer:
        """Return the columns of a table that shows objects of this kind as `shown`: themselves, or a subresource."""
        if shown == self.gvk:
            return self.printer
        return next((part.printer for part in self.subresources.values() if part.kind == shown), CREATED_AT)

    @property
    def is_custom(self) -> bool:
        """Whether a definition made it."""
        return self.document is not None

    @property
    def name(self) -> str:
        """`Service`."""
        return self.gvk.kind

    @property
    def list_name(self) -> str:
        """`ServiceList`."""
        return self.list_kind or f"{self.gvk.kind}List"

    def __repr__(self) -> str:
        return f"<Kind {self.gvk.api_version} {self.gvk.kind}>"

"""A kind of object as data: everything that is known of it, whoever declared it.

Built-in kinds come from `ctrlmgr.kinds`, all others from a CustomResourceDefinition; nothing else is keyed by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import Filter
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.engine.tables.printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.schema import Definitions, Schema


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

    @cached_property
    def schema(self) -> Schema:
        """Its schema, compiled on first use."""
        return self.definitions.schema(self.definition)

    @cached_property
    def codec(self) -> Codec:
        """Its codec, compiled on first use."""
        return self.definitions.codec(self.gvk.kind, self.gvk.api_version, self.definition)

    def printer_of(self, shown: GroupVersionKind) -> Printer:
        """Return the columns of a table that shows objects of this kind as `shown`: themselves, or a subresource."""
        if shown == self.gvk:
            return self.printer
        return next((part.printer for part in self.subresources.values() if part.kind == shown), CREATED_AT)

    @property
    def name(self) -> str:
        """`Service`."""
        return self.gvk.kind

    @property
    def list_name(self) -> str:
        """`ServiceList`."""
        return f"{self.gvk.kind}List"

    def __repr__(self) -> str:
        return f"<Kind {self.gvk.api_version} {self.gvk.kind}>"

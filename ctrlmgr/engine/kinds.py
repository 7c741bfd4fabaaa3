"""All kinds there are, by every name that they go by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.tables.printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.schema import Definitions


class Group(NamedTuple):
    """A group of kinds, as discovery lists it; the core group's name is empty."""

    name: str
    versions: tuple[str, ...]
    """Its versions, the preferred one first."""


class Kinds:
    """The registry of kinds."""

    def __init__(self, definitions: Definitions, kinds: Iterable[Kind] = (), groups: Sequence[Group] = ()) -> None:
        """Start with these; `groups` are in discovery's order, the core group first."""
        self.definitions = definitions
        self.groups = groups
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_gvk: dict[GroupVersionKind, Kind] = {}
        self._stored: dict[Resource, Kind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Register a kind, instead of the one of the same name if there is one."""
        self._by_path[kind.resource.group, kind.gvk.version, kind.resource.plural] = kind
        self._by_gvk[kind.gvk] = kind
        if kind.to_storage is None and "delete" in kind.verbs:
            self._stored[kind.storage] = kind

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served at a path."""
        return self._by_path.get((group, version, plural))

    def by_gvk(self, gvk: GroupVersionKind) -> Kind | None:
        """Return a kind by its full name, if it has a path of its own."""
        return self._by_gvk.get(gvk)

    def stored(self, resource: Resource) -> Kind | None:
        """Return the kind as which objects of `resource` are in the log; None for reviews and the like."""
        return self._stored.get(resource)

    def printer_of(self, gvk: GroupVersionKind) -> Printer:
        """Return the columns of a kind's table; of a kind that is not known, the usual ones."""
        kind = self._by_gvk.get(gvk)
        return CREATED_AT if kind is None else kind.printer

    def codec_for(self, gvk: GroupVersionKind) -> Codec:
        """Return the codec of any kind of body, also of what is never stored; raises KeyError for what nobody knows."""
        definition = self.definitions.by_kind[gvk.api_version, gvk.kind]
        return self.definitions.codec(gvk.kind, gvk.api_version, definition)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

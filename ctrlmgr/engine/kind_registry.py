"""The registry of all kinds, with lookups by each of a kind's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.version_order import newest_first
from ctrlmgr.engine.aggregated_groups import AggregatedGroup, aggregated_groups, in_order, versions_in_order
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.tables.table_printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.definitions import Definitions


class Group(NamedTuple):
    """An API group, as discovery lists it; the core group's name is empty."""

    name: str
    versions: tuple[str, ...]
    """The versions of the group, the preferred version first."""


class _Table(NamedTuple):
    """The kinds at one point in time, by each of their names; the index is not changed any more once it is in use."""

    groups: dict[str, Group]
    by_path: dict[tuple[str, str, str], Kind]
    by_gvk: dict[GroupVersionKind, Kind]
    stored: dict[Resource, Kind]

    def copy(self) -> _Table:
        """Return a copy of the index that can be changed."""
        return _Table(*(names.copy() for names in self))  # type: ignore[arg-type]  # each is a dict of its own type

    def add(self, kind: Kind, builtin: Mapping[str, Group]) -> None:
        """Add a kind under each of its names that no other kind has yet; `builtin` contains the built-in groups."""
        if kind.is_served:
            self.by_path.setdefault((kind.resource.group, kind.gvk.version, kind.resource.plural), kind)
            self._add_version(*kind.gvk[:2], builtin)
        self.by_gvk.setdefault(kind.gvk, kind)
        if kind.is_stored:
            self.stored.setdefault(kind.storage, kind)

    def _add_version(self, group: str, version: str, builtin: Mapping[str, Group]) -> None:
        versions = self.groups[group].versions if group in self.groups else ()
        if version not in versions:
            first = builtin[group].versions if group in builtin else ()
            self.groups[group] = Group(group, (*first, *newest_first({*versions, version} - {*first})))


class Kinds:
    """The registry of kinds: built-in kinds, and the custom kinds that CustomResourceDefinitions define.

    Only one thread may change the registry, and any thread may read it. A reader always gets the kinds of one point in
    time.
    """

    def __init__(self, definitions: Definitions, kinds: Iterable[Kind] = (), groups: Sequence[Group] = ()) -> None:
        """Create a registry with built-in kinds; `groups` must be in discovery's order, the core group first."""
        self.definitions = definitions
        self.epoch = 0
        """A number that increases with each change of the kinds.

        A value that a caller derives from the kinds is valid until this number changes.
        """
        self._builtin = list(kinds)
        self._groups = {group.name: group for group in groups}
        self.refresh: Callable[[Iterable[Object]], None] = _no_custom_kinds
        """A function that replaces the custom kinds of the given CustomResourceDefinitions."""
        self._aggregated: Mapping[str, AggregatedGroup] = {}
        self._custom: dict[str, Sequence[Kind]] = {}
        self._table = self._tabled()

    def add(self, kind: Kind) -> None:
        """Register a built-in kind; the new kind replaces a kind of the same name."""
        self._builtin.insert(0, kind)
        self._changed()

    def customize(self, changes: Mapping[str, Sequence[Kind]]) -> None:
        """Replace the custom kinds of some CustomResourceDefinitions, by the name of the CustomResourceDefinition.

        If a CustomResourceDefinition maps to an empty sequence, its kinds are removed. A custom kind never replaces a
        built-in kind with the same name. The time that this takes depends only on the number of new kinds.
        """
        only_adds = changes.keys().isdisjoint(self._custom)
        for name, kinds in changes.items():
            if kinds:
                self._custom[name] = kinds
            else:
                self._custom.pop(name, None)
        if only_adds:
            self._replace(self._with(self._table.copy(), changes))
        else:
            self._changed()

    def _changed(self) -> None:
        self._replace(self._tabled())

    def _replace(self, table: _Table) -> None:
        self._table = table
        self.epoch += 1

    def _tabled(self) -> _Table:
        table = _Table(dict(self._groups), {}, {}, {})
        for kind in self._builtin:
            table.add(kind, self._groups)
        return self._with(table, self._custom)

    def _with(self, table: _Table, custom: Mapping[str, Sequence[Kind]]) -> _Table:
        for name in sorted(custom):
            for kind in custom[name]:
                table.add(kind, self._groups)
        return table

    @property
    def groups(self) -> Sequence[Group]:
        """The groups in discovery's order: the core group is first, and groups that are not built in are last."""
        groups, known = self._table.groups, self._aggregated
        others = in_order((groups.keys() | known.keys()) - self._groups.keys(), known)
        return [*(groups[name] for name in self._groups), *(self._group(name) for name in others)]

    def _group(self, name: str) -> Group:
        found, known = self._table.groups.get(name), self._aggregated.get(name)
        if known is None and found is not None:
            return found
        return Group(name, versions_in_order(frozenset(found.versions if found is not None else ()), known))

    def announce(self, services: Iterable[Object]) -> None:
        """Replace the registered groups by the groups that these APIServices name."""
        found = aggregated_groups(services)
        if found != self._aggregated:
            self._aggregated = found
            self.epoch += 1

    @property
    def builtin_groups(self) -> Sequence[Group]:
        """The built-in groups, with their built-in versions."""
        return [*self._groups.values()]

    def has_builtin(self, group: str) -> bool:
        """Return whether a group is built in."""
        return group in self._groups

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served as a version of a resource; None if there is no such kind."""
        return self._table.by_path.get((group, version, plural))

    def by_gvk(self, gvk: GroupVersionKind) -> Kind | None:
        """Return the kind with a full name; None if there is none.

        Kinds that are only bodies of subresources are not found.
        """
        return self._table.by_gvk.get(gvk)

    def stored(self, resource: Resource) -> Kind | None:
        """Return the kind in whose form the log stores objects of `resource`; None if such objects are never stored."""
        return self._table.stored.get(resource)

    def printer_of(self, gvk: GroupVersionKind) -> Printer:
        """Return the columns of a kind's table; the default columns if the kind is not known."""
        kind = self._table.by_gvk.get(gvk)
        return CREATED_AT if kind is None else kind.printer

    def codec_for(self, gvk: GroupVersionKind) -> Codec:
        """Return the codec of any built-in type, including types that are never stored.

        Raises KeyError if the type belongs to a custom kind.
        """
        definition = self.definitions.by_kind[gvk.api_version, gvk.kind]
        return self.definitions.codec(gvk.kind, gvk.api_version, definition)

    def custom(self) -> Sequence[Kind]:
        """Return the served kinds that are not built in, by their plural and group."""
        found = (kind for kind in self if kind.document is not None)
        return sorted(found, key=lambda kind: (kind.resource.plural, kind.resource.group))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._table.by_path.values())


def _no_custom_kinds(definitions: Iterable[Object]) -> None:
    """Do nothing; the default of `Kinds.refresh`, for a registry without custom kinds."""

"""All kinds there are, by every name that they go by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.versions import newest_first
from ctrlmgr.engine.aggregated_groups import AggregatedGroup, aggregated_groups, in_order, versions_in_order
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.tables.printer import CREATED_AT, Printer
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.definitions import Definitions


class Group(NamedTuple):
    """A group of kinds, as discovery lists it; the core group's name is empty."""

    name: str
    versions: tuple[str, ...]
    """Its versions, the preferred one first."""


class _Table(NamedTuple):
    """The kinds at one moment, under every name; never changed once it is in use."""

    groups: dict[str, Group]
    by_path: dict[tuple[str, str, str], Kind]
    by_gvk: dict[GroupVersionKind, Kind]
    stored: dict[Resource, Kind]

    def copy(self) -> _Table:
        """Return another one with the same kinds."""
        return _Table(*(names.copy() for names in self))  # type: ignore[arg-type]  # each is a dict of its own type

    def add(self, kind: Kind, builtin: Mapping[str, Group]) -> None:
        """Add a kind under those of its names that no other has; `builtin` are the groups that are built in."""
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
    """The registry of kinds: those that are built in, and those that come, change and go with their definitions.

    One thread changes it, any may read it: what a reader finds is of one moment.
    """

    def __init__(self, definitions: Definitions, kinds: Iterable[Kind] = (), groups: Sequence[Group] = ()) -> None:
        """Start with these, which are built in; `groups` are in discovery's order, the core group first."""
        self.definitions = definitions
        self.epoch = 0
        """Another number after each change: what was derived from the kinds holds as long as it is the same."""
        self._builtin = list(kinds)
        self._groups = {group.name: group for group in groups}
        self.refresh: Callable[[Iterable[Object]], None] = _no_custom_kinds
        """Brings the custom kinds to what these definitions say, which are all there are."""
        self._aggregated: Mapping[str, AggregatedGroup] = {}
        self._custom: dict[str, Sequence[Kind]] = {}
        self._table = self._tabled()

    def add(self, kind: Kind) -> None:
        """Register a kind that is built in, instead of the one of the same name if there is one."""
        self._builtin.insert(0, kind)
        self._changed()

    def customize(self, changes: Mapping[str, Sequence[Kind]]) -> None:
        """Have these kinds, by the name of what defines them, instead of those it defined before; an empty one is gone.

        A kind that is built in is not replaced by a custom one of the same name. What is new costs what it has itself,
        however many others there are.
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
        """The groups in discovery's order: the core group first, those that are not built in last."""
        groups, known = self._table.groups, self._aggregated
        others = in_order((groups.keys() | known.keys()) - self._groups.keys(), known)
        return [*(groups[name] for name in self._groups), *(self._group(name) for name in others)]

    def _group(self, name: str) -> Group:
        found, known = self._table.groups.get(name), self._aggregated.get(name)
        if known is None and found is not None:
            return found
        return Group(name, versions_in_order(frozenset(found.versions if found is not None else ()), known))

    def announce(self, services: Iterable[Object]) -> None:
        """Tell of the groups that these APIServices announce, which are all there are."""
        found = aggregated_groups(services)
        if found != self._aggregated:
            self._aggregated = found
            self.epoch += 1

    @property
    def builtin_groups(self) -> Sequence[Group]:
        """The groups that are built in, with the versions that are."""
        return [*self._groups.values()]

    def has_builtin(self, group: str) -> bool:
        """Say whether a group is one of those that are built in."""
        return group in self._groups

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served at a path."""
        return self._table.by_path.get((group, version, plural))

    def by_gvk(self, gvk: GroupVersionKind) -> Kind | None:
        """Return a kind by its full name, if it is no mere body of a subresource."""
        return self._table.by_gvk.get(gvk)

    def stored(self, resource: Resource) -> Kind | None:
        """Return the kind as which objects of `resource` are in the log; None for reviews and the like."""
        return self._table.stored.get(resource)

    def printer_of(self, gvk: GroupVersionKind) -> Printer:
        """Return the columns of a kind's table; of a kind that is not known, the usual ones."""
        kind = self._table.by_gvk.get(gvk)
        return CREATED_AT if kind is None else kind.printer

    def codec_for(self, gvk: GroupVersionKind) -> Codec:
        """Return the codec of any body but a custom object, also of what is never stored; else raises KeyError."""
        definition = self.definitions.by_kind[gvk.api_version, gvk.kind]
        return self.definitions.codec(gvk.kind, gvk.api_version, definition)

    def custom(self) -> Sequence[Kind]:
        """Return the kinds that are served and not built in, by plural and group."""
        found = (kind for kind in self if kind.document is not None)
        return sorted(found, key=lambda kind: (kind.resource.plural, kind.resource.group))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._table.by_path.values())


def _no_custom_kinds(definitions: Iterable[Object]) -> None:
    """Leave a registry as it is that knows nothing of definitions."""

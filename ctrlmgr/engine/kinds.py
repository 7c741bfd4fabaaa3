"""All kinds there are, by every name that they go by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.versions import newest_first
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
    """The kinds at one moment, under every name; never changed."""

    groups: Sequence[Group]
    by_path: Mapping[tuple[str, str, str], Kind]
    by_gvk: Mapping[GroupVersionKind, Kind]
    stored: Mapping[Resource, Kind]


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
        self._groups = groups
        self.refresh: Callable[[Iterable[Object]], None] = _no_custom_kinds
        """Brings the custom kinds to what these definitions say, which are all there are."""
        self._custom: dict[str, Sequence[Kind]] = {}
        self._table = self._tabled()

    def add(self, kind: Kind) -> None:
        """Register a kind that is built in, instead of the one of the same name if there is one."""
        self._builtin.insert(0, kind)
        self._changed()

    def customize(self, changes: Mapping[str, Sequence[Kind]]) -> None:
        """Have these kinds, by the name of what defines them, instead of those it defined before; an empty one is gone.

        A kind that is built in is not replaced by a custom one of the same name.
        """
        for name, kinds in changes.items():
            if kinds:
                self._custom[name] = kinds
            else:
                self._custom.pop(name, None)
        self._changed()

    def _changed(self) -> None:
        self._table = self._tabled()
        self.epoch += 1

    def _tabled(self) -> _Table:
        custom = [kind for name in sorted(self._custom) for kind in self._custom[name]]
        by_path: dict[tuple[str, str, str], Kind] = {}
        by_gvk: dict[GroupVersionKind, Kind] = {}
        stored: dict[Resource, Kind] = {}
        for kind in [*self._builtin, *custom]:
            if kind.is_served:
                by_path.setdefault((kind.resource.group, kind.gvk.version, kind.resource.plural), kind)
            by_gvk.setdefault(kind.gvk, kind)
            if kind.is_stored:
                stored.setdefault(kind.storage, kind)
        return _Table(self._all_groups(), by_path, by_gvk, stored)

    def _all_groups(self) -> Sequence[Group]:
        versions: dict[str, set[str]] = {}
        for kinds in self._custom.values():
            for kind in kinds:
                if kind.is_served:
                    versions.setdefault(kind.gvk.group, set()).add(kind.gvk.version)
        groups = [Group(name, _with(known, versions.pop(name, set()))) for name, known in self._groups]
        return (*groups, *(Group(name, tuple(newest_first(versions[name]))) for name in sorted(versions)))

    @property
    def groups(self) -> Sequence[Group]:
        """The groups in discovery's order: the core group first, those of custom kinds last."""
        return self._table.groups

    def has_builtin(self, group: str) -> bool:
        """Say whether a group is one of those that are built in."""
        return any(each.name == group for each in self._groups)

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

    def custom(self) -> Iterator[Kind]:
        """Yield the kinds that are served and not built in."""
        return (kind for kind in self if kind.document is not None)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._table.by_path.values())


def _no_custom_kinds(definitions: Iterable[Object]) -> None:
    """Leave a registry as it is that knows nothing of definitions."""


def _with(known: tuple[str, ...], others: set[str]) -> tuple[str, ...]:
    return (*known, *newest_first(others - set(known)))

"""The custom kinds of a moment: what the definitions that there were then say of names, columns and objects.

Guarantees: only definitions that were established count, as they do for a server; an object is read by the schema of
its moment, pruned and defaulted as the API showed it then, in the version that it was stored in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource, Revision
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import ApiError
from ctrlmgr.extensions.custom.kind import custom_kinds, outline_of
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.inspection import past
from ctrlmgr.inspection.database import Database
from ctrlmgr.schema.definitions import Definitions


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str


class CustomKindsAt:
    """The custom kinds of one moment of a log; the definitions are read when they are first needed."""

    def __init__(self, database: Database, at: Revision | None = None) -> None:
        """Look at a revision, by default at the newest; `Expired` comes when compaction has passed it."""
        self._database = database
        self._at = at

    @cached_property
    def _defined(self) -> Mapping[Resource, tuple[Object, Definition]]:
        found = {}
        for obj in past.objects(self._database, DEFINITIONS, at=self._at):
            definition = outline_of(obj)
            if definition.has_condition("Established"):
                found[Resource(definition.group, definition.accepted.plural)] = (obj, definition)
        return found

    def __iter__(self) -> Iterator[Definition]:
        return (definition for _, definition in self._defined.values())

    @cached_property
    def _kinds(self) -> dict[Resource, Sequence[Kind]]:
        return {}

    def kind_of(self, obj: Object) -> Kind | None:
        """Return the kind of a stored object, in the version that it is stored in; None if there is no such kind."""
        defined = self._defined.get(obj.resource)
        if defined is None:
            return None
        if obj.resource not in self._kinds:
            self._kinds[obj.resource] = custom_kinds(defined[0], Definitions.builtin())
        version = obj.view(_TypeMeta).api_version.rpartition("/")[2]
        return next((kind for kind in self._kinds[obj.resource] if kind.gvk.version == version), None)

    def shown(self, obj: Object) -> Object:
        """Return a stored object as its kind shows it; one that cannot be shown so is returned as it is."""
        kind = self.kind_of(obj)
        if kind is None or kind.from_storage is None:
            return obj
        try:
            return kind.from_storage(obj)
        except ApiError:
            return obj

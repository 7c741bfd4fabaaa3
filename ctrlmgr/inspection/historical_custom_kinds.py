"""Provides the custom kinds at a revision, according to the CustomResourceDefinitions at that revision.

Guarantees: as in a server, only established CustomResourceDefinitions are used. An object is decoded in its stored
version with the schema at that revision, pruned and defaulted as the API did at that revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource, Revision
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import ApiError
from ctrlmgr.extensions.custom.custom_kind import custom_kinds, outline_of
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.inspection import historical_state
from ctrlmgr.inspection.database import Database
from ctrlmgr.schema.definitions import Definitions


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str


class CustomKindsAt:
    """The custom kinds at one revision of a log; the CustomResourceDefinitions are read on first use."""

    def __init__(self, database: Database, at: Revision | None = None) -> None:
        """Read the custom kinds at `at`, by default the newest revision; methods raise `Expired` if it is compacted."""
        self._database = database
        self._at = at

    @cached_property
    def _defined(self) -> Mapping[Resource, tuple[Object, Definition]]:
        found = {}
        for obj in historical_state.objects(self._database, DEFINITIONS, at=self._at):
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
        """Return the kind of a stored object, in its stored version.

        The function returns None if no CustomResourceDefinition has this kind.
        """
        defined = self._defined.get(obj.resource)
        if defined is None:
            return None
        if obj.resource not in self._kinds:
            self._kinds[obj.resource] = custom_kinds(defined[0], Definitions.builtin())
        version = obj.view(_TypeMeta).api_version.rpartition("/")[2]
        return next((kind for kind in self._kinds[obj.resource] if kind.gvk.version == version), None)

    def shown(self, obj: Object) -> Object:
        """Return a stored object as the API server returns it.

        If the conversion is impossible, return the stored object unchanged.
        """
        kind = self.kind_of(obj)
        if kind is None or kind.from_storage is None:
            return obj
        try:
            return kind.from_storage(obj)
        except ApiError:
            return obj

"""Finds the plural names of custom kinds: lines contain only the kind, and definitions contain its plural.

Guarantees: if the definition of a kind is before its objects, they get its plural. If an object is before its
definition, all objects of the kind get the plural that Kubernetes would guess.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.schema import published_schema

_OWN = frozenset(path.removeprefix("/apis/").partition("/")[0] for path in published_schema.discovery())


class _Names(msgspec.Struct):
    kind: str = ""
    plural: str = ""


class _Spec(msgspec.Struct):
    group: str = ""
    names: _Names = msgspec.field(default_factory=_Names)


class _Definition(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Kind(msgspec.Struct):
    kind: str


class CustomNames:
    """The names in the definitions so far."""

    def __init__(self) -> None:
        """Start empty."""
        self._plurals: dict[str, dict[str, str]] = {}  # by group and kind
        self._guessed: set[Resource] = set()  # those with objects before their definition

    def named(self, obj: Object) -> Object:
        """Return an object with its correct resource; learn the names in a definition."""
        if obj.resource == DEFINITIONS:
            spec = obj.view(_Definition).spec
            self._plurals.setdefault(spec.group, {})[spec.names.kind] = spec.names.plural
            return obj
        if not is_custom_group(obj.resource.group) or obj.resource in self._guessed:
            return obj
        plural = self._plurals.get(obj.resource.group, {}).get(obj.view(_Kind).kind)
        if plural is None:
            self._guessed.add(obj.resource)
        if plural is None or plural == obj.resource.plural:
            return obj
        return Object(Resource(obj.resource.group, plural), obj.body, obj.revision, obj.metadata)


def is_custom_group(group: str) -> bool:
    """Return whether a group can have custom kinds: it has a dot and is not one of Kubernetes' own."""
    return "." in group and group not in _OWN

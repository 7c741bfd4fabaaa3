"""Finds the plurals of custom kinds in CustomResourceDefinitions, because custom objects contain only the kind.

Guarantees: if the CustomResourceDefinition of a kind precedes the kind's objects in the recording, the objects get the
plural in the CustomResourceDefinition. If an object precedes the CustomResourceDefinition, all objects of the kind get
the plural that Kubernetes would guess.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.schema import published_schema

_OWN = frozenset(path.removeprefix("/apis/").partition("/")[0] for path in published_schema.resource_lists())


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
    """The names in the CustomResourceDefinitions that were read so far."""

    def __init__(self) -> None:
        """Create an empty instance."""
        self._plurals: dict[str, dict[str, str]] = {}  # the names by group and kind
        self._guessed: set[Resource] = set()  # the kinds with objects before their definition

    def named(self, obj: Object) -> Object:
        """Return an object with the correct resource; if the object is a CustomResourceDefinition, store its names."""
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
    """Return whether a group can have custom kinds.

    Its name must contain a dot, and it must not be a group of Kubernetes itself.
    """
    return "." in group and group not in _OWN

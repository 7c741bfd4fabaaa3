"""What custom kinds are called: a recording's lines name kinds, and only a definition knows a kind's plural.

Guarantees: objects of a kind whose definition comes first are of the resource that it names; where an object comes
before its definition, it and all others of its kind are of the resource that Kubernetes would guess.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.schema import structure

_OWN = frozenset(path.removeprefix("/apis/").partition("/")[0] for path in structure.discovery())


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
    """The kinds that definitions have named so far."""

    def __init__(self) -> None:
        """Know none."""
        self._plurals: dict[str, dict[str, str]] = {}  # by group and kind
        self._guessed: set[Resource] = set()  # those of which there were objects before there was a definition

    def named(self, obj: Object) -> Object:
        """Return an object as one of the resource that it is of; learn from it if it is a definition."""
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
    """Say whether a group can have custom kinds: all with a dot can, and Kubernetes' own hardly do."""
    return "." in group and group not in _OWN

"""Updates a registry of kinds from the existing CustomResourceDefinitions.

Guarantees: the registry contains the kinds of exactly the established CustomResourceDefinitions, at the revision of the
last update. If only the status of a CustomResourceDefinition has changed, its kinds are kept, so that callers can
continue to use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.extensions.custom.custom_kind import VERBS, VERBS_OF_TERMINATING, custom_kinds


class _Status(msgspec.Struct, rename="camel"):
    """The fields in a CustomResourceDefinition's status that determine how its kinds are served."""

    accepted_names: dict[str, Any] | None = None
    conditions: list[dict[str, Any]] | None = None


class _Definition(msgspec.Struct):
    metadata: dict[str, Any]
    spec: msgspec.Raw
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Definition).decode


class _Served(NamedTuple):
    """A processed CustomResourceDefinition and its kinds, which are empty if it is not established."""

    revision: Revision
    identity: tuple[Any, ...] | None
    """The parts of the CustomResourceDefinition on which its kinds depend; None if it is not established."""
    kinds: Sequence[Kind]


class CustomKinds:
    """Updates a registry of kinds; only one thread may use an instance."""

    def __init__(self, kinds: Kinds) -> None:
        """Update `kinds`."""
        self._kinds = kinds
        self._served: dict[str, _Served] = {}

    def refresh(self, definitions: Iterable[Object]) -> None:
        """Replace the custom kinds in the registry by the kinds of the given CustomResourceDefinitions."""
        found = {obj.name: obj for obj in definitions}
        changes: dict[str, Sequence[Kind]] = dict.fromkeys(self._served.keys() - found.keys(), ())
        for name in changes:
            del self._served[name]
        for name, obj in found.items():
            known = self._served.get(name)
            if known is None or known.revision != obj.revision:
                self._served[name] = served = self._serve(obj, known)
                if served.kinds is not (known.kinds if known is not None else ()):
                    changes[name] = served.kinds
        if changes:
            self._kinds.customize(changes)

    def _serve(self, obj: Object, known: _Served | None) -> _Served:
        definition = _decode(obj.body)
        conditions = _conditions(definition)
        terminating = conditions.get("Terminating") == "True"
        if conditions.get("Established") != "True":
            return _Served(obj.revision, None, ())
        names = definition.status.accepted_names if definition.status is not None else None
        identity = (definition.metadata.get("uid"), bytes(definition.spec), names, terminating)
        if known is None or known.identity is None or known.identity[:3] != identity[:3]:
            return _Served(obj.revision, identity, custom_kinds(obj, self._kinds.definitions))
        if known.identity == identity:
            return _Served(obj.revision, identity, known.kinds)
        for kind in known.kinds:
            kind.listed_verbs = VERBS_OF_TERMINATING if terminating else VERBS
        return _Served(obj.revision, identity, list(known.kinds))


def _conditions(definition: _Definition) -> Mapping[str, str]:
    conditions = (definition.status.conditions if definition.status is not None else None) or ()
    return {each.get("type", ""): each.get("status", "") for each in conditions}

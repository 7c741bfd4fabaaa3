"""Sets metadata.managedFields of objects that controllers write in their final form.

Guarantees: the entries equal those of the same write through the API with the field manager `manager`. Objects without
an API kind get no entries. Atomic lists are compared as bytes and never decoded, which makes long lists cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.managedfields import FieldManager

CONTROLLER_MANAGER = "kube-controller-manager"
"""The field manager of the controllers' writes.

In Kubernetes, all controllers are part of the program kube-controller-manager.
"""

_decode: Callable[[bytes | msgspec.Raw], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

_Raw: TypeAlias = "dict[str, msgspec.Raw]"


class _Marked:
    """The field manager of one kind, and the names of its atomic list fields."""

    def __init__(self, kind: Kind) -> None:
        self._manager = FieldManager(kind.merge_type, kind.gvk.api_version, kind=kind.name, resets=kind.resets)
        self._whole = frozenset(
            name
            for name, field in kind.schema.properties.items()
            if field.kind == "array" and field.list_type in ("", "atomic") and "merge" not in field.patch_strategy
        )

    def entries(self, live: _Raw | None, new: _Raw, manager: str, now: str) -> Any:
        """Return the managedFields of `new`; None if the object has none."""
        before = None if live is None else self._fields(live)
        return self._manager.update(before, self._fields(new), manager, now)["metadata"].get("managedFields")

    def _fields(self, raw: _Raw) -> dict[str, Any]:
        """Decode an object; each atomic list is decoded as a list with one item, the undecoded bytes of the list."""
        return {
            name: [bytes(value)] if name in self._whole and bytes(value) != b"null" else msgspec.json.decode(value)
            for name, value in raw.items()
        }


class FieldMarks:
    """Sets the managedFields of the writes of one manager; several threads may share an instance."""

    def __init__(self, kinds: Kinds, manager: str = CONTROLLER_MANAGER) -> None:
        """Create an instance that writes entries of `manager` for objects of `kinds`."""
        self._kinds = kinds
        self._manager = manager
        self._marked: dict[Resource, _Marked | None] = {}

    def marked(self, live: Object | None, new: Object, now: str) -> Object:
        """Return `new` with its managedFields.

        The write replaces the object `live` by `new` at the time `now` (RFC 3339); if the write is a creation, `live`
        is None.
        """
        resource = new.resource
        if resource not in self._marked:
            kind = self._kinds.stored(resource)
            self._marked[resource] = None if kind is None else _Marked(kind)
        marked = self._marked[resource]
        if marked is None:
            return new
        raw = _decode(new.body)
        metadata = _decode(raw["metadata"])
        entries = marked.entries(None if live is None else _decode(live.body), raw, self._manager, now)
        written: dict[str, Any] = {name: value for name, value in metadata.items() if name != "managedFields"}
        if entries:
            written["managedFields"] = entries  # managedFields is the last field of metadata in Go's order
        raw["metadata"] = msgspec.Raw(_encode(written))
        return Object(resource, _encode(raw), new.revision, new.metadata)

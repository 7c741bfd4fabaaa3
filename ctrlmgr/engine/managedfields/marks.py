"""Says in metadata.managedFields which fields a controller wrote whose objects are in their final form already.

Guarantees: the entries are those that the same write by the full path would have left, `manager` being who writes;
what is no API kind has none. Lists that are owned as a whole are compared as bytes and never decoded, so that marking
costs the same for ten endpoints as for ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.managedfields import FieldManager

CONTROLLER_MANAGER = "kube-controller-manager"
"""The manager of what controllers write, as it is in Kubernetes, whose controllers are one program of that name."""

_decode: Callable[[bytes | msgspec.Raw], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

_Raw: TypeAlias = "dict[str, msgspec.Raw]"


class _Marked:
    """One kind: its field manager, and which of its fields are lists that are owned as a whole."""

    def __init__(self, kind: Kind) -> None:
        self._manager = FieldManager(kind.shape, kind.gvk.api_version, kind=kind.name, resets=kind.resets)
        self._whole = frozenset(
            name
            for name, field in kind.schema.properties.items()
            if field.kind == "array" and field.list_type in ("", "atomic") and "merge" not in field.patch_strategy
        )

    def entries(self, live: _Raw | None, new: _Raw, manager: str, now: str) -> Any:
        """Return the managedFields of `new`; None for none."""
        before = None if live is None else self._fields(live)
        return self._manager.update(before, self._fields(new), manager, now)["metadata"].get("managedFields")

    def _fields(self, raw: _Raw) -> dict[str, Any]:
        """Decode an object, but for a list that is owned as a whole: its bytes stand for its items."""
        return {
            name: [bytes(value)] if name in self._whole and bytes(value) != b"null" else msgspec.json.decode(value)
            for name, value in raw.items()
        }


class FieldMarks:
    """Marks what one manager writes; threads may share it."""

    def __init__(self, kinds: Kinds, manager: str = CONTROLLER_MANAGER) -> None:
        """Know these kinds; `manager` is who writes."""
        self._kinds = kinds
        self._manager = manager
        self._marked: dict[Resource, _Marked | None] = {}

    def marked(self, live: Object | None, new: Object, now: str) -> Object:
        """Return `new`, which is written over `live` (None: created) at `now`, RFC 3339, with its managedFields."""
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
            written["managedFields"] = entries  # the last of metadata, as Go writes it
        raw["metadata"] = msgspec.Raw(_encode(written))
        return Object(resource, _encode(raw), new.revision, new.metadata)

"""Says in metadata.managedFields which fields a controller wrote whose objects are in their final form already.

Guarantees: the entries are those that the same write by the full path would have left, `manager` being who writes;
what is no API kind has none. Lists that are owned as a whole are compared as bytes and never decoded, so that marking
costs the same for ten endpoints as for ten thousand. What is created like something before it has its entries from
there: a controller makes thousands of objects that have the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.remembered import Returning
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.managedfields import FieldManager
from ctrlmgr.engine.managedfields.path_element import is_plain
from ctrlmgr.engine.managedfields.shape import Scalar

CONTROLLER_MANAGER = "kube-controller-manager"
"""The manager of what controllers write, as it is in Kubernetes, whose controllers are one program of that name."""

_decode: Callable[[bytes | msgspec.Raw], dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

_Raw: TypeAlias = "dict[str, msgspec.Raw]"
_Around: TypeAlias = tuple[bytes, bytes, bytes]


_REMEMBERED: Final = 256
_returns = Returning()


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


_decode_owners = msgspec.json.Decoder(list[_Owner]).decode
_OWNED_BY_KEY: Final = ("labels", "annotations")
"""The metadata of which each key is owned by itself."""


class _Marked:
    """One kind: its field manager, and which of its fields are lists that are owned as a whole."""

    def __init__(self, kind: Kind) -> None:
        self._manager = FieldManager(kind.shape, kind.gvk.api_version, kind=kind.name, resets=kind.resets)
        self._whole = frozenset(
            name
            for name, field in kind.schema.properties.items()
            if field.kind == "array" and field.list_type in ("", "atomic") and "merge" not in field.patch_strategy
        )
        scalars = {name for name, field in kind.shape.fields.items() if isinstance(field.shape, Scalar)}
        self._is_flat = kind.shape.fields.keys() <= {"metadata"} | scalars | self._whole
        # What was said of new objects, without the uid of their owner and the time, by all that it depends on. Threads
        # share it: an entry of a dictionary changes at once.
        self._created: dict[Hashable, _Around] = {}

    def entries(self, live: _Raw | None, new: _Raw, metadata: _Raw, manager: str, now: str) -> Any:
        """Return the managedFields of `new`, whose metadata is `metadata`; None for none."""
        if live is None and self._is_flat and "finalizers" not in metadata:
            return self._creation(new, metadata, manager, now)
        return self._entries(live, new, manager, now)

    def _entries(self, live: _Raw | None, new: _Raw, manager: str, now: str) -> Any:
        before = None if live is None else self._fields(live)
        return self._manager.update(before, self._fields(new), manager, now)["metadata"].get("managedFields")

    def _creation(self, new: _Raw, metadata: _Raw, manager: str, now: str) -> Any:
        owners = _decode_owners(metadata["ownerReferences"]) if "ownerReferences" in metadata else ()
        uid = owners[0].uid if owners else ""
        has_place = not owners or (len(owners) == 1 and uid and is_plain(uid))  # one, in which a uid stands for itself
        if not has_place or "managedFields" in metadata:
            return self._entries(None, new, manager, now)
        fields = [
            (name, bytes(value) == b"null" if name in self._whole else bytes(value))
            for name, value in new.items()
            if name != "metadata"
        ]
        keys = [tuple(_decode(metadata[name])) for name in _OWNED_BY_KEY if name in metadata]
        key = (manager, len(owners), *fields, *metadata, *keys)
        said = self._created.get(key)
        if said is not None:
            head, middle, tail = said
            return msgspec.Raw(b"".join((head, now.encode(), middle, uid.encode(), tail)))
        entries = self._entries(None, new, manager, now)
        if _returns(key) and (found := _around(_encode(entries), now.encode(), uid.encode())):
            if len(self._created) >= _REMEMBERED:
                self._created.clear()
            self._created[key] = found
        return entries

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
        entries = marked.entries(None if live is None else _decode(live.body), raw, metadata, self._manager, now)
        written: dict[str, Any] = {name: value for name, value in metadata.items() if name != "managedFields"}
        if entries:
            written["managedFields"] = entries  # the last of metadata, as Go writes it
        raw["metadata"] = msgspec.Raw(_encode(written))
        return Object(resource, _encode(raw), new.revision, new.metadata)


def _around(text: bytes, time: bytes, owner: bytes) -> _Around | None:
    """Return what is before the time, between it and the owner's uid, and behind that; None if that is not all."""
    head, *rest = text.split(b'"%s"' % time)
    if len(rest) != 1 or (owner and rest[0].count(owner) != 1) or (owner and owner in head):
        return None
    middle, _, tail = rest[0].partition(owner) if owner else (rest[0], b"", b"")
    return (head + b'"', b'"' + middle, tail)

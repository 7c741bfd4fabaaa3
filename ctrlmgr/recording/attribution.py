"""Finds the author of a recorded change from the object's managedFields; all functions are pure.

The API server stores an entry in managedFields for each manager, operation and subresource. The entry contains the
fields that the manager last set, and a time. An Update that sets or changes a field updates the time of the writer's
entry, and removes the changed fields from other entries. If an Update removes a field, the field is removed from every
entry, without a trace of the author (apimachinery `managedfields/internal/managedfieldsupdater.go`,
structured-merge-diff `merge/update.go`). The times in the entries are whole seconds. Therefore the author is determined
by these rules, in this order:

1. If an entry is new or its time has changed, it is the writer's entry. 2. Otherwise, the writer made two writes in the
same second. If an entry gained fields, it is the writer's entry. 3. Otherwise, if a value changed, the writer is the
manager whose entry owns the value, because any other writer would have become its owner. 4. Otherwise, the write only
removed fields. In that case, the removed fields' owner is only the *probable* author (`certain` is False).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.object import Object


class Attribution(NamedTuple):
    """The field manager that wrote a change; None if the manager is unknown.

    `certain` is False if the manager is only probable.
    """

    manager: str | None
    certain: bool = True


_Writer = tuple[str, str, str]
_Path = tuple[str, ...]


class _Entry(msgspec.Struct, rename="camel", frozen=True):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def writer(self) -> _Writer:
        """Return the identity of a managedFields entry: manager, operation and subresource."""
        return (self.manager, self.operation, self.subresource)


class _EntriesMeta(msgspec.Struct, rename="camel"):
    managed_fields: list[_Entry] = []


class _Entries(msgspec.Struct):
    metadata: _EntriesMeta


_decode_entries = msgspec.json.Decoder(_Entries).decode
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


class Managed:
    """One state of an object with its managedFields, which are decoded once because two comparisons use them."""

    __slots__ = ("body", "entries")

    def __init__(self, obj: Object) -> None:
        """Create the state of `obj`, and decode its managedFields."""
        self.body = obj.body
        self.entries = {entry.writer: entry for entry in _decode_entries(obj.body).metadata.managed_fields}


def writer_of(old: Managed | None, new: Managed) -> Attribution:
    """Return the author of the change from `old` to `new`; `old` is None if the change created the object."""
    after = new.entries
    if old is None:
        names = [entry.manager for entry in after.values()]
        return Attribution(names[-1] if names else None, certain=len(names) == 1)
    before = old.entries
    if stamped := [entry for who, entry in after.items() if who not in before or entry.time != before[who].time]:
        return Attribution(max(stamped, key=lambda entry: entry.time).manager)
    return _unstamped(old, new)


def _unstamped(old: Managed, new: Managed) -> Attribution:
    """Return the author of a change that was made in the same second as the previous write of the object."""
    before, after = old.entries, new.entries
    if len(after) == 1 and _same_fields(before, after):
        return Attribution(next(iter(after.values())).manager)  # rule 3, the usual case
    owned_before = {who: set(_paths(entry)) for who, entry in before.items()}
    owned_after = {who: set(_paths(entry)) for who, entry in after.items()}
    if gained := [who for who, paths in owned_after.items() if paths - owned_before[who]]:
        return Attribution(gained[-1][0])
    was, now = _decode_fields(old.body), _decode_fields(new.body)
    for who, paths in owned_after.items():
        if any(_at(was, path) != _at(now, path) for path in paths):
            return Attribution(who[0])
    shrunk = [who for who, paths in owned_before.items() if paths - owned_after.get(who, set())]
    return Attribution(shrunk[-1][0] if shrunk else None, certain=False)


def _same_fields(before: Mapping[_Writer, _Entry], after: Mapping[_Writer, _Entry]) -> bool:
    return before.keys() == after.keys() and all(
        bytes(entry.fields_v1) == bytes(before[who].fields_v1) for who, entry in after.items()
    )


def _paths(entry: _Entry) -> Iterator[_Path]:
    """Yield the paths of the fields that an entry owns; a field inside a list is represented by the list's path."""
    return _walk(_decode_fields(entry.fields_v1), ())


def _walk(fields: Mapping[str, Any], path: _Path) -> Iterator[_Path]:
    # "." stands for the map itself, apart from its entries; "k:" and "v:" are items of a list.
    if any(step[:2] in ("k:", "v:") for step in fields):
        yield path
        return
    for step, inner in fields.items():
        if step.startswith("f:"):
            deeper = (*path, step[2:])
            yield from _walk(inner, deeper) if inner else (deeper,)


def _at(value: Any, path: _Path) -> Any:
    """Return the value at `path`; None if the object has no value there."""
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value

"""Applies a recorded client's change to the same object in the replay's log; all functions are pure.

The recording and the replay's log may contain an object in different states, because ctrlmgr's controllers may have
written other changes than the recorded controllers. Therefore only the difference that the client's write made is
applied to the object in the replay's log.

Guarantees: if both objects were equal before the client's change, they are equal afterwards. Lists whose items have an
identity (conditions, containers, owners, finalizers) are changed item by item; other lists are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_ABSENT: Final = object()
_IDENTITIES: Final = ("type", "uid", "name")
"""The fields that can identify the items of a list. The first of these fields that all items have is used."""

_OWN: Final = ("resourceVersion", "generation")
"""Metadata fields that count writes. The recorded cluster and the replay's log count their writes separately."""


def carried_over(old: Mapping[str, Any], new: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the replay's object `ours` with the changes from the recorded state `old` to `new`.

    The generation of our object increases as much as that of the recorded object.
    """
    changed: dict[str, Any] = _changed(old, new, ours)
    kept = {name: ours["metadata"][name] for name in _OWN if name in ours["metadata"]}
    grown = int(new["metadata"].get("generation", 0)) - int(old["metadata"].get("generation", 0))
    if grown > 0 and "generation" in kept:
        kept["generation"] += grown
    return {**changed, "metadata": {**changed["metadata"], **kept}}


def _changed(old: Any, new: Any, ours: Any) -> Any:
    if old == new:
        return ours
    if isinstance(old, Mapping) and isinstance(new, Mapping) and isinstance(ours, Mapping):
        return _changed_fields(old, new, ours)
    if isinstance(old, list) and isinstance(new, list) and isinstance(ours, list):
        return _changed_list(old, new, ours)
    return new


def _changed_fields(old: Mapping[str, Any], new: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(ours)
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if after is _ABSENT:
            fields.pop(name, None)
        elif before is _ABSENT:
            fields[name] = _merged(after, ours.get(name, _ABSENT))
        elif before != after:
            fields[name] = _changed(before, after, ours.get(name, _ABSENT))
    return fields


def _merged(added: Any, ours: Any) -> Any:
    """Return a field that a client added, merged with the field of our object if that exists."""
    is_map = isinstance(added, Mapping) and isinstance(ours, Mapping)
    return _changed_fields({}, added, ours) if is_map else added


def _changed_list(old: Sequence[Any], new: Sequence[Any], ours: Sequence[Any]) -> list[Any]:
    identity = _identity([*old, *new, *ours])
    if identity is None or old == ours:
        return list(new)
    before, after = ({identity(item): item for item in items} for items in (old, new))
    items = {identity(item): item for item in ours}
    for name in before.keys() - after.keys():
        items.pop(name, None)
    for name, item in after.items():
        if name not in before:
            items[name] = item
        elif before[name] != item:
            items[name] = _changed(before[name], item, items.get(name, item))
    return [*items.values()]


def _identity(items: Sequence[Any]) -> Callable[[Any], Any] | None:
    """Return a function that identifies the items of a list; None if no field identifies all items."""
    if all(isinstance(item, str) for item in items):
        return lambda item: item
    for field in _IDENTITIES:
        if all(isinstance(item, Mapping) and field in item for item in items):
            return lambda item, field=field: item[field]  # type: ignore[misc]  # mypy sees no type for the default
    return None

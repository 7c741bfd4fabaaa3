"""What a client's write has changed of an object, done to ours; pure functions.

Both sides of a replay have the same object, but our controllers and the recorded ones may not have got equally far
with it. So of a recorded write only the difference is an input: what the client changed, and nothing that stood there.

Guarantees: where ours was as the recorded object was, it is afterwards as the recorded one is. Lists whose items have
an identity (conditions, containers, owners, finalizers) are changed item by item; other lists as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_ABSENT: Final = object()
_IDENTITIES: Final = ("type", "uid", "name")
"""The field that tells one item of a list from another, the first of these that all items have."""

_OWN: Final = ("resourceVersion", "generation")
"""Fields of the metadata that count writes, each side its own."""


def carried_over(old: Mapping[str, Any], new: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return `ours` with what makes `new` of `old`; the generation grows by as much as that of the recorded object."""
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
    """Return a field that a client added, where ours may have been added too."""
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
    """Return what tells the items of a list from each other; None if nothing does."""
    if all(isinstance(item, str) for item in items):
        return lambda item: item
    for field in _IDENTITIES:
        if all(isinstance(item, Mapping) and field in item for item in items):
            return lambda item, field=field: item[field]  # type: ignore[misc]  # mypy sees no type for the default
    return None

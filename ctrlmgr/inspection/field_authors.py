"""Finds the last change of each field of an object in the object's history; all functions are pure.

Guarantees: in the result, every value that is not a map or a list has exactly one change: the newest change that set
the value to its present state. If an item was only moved within its list, the move does not count as a change. If the
beginning of the history was compacted, values in the oldest remaining event may be older than this event. For values
that may be older than the oldest remaining event, `FieldAuthor.certain` is False.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.differences import align, content, differences, field_path, item_paths
from ctrlmgr.inspection.historical_state import Change


class FieldAuthor(NamedTuple):
    """A field, its value, and the change that gave the field this value."""

    path: str
    value: Any
    change: Change
    certain: bool = True


_Origin = Any
"""The origins of a value: for a non-empty map or list, a map or list of origins; otherwise a change."""


def blame(history: Sequence[Change], *, managed_fields: bool = False) -> list[FieldAuthor]:
    """Return the fields of the newest state in a history, each with the change that last set it.

    Return [] if the object was deleted.
    """
    if not history or history[-1].type is EventType.DELETED:
        return []
    incarnation = _newest_incarnation(history)
    value: Any = {}
    origin: _Origin = {}
    for change in incarnation:
        new = content(change.object, managed_fields=managed_fields)
        origin = _carried(value, origin, new, change)
        value = new
    oldest = incarnation[0]
    known = oldest.type is EventType.ADDED
    return [
        FieldAuthor(path, leaf, change, known or change is not oldest)
        for path, leaf, change in _leaves(value, origin, "")
    ]


def values(history: Sequence[Change], *, managed_fields: bool = False) -> dict[str, list[FieldAuthor]]:
    """Return, for each field that was ever set, its values and their changes, oldest first.

    If a change removed the field, the value is `ABSENT`.
    """
    found: dict[str, list[FieldAuthor]] = {}
    value: Any = {}
    for change in _newest_incarnation(history):
        new = content(change.object, managed_fields=managed_fields)
        for difference in differences(value, new):
            for path, after in _set(difference.path, difference.after):
                found.setdefault(path, []).append(FieldAuthor(path, after, change))
        value = new
    return found


def _newest_incarnation(history: Sequence[Change]) -> Sequence[Change]:
    start = max((index for index, change in enumerate(history) if change.type is EventType.ADDED), default=0)
    return history[start:]


def _carried(before: Any, origin: _Origin, after: Any, change: Change) -> _Origin:
    """Return the origins of `after`, the state after `change`."""
    if before == after:
        return origin
    if isinstance(before, dict) and isinstance(after, dict) and after:
        return {
            name: _carried(before[name], origin[name], value, change) if name in before else _fresh(value, change)
            for name, value in after.items()
        }
    if isinstance(before, list) and isinstance(after, list) and after:
        return [
            _fresh(after[right], change) if left is None else _carried(before[left], origin[left], after[right], change)
            for left, right in align(before, after)
            if right is not None
        ]
    return _fresh(after, change)


def _fresh(value: Any, change: Change) -> _Origin:
    if isinstance(value, dict) and value:
        return {name: _fresh(inner, change) for name, inner in value.items()}
    if isinstance(value, list) and value:
        return [_fresh(inner, change) for inner in value]
    return change


def _leaves(value: Any, origin: _Origin, path: str) -> Iterator[tuple[str, Any, Change]]:
    if isinstance(origin, dict):
        for name, inner in value.items():
            yield from _leaves(inner, origin[name], field_path(path, name))
    elif isinstance(origin, list):
        for below, inner, part in zip(item_paths(path, value), value, origin, strict=True):
            yield from _leaves(inner, part, below)
    else:
        yield path, value, origin


def _set(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaf values of the value that was set at `path`."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _set(field_path(path, name), inner)
    elif isinstance(value, list) and value:
        for below, inner in zip(item_paths(path, value), value, strict=True):
            yield from _set(below, inner)
    else:
        yield path, value

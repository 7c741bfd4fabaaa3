"""Functions that treat lists as sets.

Source: cel-go `ext/sets.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.value_keys import keys_of
from ctrlmgr.expressions.values import equal

SETS: Final = Library()
_function = SETS.function

_PAIR = "(list(T), list(T)) -> bool"


class _Set:
    """A list in the form of a set; if all elements have a key, they are looked up by their keys."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items
        self.keys = keys_of(items)
        self._found = None if self.keys is None else frozenset(self.keys)

    def has_each(self, others: _Set) -> Iterator[bool]:
        """Yield for each element of another list whether this set contains the element."""
        if self._found is not None and others.keys is not None:
            return map(self._found.__contains__, others.keys)
        return (any(equal(each, value) for each in self.items) for value in others.items)


@_function("sets.contains", _PAIR)
def _contains(items: Sequence[Any], part: Sequence[Any]) -> bool:
    return all(_Set(items).has_each(_Set(part)))


@_function("sets.intersects", _PAIR)
def _intersects(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(_Set(items).has_each(_Set(others)))


@_function("sets.equivalent", _PAIR)
def _equivalent(items: Sequence[Any], others: Sequence[Any]) -> bool:
    one, other = _Set(items), _Set(others)
    return all(one.has_each(other)) and all(other.has_each(one))

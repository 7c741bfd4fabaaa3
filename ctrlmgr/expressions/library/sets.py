"""Lists as sets.

Source: cel-go `ext/sets.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.values import equal

SETS: Final = Library()
_function = SETS.function

_PAIR = "(list(T), list(T)) -> bool"


def _has(items: Sequence[Any], value: Any) -> bool:
    return any(equal(each, value) for each in items)


@_function("sets.contains", _PAIR)
def _contains(items: Sequence[Any], part: Sequence[Any]) -> bool:
    return all(_has(items, each) for each in part)


@_function("sets.intersects", _PAIR)
def _intersects(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(_has(items, each) for each in others)


@_function("sets.equivalent", _PAIR)
def _equivalent(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return _contains(items, others) and _contains(others, items)

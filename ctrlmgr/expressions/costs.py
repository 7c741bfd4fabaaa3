"""The costs of function calls at run time, for functions of cel-go and of Kubernetes' libraries.

Source: cel-go `interpreter/runtimecost.go`, `ext/{sets,lists,strings}.go`; apiserver `pkg/cel/library/cost.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Final, TypeAlias

from ctrlmgr.expressions.values import SEQUENCES, size, type_of

PER_CALL_LIMIT: Final = 1_000_000
"""The maximum cost of one evaluation of an expression (apiserver `pkg/apis/cel/config.go`)."""
TOTAL_LIMIT: Final = 10_000_000
"""The maximum total cost of the expressions of one policy or one object."""
MATCH_LIMIT: Final = 2_500_000
"""The maximum total cost of the match conditions of one webhook."""

MOST_STEPS: Final = 1_000_000
"""The maximum number of steps (`work_budget`) of one evaluation, in addition to its cost.

The limit on steps is necessary because some operations take longer in ctrlmgr than their cost suggests: cel-go joins
lists without copies, and matches patterns faster.
"""
_CHECK: Final = 350_000
_TEXTS: Final = (str, bytes)

Price: TypeAlias = Callable[[Sequence[Any], Any], int]


def price_of(function: str) -> Price:
    """Return the cost function for a function of CEL.

    The cost function computes the cost of a call from the operands and the result.
    """
    return _PRICES.get(function, _one)


def is_foreseen(function: str) -> bool:
    """Return whether the cost of a call depends only on its operands.

    If so, callers may pass None as the result of the call to the cost function.
    """
    return function in _PRICES and function not in _BY_RESULT


def _one(values: Sequence[Any], result: Any) -> int:
    return 1


def _traversal(count: float) -> int:
    return ceil(count * 0.1)


def _text(values: Sequence[Any], result: Any) -> int:
    return _traversal(size(values[0])) if values else 1


def _conversion(values: Sequence[Any], result: Any) -> int:
    """Return the cost of a conversion between bytes and a string."""
    return _text(values, result) if {type(values[0]), type(result)} == {str, bytes} else 1


def _text_and_copy(values: Sequence[Any], result: Any) -> int:
    return ceil(size(values[0]) * 2 * 0.1)


def _whole(values: Sequence[Any], result: Any) -> int:
    return _walked(values[0])


def _walked(value: Any) -> int:
    """Return the cost of reading a value and all of its parts."""
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list | tuple):
        return sum(map(_walked, value))
    return sum(_walked(key) + _walked(each) for key, each in value.items()) if isinstance(value, Mapping) else 1


def _in(values: Sequence[Any], result: Any) -> int:
    return size(values[1]) if type(values[1]) in SEQUENCES else 1


def _equality(values: Sequence[Any], result: Any) -> int:
    if type_of(values[0]).kind == "opaque" and type_of(values[0]).name != "optional_type":
        return 1
    return _traversal(min(size(values[0]), size(values[1])))


def _comparison(values: Sequence[Any], result: Any) -> int:
    return _traversal(min(size(values[0]), size(values[1]))) if type(values[0]) in _TEXTS else 1


def _sum(values: Sequence[Any], result: Any) -> int:
    return _traversal(size(values[0]) + size(values[1])) if type(values[0]) in _TEXTS else 1


def _pattern(values: Sequence[Any], result: Any) -> int:
    return _traversal(1 + size(values[0])) * ceil(size(values[1]) * 0.25)


def _contains(values: Sequence[Any], result: Any) -> int:
    return _traversal(size(values[0])) * _traversal(size(values[1]))


def _joined(values: Sequence[Any], result: Any) -> int:
    """Return the cost of joining a list of strings."""
    texts, separator = values[0], values[1] if len(values) > 1 else ""
    length = sum(map(size, texts)) + size(separator) * max(len(texts) - 1, 0) if type(texts) in SEQUENCES else 1
    return ceil(length * 2 * 0.1)


def _contains_address(values: Sequence[Any], result: Any) -> int:
    own = _traversal(2 * size(values[0]))
    return own + (_traversal(size(values[1])) if type(values[1]) is str else 0)


def _contains_range(values: Sequence[Any], result: Any) -> int:
    return _contains_address(values, result) + _traversal(size(values[0])) + 1


def _address(values: Sequence[Any], result: Any) -> int:
    return _text(values, result) if type(values[0]) is str else 1


def _sets(factor: int) -> Price:
    return lambda values, result: 1 + size(values[0]) * size(values[1]) * factor


def _format(values: Sequence[Any], result: Any) -> int:
    longest = getattr(values[0], "longest_pattern", 0)
    return _traversal(size(values[1])) * ceil(longest * 0.25)


def _whole_list(values: Sequence[Any], result: Any) -> int:
    return 1 + size(values[0])


def _squared(values: Sequence[Any], result: Any) -> int:
    return 1 + size(values[0]) ** 2


_PRICES: Final[Mapping[str, Price]] = {
    **dict.fromkeys(("startsWith", "endsWith", "format", "strings.quote"), _text),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _text),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _text),
    **dict.fromkeys(("replace", "split"), _text_and_copy),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _text),
    **dict.fromkeys(("string", "bytes"), _conversion),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _whole),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _comparison),
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    **dict.fromkeys(("matches", "find", "findAll"), _pattern),
    "check": lambda values, result: _CHECK,
    "@in": _in,
    "_+_": _sum,
    "contains": _contains,
    "join": _joined,
    "ip": _address,
    "ip.isCanonical": lambda values, result: _traversal(2 * size(values[0])),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "validate": _format,
    **dict.fromkeys(("slice", "flatten", "lists.range"), lambda values, result: 1 + size(result)),
    "reverse": _whole_list,
    "distinct": _squared,
    "sort": _squared,
    "@sortByAssociatedKeys": _squared,
}

_BY_RESULT: Final = frozenset(("string", "bytes", "slice", "flatten", "lists.range"))
"""The functions whose cost depends on their result."""

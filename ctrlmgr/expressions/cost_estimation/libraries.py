"""Cost estimates of library functions in Kubernetes' libraries, and in cel-go's libraries for lists and sets.

Guarantees: estimates are the same as in Kubernetes 1.36, because estimates determine which CustomResourceDefinitions
are accepted.

Source: apiserver `pkg/cel/library/cost.go` (`EstimateCallCost`), cel-go `ext/{lists,sets}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from ctrlmgr.expressions.cost_estimation.cost_ranges import FREE, LARGEST, ONE, UNKNOWN, Range, fixed
from ctrlmgr.expressions.cost_estimation.operands import Estimate, Operand, SizeAt
from ctrlmgr.expressions.cost_estimation.standard_costs import PATTERN, TRAVERSAL, matching
from ctrlmgr.expressions.declarations import Overload
from ctrlmgr.expressions.expression_tree import Literal
from ctrlmgr.expressions.library.device_attributes import MOST_VALUES
from ctrlmgr.expressions.types import Type

_CHECK: Final = 350_000
_NEW_LIST: Final = 10
_PER_REQUIREMENT: Final = 50.0
_LONGEST_FORMAT: Final = 64
_LONGEST_NAME_PATTERN: Final = 128
_ADDRESS: Final = Range(4, 16)
"""The size of an IP address, in bytes."""
_TEXTS: Final = ("string", "bytes")


class _Call(NamedTuple):
    overload: Overload
    target: Operand | None
    arguments: Sequence[Operand]
    size_at: SizeAt

    def size(self, at: int) -> Range:
        return self.arguments[at].sized(self.size_at)

    @property
    def target_size(self) -> Range:
        return self.target.sized(self.size_at) if self.target is not None else UNKNOWN

    @property
    def is_of_list(self) -> bool:
        return self.overload.arguments[0].kind == "list"


_Price = Callable[[_Call], Estimate | None]


def library_estimate(
    function: str, overload: Overload, target: Operand | None, arguments: Sequence[Operand], size_at: SizeAt
) -> Estimate | None:
    """Return the cost estimate for a call of one overload; None if the function is a standard function of CEL."""
    price = _PRICES.get(function)
    return price(_Call(overload, target, arguments, size_at)) if price is not None else None


def _one(call: _Call) -> Estimate:
    return Estimate(ONE)


def _read(factor: float) -> _Price:
    """Return the cost of reading the first argument of a call."""
    return lambda call: Estimate(call.size(0).scaled(factor)) if call.arguments else None


def _selector(call: _Call) -> Estimate | None:
    if len(call.arguments) != 1:
        return None
    requirements = call.size(0).scaled(0.5).scaled(_PER_REQUIREMENT)
    return Estimate(fixed(_NEW_LIST).plus(call.size(0).scaled(TRAVERSAL)).plus(requirements))


def _element(target: Operand) -> Operand | None:
    """Return the type of a list's elements; None if an operand is not a list."""
    if not target.type.parameters:
        return None
    return Operand(target.type.parameters[0], (*target.place, "@items") if target.place else ())


def _elements(call: _Call) -> Estimate | None:
    if call.target is None:
        return None
    element = _element(call.target)
    if element is None:  # indexOf and lastIndexOf are also functions of texts
        return Estimate(call.target_size.scaled(TRAVERSAL))
    each = ONE
    if element.type.kind in _TEXTS:
        each = each.plus(element.sized(call.size_at).scaled(TRAVERSAL))
    return Estimate(call.target_size.times(each))


def _parsed(call: _Call) -> Estimate | None:
    if len(call.arguments) != 1:
        return None
    return Estimate(call.size(0).scaled(TRAVERSAL), call.size(0))


def _same_size(call: _Call) -> Estimate | None:
    if call.target is None:
        return None
    return Estimate(call.target_size.scaled(TRAVERSAL), call.target_size)


def _replace(call: _Call) -> Estimate | None:
    if call.target is None or len(call.arguments) < 2:
        return None
    size, old, new = call.target_size, call.size(0), call.size(1)
    most, kept = _replacements(size.most, old.least, shrinks=new.most <= old.least)
    least, left = _replacements(size.least, old.most, shrinks=old.most <= new.least)
    result = Range(least, most).times(new).plus(Range(left, kept))
    return Estimate(size.scaled(2 * TRAVERSAL), result)


def _replacements(length: int, old: int, *, shrinks: bool) -> tuple[int, int]:
    """Return the number of replacements in a string, and the length of the remaining string.

    If the replaced string has the length 0, the replacement is inserted between all characters.
    """
    if old == 0:
        return min(length + 1, LARGEST), length
    return (0, length) if shrinks else (min(ceil(float(length) / float(old)), LARGEST), 0)


def _split(call: _Call) -> Estimate | None:
    if call.target is None:
        return None
    size = call.target_size
    most = size.most
    if len(call.arguments) > 1:
        most = _literal(call.arguments[1], most, below_zero=None)
    return Estimate(size.scaled(2 * TRAVERSAL), Range(0, most))


def _literal(operand: Operand, otherwise: int, *, below_zero: int | None = 0) -> int:
    """Return the integer of a literal operand; for an operand that is not a literal, return `otherwise`.

    If the integer is negative, return `below_zero`. If `below_zero` is None, convert the negative integer to an
    unsigned integer, as Go does.
    """
    node = operand.node
    if not isinstance(node, Literal) or type(node.value) is not int:
        return otherwise
    if node.value < 0 and below_zero is not None:
        return below_zero
    return node.value & LARGEST


def _join(call: _Call) -> Estimate | None:
    if call.target is None:
        return None
    count, size = call.target_size, FREE
    element = _element(call.target)
    if element is not None:
        size = count.times(element.sized(call.size_at))
    if call.arguments:
        separators = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(call.size(0).times(separators))
    return Estimate(size.scaled(TRAVERSAL), size)


def _find(call: _Call) -> Estimate | None:
    if call.target is None or not call.arguments:
        return None
    size = call.target_size
    return Estimate(matching(size, call.size(0)), Range(0, size.most))


def _address(call: _Call) -> Estimate | None:
    return Estimate(ONE) if call.target is not None else _read(TRAVERSAL)(call)


def _other_address(call: _Call) -> Range:
    """Return the cost of parsing the argument, if it is an address or network in the form of a string."""
    is_text = call.overload.arguments[1].kind == "string"
    return call.size(0).scaled(TRAVERSAL) if is_text else FREE


def _contains_address(call: _Call) -> Estimate:
    return Estimate(_ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL).plus(_other_address(call)))


def _contains_range(call: _Call) -> Estimate:
    compared = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL).plus(_ADDRESS.scaled(TRAVERSAL)).plus(ONE)
    return Estimate(compared.plus(_other_address(call)))


def _validate(call: _Call) -> Estimate | None:
    if not call.arguments:
        return None
    return Estimate(call.size(0).scaled(TRAVERSAL).scaled(_LONGEST_NAME_PATTERN * PATTERN))


_COMPARED_AT_ONCE: Final = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver")
_AUTHORIZERS: Final = "kubernetes.authorization."


def _equality(call: _Call) -> Estimate | None:
    """Return the cost estimate for a function of Kubernetes' own types."""
    one, other = call.arguments
    if one.type != other.type:
        return None
    name = one.type.name
    if name in _COMPARED_AT_ONCE or name.startswith(_AUTHORIZERS):
        return Estimate(ONE)
    if name == "kubernetes.NamedFormat":
        return Estimate(Range(1, _LONGEST_FORMAT).scaled(TRAVERSAL))
    if name == "kubernetes.URL":
        return Estimate(Range(1, other.size.most if other.size is not None else 1).scaled(TRAVERSAL))
    return None


def _allocated(factor: float, size: Range) -> Estimate:
    return Estimate(size.scaled(factor).plus(fixed(_NEW_LIST + 1)), size)


def _slice(call: _Call) -> Estimate:
    begin, end = _literal(call.arguments[0], 0), _literal(call.arguments[1], call.target_size.most)
    return _allocated(1, fixed((end - begin) & LARGEST))


def _range(call: _Call) -> Estimate:
    return _allocated(1, fixed(_literal(call.arguments[0], LARGEST)))


def _reverse(call: _Call) -> Estimate | None:
    return _allocated(1, call.target_size) if call.is_of_list else None


def _flatten(call: _Call) -> Estimate:
    depth = _literal(call.arguments[0], LARGEST) if call.arguments else 1
    return _allocated(float(depth), call.target_size)


def _each_with_each(size: Range, element: Type | None) -> Estimate:
    factor = 2 + TRAVERSAL if element is not None and element.kind in _TEXTS else 2.0
    return _allocated(factor, size.times(size))


def _distinct(call: _Call) -> Estimate:
    type_ = call.target.type if call.target is not None else None
    return _each_with_each(call.target_size, type_.parameters[0] if type_ and type_.parameters else None)


def _sort(call: _Call) -> Estimate:
    return _each_with_each(call.target_size, call.overload.arguments[0].parameters[0])


def _sort_by(call: _Call) -> Estimate:
    return _each_with_each(call.size(0), call.overload.arguments[1].parameters[0])


def _sets(factor: float) -> _Price:
    return lambda call: Estimate(call.size(0).times(call.size(1)).scaled(factor).plus(ONE))


_AT_ONCE: Final = (
    *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"),
    *("allowed", "reason", "error", "errored", "format.named"),
    *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
    *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
    *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
    *("add", "sub", "major", "minor", "patch"),
    *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
)

_PRICES: Final[Mapping[str, _Price]] = {
    **dict.fromkeys(_AT_ONCE, _one),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _parsed),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read(TRAVERSAL)),
    "includes": lambda call: Estimate(Range(0, MOST_VALUES)),
    "check": lambda call: Estimate(fixed(_CHECK)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": _address,
    "ip.isCanonical": _read(2 * TRAVERSAL),
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    "validate": _validate,
    "_==_": _equality,
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}

"""Estimates the cost of an expression by walking its tree.

Guarantees: the estimated cost is the same as in cel-go for the same checked tree. The estimates include a quirk of
cel-go: if a value has a path but is not part of a variable, the estimate uses the size of the variable itself.

Source: cel-go `checker/cost.go` (`coster`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.expressions.cost_estimation.cost_ranges import EMPTY, FREE, ONE, UNKNOWN, Range, fixed
from ctrlmgr.expressions.cost_estimation.libraries import library_estimate
from ctrlmgr.expressions.cost_estimation.operands import Estimate, Operand, Place, SizeAt
from ctrlmgr.expressions.cost_estimation.standard_costs import standard_estimate
from ctrlmgr.expressions.declarations import Overload
from ctrlmgr.expressions.expression_tree import (
    Call,
    Comprehension,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    StructOf,
)
from ctrlmgr.expressions.macros import RESULT
from ctrlmgr.expressions.types import Type

_NEW_LIST: Final = fixed(10)
_NEW_MAP: Final = fixed(30)
_NEW_STRUCT: Final = fixed(40)
_SCALARS: Final = ("bool", "double", "duration", "int", "timestamp", "uint")
_LOGICAL: Final = ("_&&_", "_||_")


def estimate_cost(root: Node, size_at: SizeAt) -> Range:
    """Return the cost range of a checked tree; `size_at` returns the maximum sizes of the values in its variables."""
    return _Walk(size_at).cost(root)


class _Entries(NamedTuple):
    """The size ranges of the keys and the values of a container."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Variable(NamedTuple):
    place: Place
    size: Range | None
    entries: _Entries | None = None


class _Walk:
    def __init__(self, size_at: SizeAt) -> None:
        self._size_at = size_at
        self._places: dict[Node, Place] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, _Entries] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, node: Node) -> Range:
        if isinstance(node, Ident):
            return self._ident(node, node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListOf):
            return self._list(node)
        if isinstance(node, MapOf):
            return self._map(node)
        if isinstance(node, StructOf):
            return self._sum([entry.value for entry in node.fields]).plus(_NEW_STRUCT)
        if isinstance(node, Comprehension):
            return self._bind(node) if _is_bind(node) else self._loop(node)
        return FREE

    def _sum(self, nodes: Sequence[Node]) -> Range:
        total = FREE
        for each in nodes:
            total = total.plus(self.cost(each))
        return total

    # Names

    def _variable(self, name: str) -> _Variable | None:
        found = self._variables.get(name)
        return found[-1] if found else None

    def _ident(self, node: Node, name: str) -> Range:
        variable = self._variable(name)
        self._places[node] = variable.place if variable is not None else (name,)
        return ONE

    def _select(self, node: Select) -> Range:
        if node.ident:
            return self._ident(node, node.ident)
        operand = self.cost(node.operand)
        if node.test_only:
            return operand
        if node.optional:
            return operand.plus(ONE)
        self._places[node] = (*self._place(node.operand), node.field)
        return operand.plus(ONE) if node.operand.type.kind in ("map", "struct", "parameter") else operand

    def _place(self, node: Node) -> Place:
        if isinstance(node, Ident) and (variable := self._variable(node.name)) is not None:
            return variable.place
        return self._places.get(node, ())

    # Sizes

    def _size(self, node: Node) -> Range | None:
        """Return the size range of a value; None if the size is unknown (`computeSize`)."""
        if node in self._sizes:
            return self._sizes[node]
        if (written := _written_size(node)) is not None:
            return written
        place = self._place(node)
        if place and (declared := self._size_at(place)) is not None:
            self._sizes[node] = declared
            return declared
        if _is_scalar(node.type):
            return ONE
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.size if variable is not None else None

    def _size_or_unknown(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _set_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[node] = size

    def _entries_of(self, node: Node) -> _Entries | None:
        if node in self._entries:
            return self._entries[node]
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.entries if variable is not None else None

    def _set_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[node] = entries

    def _operand(self, node: Node) -> Operand:
        place = self._place(node)
        return Operand(node.type, () if place[:1] == (RESULT,) else place, node, self._size(node))

    # Calls

    def _call(self, node: Call) -> Range:
        function = node.namespaced or node.function
        if function == "dyn" and not node.namespaced:
            return self._dyn(node)
        costs, arguments = [], []
        for each in node.arguments:
            costs.append(self.cost(each))
            arguments.append(self._operand(each))
        if not node.overloads:
            return FREE
        total, target = FREE, None
        if node.target is not None and not node.namespaced:
            total = self.cost(node.target)
            target = self._operand(node.target)
        dearest, size = EMPTY, None
        for overload in node.overloads:
            estimate = self._overload(node, function, overload, target, arguments, costs)
            dearest = dearest.union(estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.union(estimate.size)
            if function == "_[_]":
                size = self._index(node, overload, size)
            if size is None:
                size = self._size(node)
        self._set_size(node, size)
        return total.plus(dearest)

    def _dyn(self, node: Call) -> Range:
        [argument] = node.arguments
        cost = self.cost(argument)
        self._set_size(node, self._size(argument))
        self._set_entries(node, self._entries_of(argument))
        return cost.plus(ONE)

    def _index(self, node: Call, overload: Overload, size: Range | None) -> Range | None:
        kind = overload.arguments[0].kind
        if kind not in ("list", "map"):
            return size
        container = node.arguments[0]
        entries = self._entries_of(container)
        self._places[node] = (*self._place(container), "@items" if kind == "list" else "@values")
        return entries.value if entries is not None else None

    def _overload(
        self,
        node: Call,
        function: str,
        overload: Overload,
        target: Operand | None,
        arguments: Sequence[Operand],
        costs: Sequence[Range],
    ) -> Estimate:
        if function in _LOGICAL:
            return Estimate(Range(costs[0].least, costs[0].plus(costs[1]).most))
        if function == "_?_:_":
            return self._choice(node, arguments, costs)
        if function == "_+_":
            self._join_entries(node, overload)
        estimate = library_estimate(function, overload, target, arguments, self._size_at)
        if estimate is None:
            estimate = standard_estimate(function, overload, target, arguments)
        cost = estimate.cost
        for each in costs:
            cost = cost.plus(each)
        return Estimate(cost, estimate.size)

    def _choice(self, node: Call, arguments: Sequence[Operand], costs: Sequence[Range]) -> Estimate:
        size = arguments[1].known.union(arguments[2].known)
        one, other = self._entries_of(node.arguments[1]), self._entries_of(node.arguments[2])
        if one is not None and other is not None:
            self._set_entries(node, one.union(other))
        return Estimate(costs[0].plus(costs[1].union(costs[2])), size)

    def _join_entries(self, node: Call, overload: Overload) -> None:
        if overload.arguments[0].kind not in ("string", "bytes", "list"):
            return
        one, other = (self._entries_of(each) for each in node.arguments)
        if one is not None and other is not None:
            self._set_entries(node, one.union(other))

    # Lists and maps

    def _list(self, node: ListOf) -> Range:
        total, item = FREE, EMPTY if node.elements else FREE
        for each in node.elements:
            total = total.plus(self.cost(each))
            item = item.union(self._size_or_unknown(each))
        self._entries[node] = _Entries(True, ONE, item)
        return total.plus(_NEW_LIST)

    def _map(self, node: MapOf) -> Range:
        total = FREE
        key = value = EMPTY if node.entries else FREE
        for entry in node.entries:
            # The keys of a map are expressions; only the keys of a struct are names.
            assert not isinstance(entry.key, str)
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self._size_or_unknown(entry.key))
            value = value.union(self._size_or_unknown(entry.value))
        self._entries[node] = _Entries(False, key, value)
        return total.plus(_NEW_MAP)

    # Loops

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _push_bound(self, name: str, value: Node) -> None:
        self._push(name, _Variable(self._place(value), self._size(value), self._entries_of(value)))

    def _push_part(self, name: str, looped: Node, *, value: bool) -> None:
        """Set the path and the size of a loop variable to those of a container's keys or values."""
        entries = self._entries_of(looped)
        is_list = entries.is_list if entries is not None else looped.type.kind == "list"
        part = ("@items" if value else "@indices") if is_list else ("@values" if value else "@keys")
        size = (entries.value if value else entries.key) if entries is not None else None
        self._push(name, _Variable((*self._place(looped), part), size))

    def _loop(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_bound(node.accumulator, node.initial)
        if node.second:
            self._push_part(node.variable, node.range, value=False)
            self._push_part(node.second, node.range, value=True)
        else:
            entries = self._entries_of(node.range)
            is_list = entries.is_list if entries is not None else node.range.type.kind == "list"
            self._push_part(node.variable, node.range, value=is_list)
        each = self.cost(node.condition)
        each = self.cost(node.step).plus(each)
        self._variables[node.variable].pop()
        if node.second:
            self._variables[node.second].pop()
        total = total.plus(self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        self._set_result(node, count)
        return total.plus(count.times(each))

    def _set_result(self, node: Comprehension, count: Range) -> None:
        if isinstance(node.initial, Literal):
            self._set_size(node, self._size(node.initial))
        elif isinstance(node.initial, ListOf | MapOf):
            self._set_size(node, count)
            self._set_entries(node, self._entries_of(node.step))

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_bound(node.accumulator, node.initial)
        total = total.plus(self.cost(node.result))
        self._variables[node.accumulator].pop()
        self._set_size(node, self._size(node.result))
        self._set_entries(node, self._entries_of(node.result))
        return total


def _is_bind(node: Comprehension) -> bool:
    never = isinstance(node.condition, Literal) and node.condition.value is False
    return never and isinstance(node.range, ListOf) and not node.range.elements


def _written_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        return fixed(len(node.value)) if isinstance(node.value, str | bytes) else ONE
    if isinstance(node, ListOf):
        return fixed(len(node.elements))
    return fixed(len(node.entries)) if isinstance(node, MapOf) else None


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS

"""Compiles a checked tree to closures that evaluate it and count the cost.

Guarantees:

- `&&`, `||` and loops do not end at an error, because the other operand or a later element may decide: `false && error`
  is false. All other operations propagate the first error.
- The computed costs are the same as in cel-go (`interpreter/runtimecost.go`, with folded constants). If the cost of an
  evaluation exceeds the limit, the evaluation ends with `CostExceeded`. No operation catches this error.

Source: cel-go `interpreter/{planner,interpretable,attributes,optimizations}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from ctrlmgr.expressions import types
from ctrlmgr.expressions.costs import is_foreseen, price_of
from ctrlmgr.expressions.declarations import TYPE_NAMES, Functions, Implementation, dispatch
from ctrlmgr.expressions.evaluation_state import Run, Step
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
from ctrlmgr.expressions.library.operators import OPERATORS, index, no_overload
from ctrlmgr.expressions.macro_accumulators import extended, is_extension, own
from ctrlmgr.expressions.values import (
    MAPS,
    NONE,
    SEQUENCES,
    DefaultMap,
    EvalError,
    Optional,
    StructValue,
    UInt,
    entry,
    type_of,
)

_LIST_COST: Final = 10
_MAP_COST: Final = 30
_STRUCT_COST: Final = 40


class LazyFields:
    """An object whose fields are computed on first access."""

    cel_type: ClassVar[types.Type] = types.struct("kubernetes.variables")

    def has(self, name: str) -> bool:
        """Return whether the object has the field."""
        raise NotImplementedError

    def field(self, name: str) -> Any:
        """Return the value of a field; raises `EvalError` if the field does not exist."""
        raise NotImplementedError


class _Failed:
    """A value in the accumulator of a loop that represents an error."""

    __slots__ = ("error",)

    def __init__(self, error: EvalError) -> None:
        self.error = error


class Compiler:
    """Compiles the nodes of an expression to closures."""

    def __init__(self, functions: Functions) -> None:
        """Create a compiler that uses the given functions."""
        self._functions = functions

    def step(self, node: Node) -> Step:
        """Return the closure that evaluates a node."""
        if isinstance(node, Literal):
            value = node.value
            return lambda run: value
        if isinstance(node, Ident):
            return _ident(node.name)
        if isinstance(node, Select):
            return _ident(node.ident) if node.ident else self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListOf):
            return self._list(node)
        if isinstance(node, MapOf):
            return self._map(node)
        if isinstance(node, StructOf):
            return self._struct(node)
        return self._comprehension(node)

    # Fields and elements

    def _select(self, node: Select) -> Step:
        operand, field = self.step(node.operand), node.field
        cost = 0 if _is_attribute(node.operand) else 1
        if node.test_only:
            return _presence(operand, field, cost)
        cost += 1
        if node.optional:
            return _optional_field(operand, field, cost)

        def select(run: Run) -> Any:
            container = operand(run)
            run.pay(cost)
            return _field(container, field)

        return select

    def _index(self, node: Call) -> Step:
        container, key = (self.step(each) for each in node.arguments)
        cost = 1 if _is_attribute(node.arguments[0]) else 2
        is_optional = node.function == "_[?_]"

        def look_up(run: Run) -> Any:
            value, at = container(run), key(run)
            run.pay(cost)
            if is_optional or type(value) is Optional:
                return _optional_element(value, at)
            return index(value, at)

        return look_up

    # Calls

    def _call(self, node: Call) -> Step:
        special = {
            "_&&_": self._and,
            "_||_": self._or,
            "_?_:_": self._conditional,
            "_[_]": self._index,
            "_[?_]": self._index,
            "@not_strictly_false": self._not_strictly_false,
            "@in": self._membership,
        }.get(node.function)
        return special(node) if special is not None else self._plain_call(node)

    def _plain_call(self, node: Call) -> Step:
        is_member = node.target is not None and not node.namespaced
        operands = [*([node.target] if is_member and node.target is not None else []), *node.arguments]
        name = node.namespaced or node.function
        compute = self._computation(name, as_member=is_member)
        steps = [self.step(each) for each in operands]
        if name in _CONVERSIONS and len(operands) == 1 and isinstance(operands[0], Literal):
            try:
                folded = compute(operands[0].value)
            except EvalError:
                pass  # the call raises this error at each evaluation
            else:
                return lambda run: folded
        return extended(steps) if is_extension(node) else _paid(name, compute, steps)

    def _computation(self, name: str, *, as_member: bool) -> Implementation:
        overloads = self._functions.get(name) or ()
        if name in OPERATORS.functions:  # these operators check their operands themselves
            return OPERATORS.functions[name][0].compute
        return dispatch(name, overloads, as_member=as_member)

    def _membership(self, node: Call) -> Step:
        compute = self._computation(node.function, as_member=False)
        steps = [self.step(each) for each in node.arguments]
        if not _is_constant_set(node.arguments[1]):
            return _paid(node.function, compute, steps)
        value, container = steps  # a look-up in a constant set has no cost
        return lambda run: compute(value(run), container(run))

    def _and(self, node: Call) -> Step:
        return self._joined(node, ends_with=False)

    def _or(self, node: Call) -> Step:
        return self._joined(node, ends_with=True)

    def _joined(self, node: Call, *, ends_with: bool) -> Step:
        left, right = (self.step(each) for each in node.arguments)

        def joined(run: Run) -> bool:
            error: EvalError | None = None
            for each in (left, right):
                try:
                    value = each(run)
                    if value is ends_with:
                        return value is True
                    if type(value) is not bool:
                        error = error or no_overload()
                except EvalError as failed:
                    error = error or failed
            if error is not None:
                raise error
            return not ends_with

        return joined

    def _conditional(self, node: Call) -> Step:
        condition, then, otherwise = (self.step(each) for each in node.arguments)

        def choose(run: Run) -> Any:
            value = condition(run)
            if value is True:
                return then(run)
            if value is False:
                return otherwise(run)
            raise no_overload()

        return choose

    def _not_strictly_false(self, node: Call) -> Step:
        argument = self.step(node.arguments[0])

        def holds(run: Run) -> bool:
            try:
                value = argument(run)
            except EvalError:
                value = True
            run.pay(1)
            return value is not False

        return holds

    # Lists, maps and structs

    def _list(self, node: ListOf) -> Step:
        if _is_constant(node):
            folded = _constant(node)
            return lambda run: folded
        steps = [(self.step(each), at in node.optional) for at, each in enumerate(node.elements)]

        def make(run: Run) -> list[Any]:
            made: list[Any] = []
            for step, is_optional in steps:
                value = step(run)
                if is_optional:
                    made += _optional_value(value)
                else:
                    made.append(value)
            run.pay(_LIST_COST)
            return made

        return make

    def _map(self, node: MapOf) -> Step:
        if _is_constant(node):
            folded = _constant(node)
            return lambda run: folded
        steps = [(self.step(_key(each.key)), self.step(each.value), each.optional) for each in node.entries]

        def make(run: Run) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for key, value, is_optional in steps:
                at, given = key(run), value(run)
                for each in _optional_value(given) if is_optional else (given,):
                    insert(made, at, each)
            run.pay(_MAP_COST)
            return made

        return make

    def _struct(self, node: StructOf) -> Step:
        steps = [(str(each.key), self.step(each.value), each.optional) for each in node.fields]
        name = node.name

        def make(run: Run) -> StructValue:
            made: dict[str, Any] = {}
            for field, value, is_optional in steps:
                given = value(run)
                for each in _optional_value(given) if is_optional else (given,):
                    made[field] = each
            run.pay(_STRUCT_COST)
            return StructValue(name, made)

        return make

    # Loops

    def _comprehension(self, node: Comprehension) -> Step:
        looped, initial, condition = self.step(node.range), self.step(node.initial), self.step(node.condition)
        step, result = self.step(node.step), self.step(node.result)
        names = (node.variable, node.second, node.accumulator)

        def loop(run: Run) -> Any:
            items = _items(looped(run), two=bool(node.second))
            variables = run.variables
            before = {name: variables[name] for name in names if name in variables}
            start = own(initial(run))
            try:
                variables[node.accumulator] = start
                for first, second in items:
                    variables[node.variable] = first
                    if node.second:
                        variables[node.second] = second
                    if condition(run) is not True:
                        break
                    try:
                        made = step(run)
                    except EvalError as error:
                        made = _Failed(error)
                    variables[node.accumulator] = made
                return result(run)
            finally:
                for name in names:
                    variables.pop(name, None)
                variables.update(before)

        return loop


_CONVERSIONS: Final = frozenset(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"))


def _paid(name: str, compute: Implementation, steps: Sequence[Step]) -> Step:
    price = price_of(name)

    def call(run: Run) -> Any:
        values = [step(run) for step in steps]
        result = compute(*values)
        run.pay(price(values, result))
        return result

    def foreseen(run: Run) -> Any:
        values = [step(run) for step in steps]
        cost = price(values, None)
        run.afford(cost)
        result = compute(*values)
        run.pay(cost)
        return result

    return foreseen if is_foreseen(name) else call


def _ident(name: str) -> Step:
    named = TYPE_NAMES.get(name)

    def read(run: Run) -> Any:
        try:
            value = run.variables[name]
        except KeyError:
            if named is not None:
                return named
            raise EvalError(f"no such attribute(s): {name}") from None
        run.pay(1)
        if type(value) is _Failed:
            raise value.error
        return value

    return read


def _is_attribute(node: Node) -> bool:
    """Return whether a field selection from this node has no additional cost, because cel-go merges both steps."""
    return isinstance(node, Ident | Select) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?_:_"))


def _field(container: Any, field: str) -> Any:
    if type(container) is dict:
        try:
            return container[field]
        except KeyError:
            raise EvalError(f"no such key: {field}") from None
    if isinstance(container, LazyFields):
        return container.field(field)
    if type(container) is DefaultMap:
        return container.get(field, {})
    if type(container) is Optional:
        return _optional_element(container, field)
    if type(container) is StructValue and field in container.fields:
        return container.fields[field]
    raise EvalError(f"no such key: {field}")


def _presence(operand: Step, field: str, cost: int) -> Step:
    def test(run: Run) -> bool:
        container = operand(run)
        run.pay(cost)
        if type(container) is Optional:
            container = container.value
        if type(container) is StructValue:
            return field in container.fields
        if isinstance(container, LazyFields):
            return container.has(field)
        return type(container) in MAPS and field in container

    return test


def _optional_field(operand: Step, field: str, cost: int) -> Step:
    def select(run: Run) -> Optional:
        container = operand(run)
        run.pay(cost)
        return _optional_element(container, field)

    return select


def _optional_element(container: Any, key: Any) -> Optional:
    if type(container) is Optional:
        container = container.value
    if type(container) in MAPS:
        found, value = entry(container, key)
        return Optional(True, value) if found else NONE
    if type(container) in SEQUENCES and type(key) in (int, UInt):
        return Optional(True, container[key]) if 0 <= key < len(container) else NONE
    if type(container) is StructValue and key in container.fields:
        return Optional(True, container.fields[key])
    return NONE


def _optional_value(value: Any) -> Sequence[Any]:
    """Return the value of an optional element as a list with one element; an empty list if there is no value."""
    if type(value) is not Optional:
        raise EvalError(f"cannot initialize optional list element from non-optional value {value}")
    return (value.value,) if value.present else ()


def insert(made: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a new map; raises `EvalError` if the key exists or is not allowed."""
    if type(key) not in (str, int, UInt, bool):
        raise EvalError(f"unsupported key type: {type_of(key).name}")
    if entry(made, key)[0]:
        raise EvalError(f"insert failed: key {key} already exists")
    made[key] = value


def _items(looped: Any, *, two: bool) -> list[tuple[Any, Any]]:
    if type(looped) in MAPS:
        return list(looped.items())
    if type(looped) in SEQUENCES:
        return list(enumerate(looped)) if two else [(each, None) for each in looped]
    raise EvalError(f"got '{type_of(looped).name}', expected iterable type")


# Constants


def _key(key: Node | str) -> Node:
    assert not isinstance(key, str)  # The keys of a map are expressions; only the keys of a struct are names.
    return key


def _is_constant(node: Node) -> bool:
    if isinstance(node, ListOf):
        return not node.optional and all(map(_is_constant, node.elements))
    if isinstance(node, MapOf):
        parts = [part for each in node.entries for part in (_key(each.key), each.value)]
        return not any(each.optional for each in node.entries) and all(map(_is_constant, parts)) and _has_keys(node)
    return isinstance(node, Literal)


def _has_keys(node: MapOf) -> bool:
    """Return whether all keys are constant, different from each other, and of an allowed type."""
    try:
        made: dict[Any, Any] = {}
        for each in node.entries:
            insert(made, _constant(_key(each.key)), None)
    except EvalError:
        return False
    return True


def _constant(node: Node) -> Any:
    if isinstance(node, ListOf):
        return [_constant(each) for each in node.elements]
    if isinstance(node, MapOf):
        made: dict[Any, Any] = {}
        for each in node.entries:
            insert(made, _constant(_key(each.key)), _constant(each.value))
        return made
    assert isinstance(node, Literal)
    return node.value


def _is_constant_set(node: Node) -> bool:
    if not isinstance(node, ListOf) or not node.elements or not _is_constant(node):
        return False
    kinds = {each.type.kind for each in node.elements}
    return len(kinds) == 1 and kinds <= {
        each.kind for each in (types.BOOL, types.DOUBLE, types.INT, types.STRING, types.UINT)
    }

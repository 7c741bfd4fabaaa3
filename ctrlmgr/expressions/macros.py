"""Expands macros: calls that the parser replaces by a loop, a presence test, or a variable.

Guarantees: macros expand to the same trees as in cel-go, so that evaluations have the same costs. The macros are `has`,
`all`, `exists`, `exists_one`, `map`, `filter`, the macros with two variables (`transformList`, `transformMap`,
`transformMapEntry`), `optMap`, `optFlatMap`, `sortBy` and `cel.bind`.

Source: cel-go `parser/macro.go`, `ext/{bindings,comprehensions,lists}.go`, `cel/library.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ctrlmgr.expressions.expression_tree import Call, Comprehension, Ident, ListOf, Literal, MapOf, Node, Select

RESULT: Final = "@result"
"""The name of the accumulator, which expressions cannot contain."""


class MacroError(Exception):
    """Raised if an argument of a macro is invalid."""

    def __init__(self, at: int, text: str) -> None:
        """Create the error with the given message and position."""
        super().__init__(text)
        self.at = at


def expand(
    at: int, function: str, target: Node | None, arguments: Sequence[Node], *, binds: bool = False
) -> Node | None:
    """Return the expansion of a call; None if the call is not a macro.

    If `binds` is true, `cel.bind` is a macro. Raises `MacroError` if an argument is invalid.
    """
    if target is None:
        return _has(at, arguments[0]) if function == "has" and len(arguments) == 1 else None
    if binds and function == "bind" and len(arguments) == 3 and isinstance(target, Ident) and target.name == "cel":
        name = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
        return _bound(at, name, arguments[1], arguments[2])
    macro = _MACROS.get((function, len(arguments)))
    return macro(at, target, arguments) if macro is not None else None


def _has(at: int, argument: Node) -> Node:
    if not isinstance(argument, Select) or argument.optional:
        raise MacroError(argument.at, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.field, test_only=True)


def _variable(node: Node, words: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident) or node.name == RESULT:
        raise MacroError(node.at, words)
    return node.name


def _names(arguments: Sequence[Node], count: int) -> tuple[str, str]:
    """Return the names of the loop variables; the second name is empty if there is only one variable."""
    first = _variable(arguments[0])
    if count == 1:
        return first, ""
    second = _variable(arguments[1])
    if first == second:
        raise MacroError(arguments[1].at, f"duplicate variable name: {first}")
    return first, second


def _call(at: int, function: str, *arguments: Node) -> Call:
    return Call(at, function, None, list(arguments))


def _result(at: int) -> Ident:
    return Ident(at, RESULT)


def _list_with(at: int, element: Node) -> Node:
    return _call(at, "_+_", _result(at), ListOf(at, [element]))


_Macro = Callable[[int, Node, Sequence[Node]], Node]


def _fold(
    at: int,
    target: Node,
    names: tuple[str, str],
    initial: Node,
    condition: Node,
    step: Node,
    result: Node | None = None,
) -> Node:
    return Comprehension(at, *names, target, RESULT, initial, condition, step, result or _result(at))


def _goes_on(at: int) -> Node:
    return Literal(at, True)


def _all(variables: int) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        condition = _call(at, "@not_strictly_false", _result(at))
        step = _call(at, "_&&_", _result(at), arguments[-1])
        return _fold(at, target, _names(arguments, variables), Literal(at, True), condition, step)

    return expanded


def _exists(variables: int) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        condition = _call(at, "@not_strictly_false", _call(at, "!_", _result(at)))
        step = _call(at, "_||_", _result(at), arguments[-1])
        return _fold(at, target, _names(arguments, variables), Literal(at, False), condition, step)

    return expanded


def _exists_one(variables: int) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        more = _call(at, "_+_", _result(at), Literal(at, 1))
        step = _call(at, "_?_:_", arguments[-1], more, _result(at))
        result = _call(at, "_==_", _result(at), Literal(at, 1))
        return _fold(at, target, _names(arguments, variables), Literal(at, 0), _goes_on(at), step, result)

    return expanded


def _where(at: int, condition: Node | None, step: Node) -> Node:
    return step if condition is None else _call(at, "_?_:_", condition, step, _result(at))


def _map(variables: int, *, filtered: bool) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        condition = arguments[variables] if filtered else None
        step = _where(at, condition, _list_with(at, arguments[-1]))
        return _fold(at, target, _names(arguments, variables), ListOf(at, []), _goes_on(at), step)

    return expanded


def _filter(at: int, target: Node, arguments: Sequence[Node]) -> Node:
    names = _names(arguments, 1)
    step = _where(at, arguments[1], _list_with(at, Ident(arguments[0].at, names[0])))
    return _fold(at, target, names, ListOf(at, []), _goes_on(at), step)


def _transform_map(*, filtered: bool) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        names = _names(arguments, 2)
        inserted = _call(at, "cel.@mapInsert", _result(at), Ident(at, names[0]), arguments[-1])
        step = _where(at, arguments[2] if filtered else None, inserted)
        return _fold(at, target, names, MapOf(at, []), _goes_on(at), step)

    return expanded


def _transform_entry(*, filtered: bool) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        inserted = _call(at, "cel.@mapInsert", _result(at), arguments[-1])
        step = _where(at, arguments[2] if filtered else None, inserted)
        return _fold(at, target, _names(arguments, 2), MapOf(at, []), _goes_on(at), step)

    return expanded


def _bound(at: int, name: str, value: Node, result: Node) -> Node:
    never, same = Literal(at, False), Ident(at, name)
    return Comprehension(at, "#unused", "", ListOf(at, []), name, value, never, same, result)


def _optional(macro: str, *, wraps: bool) -> _Macro:
    def expanded(at: int, target: Node, arguments: Sequence[Node]) -> Node:
        name = _variable(arguments[0], f"{macro}() variable name must be a simple identifier")
        value = Call(at, "value", target, [])
        inner = _bound(at, name, value, arguments[1])
        there = _call(at, "optional.of", inner) if wraps else inner
        return _call(at, "_?_:_", Call(at, "hasValue", target, []), there, _call(at, "optional.none"))

    return expanded


_SORTED_BY: Final = "@__sortBy_input__"


def _sort_by(at: int, target: Node, arguments: Sequence[Node]) -> Node:
    keys = _map(1, filtered=False)(at, Ident(at, _SORTED_BY), arguments)
    ordered = Call(at, "@sortByAssociatedKeys", Ident(at, _SORTED_BY), [keys])
    return _bound(at, _SORTED_BY, target, ordered)


_MACROS: Final[Mapping[tuple[str, int], _Macro]] = {
    ("all", 2): _all(1),
    ("all", 3): _all(2),
    ("exists", 2): _exists(1),
    ("exists", 3): _exists(2),
    ("exists_one", 2): _exists_one(1),
    ("existsOne", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 3): _exists_one(2),
    ("map", 2): _map(1, filtered=False),
    ("map", 3): _map(1, filtered=True),
    ("filter", 2): _filter,
    ("transformList", 3): _map(2, filtered=False),
    ("transformList", 4): _map(2, filtered=True),
    ("transformMap", 3): _transform_map(filtered=False),
    ("transformMap", 4): _transform_map(filtered=True),
    ("transformMapEntry", 3): _transform_entry(filtered=False),
    ("transformMapEntry", 4): _transform_entry(filtered=True),
    ("optMap", 2): _optional("optMap", wraps=True),
    ("optFlatMap", 2): _optional("optFlatMap", wraps=False),
    ("sortBy", 2): _sort_by,
}

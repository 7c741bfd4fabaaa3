"""Parses an expression to a tree: CEL's grammar with optionals, quoted fields and macros.

Guarantees: the parser refuses the same expressions as cel-go's parser, with the same messages. Large and deeply nested
expressions do not exhaust memory or the stack. Macros are expanded during parsing (`macros.expand`).

Source: cel-go `parser/gen/CEL.g4` and `parser/parser.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

from ctrlmgr.expressions.expression_lexer import END, OPERAND, Token, constant, listed, tokens_of
from ctrlmgr.expressions.expression_tree import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    StructOf,
)
from ctrlmgr.expressions.macros import MacroError, expand
from ctrlmgr.expressions.source import CompileError, Problem

_LARGEST = 100_000
"""The maximum number of characters of an expression (cel-go's default)."""
_DEEPEST = 250
"""The maximum depth of an expression in the text of cel-go's error message."""
_NESTED = 80
_LEVELS = 160
_NODES = 100_000
"""The limits of this parser. For a tree within the parser's limits, no compilation step exceeds Python's recursion
limit.
"""

_RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_LEVEL_OF: Final = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 1),
    **dict.fromkeys(("+", "-"), 2),
    **dict.fromkeys(("*", "/", "%"), 3),
}
_FUNCTION: Final = {"in": "@in", **{sign: f"_{sign}_" for sign in _LEVEL_OF if sign != "in"}}
_CONSTANTS: Final = ("int", "uint", "float", "string", "bytes")
_WORDS: Final = {"true": True, "false": False, "null": None}


class _Stop(Exception):
    """Raised for a syntax error after which parsing cannot continue."""


def read(source: str, *, binds: bool = False) -> Node:
    """Return the tree of an expression; if `binds` is true, `cel.bind` is allowed. Raises `CompileError`."""
    if len(source) > _LARGEST:
        problem = f"expression code point size exceeds limit: size: {len(source)}, limit {_LARGEST}"
        raise CompileError("", [Problem(0, problem)])
    problems: list[Problem] = []
    reader = _Reader(tokens_of(source, problems), problems, binds=binds)
    try:
        node = reader.whole()
    except _Stop:
        node = Literal(0, None)
    if not problems and _is_too_large(node):
        problems.append(_too_deep())
    if problems:
        raise CompileError(source, problems)
    return node


def _too_deep() -> Problem:
    return Problem(0, f"expression recursion limit exceeded: {_DEEPEST}")


def children(node: Node) -> Iterator[Node]:
    """Yield the direct children of a node."""
    if isinstance(node, Select):
        yield node.operand
    elif isinstance(node, Call):
        if node.target is not None:
            yield node.target
        yield from node.arguments
    elif isinstance(node, ListOf):
        yield from node.elements
    elif isinstance(node, MapOf | StructOf):
        for entry in node.entries if isinstance(node, MapOf) else node.fields:
            if not isinstance(entry.key, str):
                yield entry.key
            yield entry.value
    elif isinstance(node, Comprehension):
        yield from (node.range, node.initial, node.condition, node.step, node.result)


def _is_too_large(root: Node) -> bool:
    """Return whether a tree is too deep or has too many nodes.

    A short expression can have a large tree, because `optMap` duplicates its target.
    """
    levels, nodes, level = 0, 0, [root]
    while level and levels <= _LEVELS and nodes <= _NODES:
        levels, nodes = levels + 1, nodes + len(level)
        level = [below for each in level for below in children(each)]
    return bool(level)


class _Reader:
    def __init__(self, tokens: Sequence[Token], problems: list[Problem], *, binds: bool) -> None:
        self._tokens = tokens
        self._binds = binds
        self._at = 0
        self._problems = problems
        self._nested = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def whole(self) -> Node:
        node = self._expression()
        if self._next.kind != END:
            following = self._tokens[self._at + 1].kind
            words = "extraneous" if following == END else "mismatched"
            self._refuse(f"{words} input '{self._next.text}' expecting {END}")
        return node

    def _refuse(self, text: str, token: Token | None = None) -> NoReturn:
        self._problems.append(Problem((token or self._next).at, f"Syntax error: {text}"))
        raise _Stop

    def _note(self, at: int, text: str) -> None:
        self._problems.append(Problem(at, text))

    def _accept(self, kind: str) -> Token | None:
        if self._next.kind != kind:
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, *kinds: str) -> Token:
        token = self._next
        if token.kind not in kinds:
            self._refuse(f"mismatched input '{token.text}' expecting {listed(kinds)}")
        self._at += 1
        return token

    def _expression(self) -> Node:
        self._nested += 1
        if self._nested > _NESTED:
            self._problems.append(_too_deep())
            raise _Stop
        node = self._logical("||", "_||_")
        if token := self._accept("?"):
            then = self._logical("||", "_||_")
            self._take(":")
            node = Call(token.at, "_?_:_", None, [node, then, self._expression()])
        self._nested -= 1
        return node

    def _logical(self, sign: str, function: str) -> Node:
        """Parse terms joined by `||` or `&&` to a balanced tree, which is not nested deeply even for long chains."""
        terms, places = [self._term(sign)], list[int]()
        while token := self._accept(sign):
            places.append(token.at)
            terms.append(self._term(sign))
        return _balanced(function, terms, places, 0, len(places) - 1) if places else terms[0]

    def _term(self, sign: str) -> Node:
        return self._logical("&&", "_&&_") if sign == "||" else self._binary(1)

    def _binary(self, level: int) -> Node:
        node = self._unary()
        while (of := _LEVEL_OF.get(self._next.kind, 0)) >= level:
            token = self._take(self._next.kind)
            node = Call(token.at, _FUNCTION[token.kind], None, [node, self._binary(of + 1)])
        return node

    def _unary(self) -> Node:
        token = self._next
        if token.kind not in ("!", "-"):
            return self._member()
        signs = 0
        while self._next.kind == token.kind and not self._is_negative_number():
            self._at += 1
            signs += 1
        node = self._member()
        return Call(token.at, f"{token.kind}_", None, [node]) if signs % 2 else node

    def _is_negative_number(self) -> bool:
        return self._next.kind == "-" and self._tokens[self._at + 1].kind in ("int", "float")

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if token := self._accept("."):
                node = self._selected(node, token)
            elif token := self._accept("["):
                function = "_[?_]" if self._accept("?") else "_[_]"
                node = Call(token.at, function, None, [node, self._expression()])
                self._take("]")
            elif self._next.kind == "{" and (name := qualified_name(node)):
                node = self._struct(name)
            else:
                return node

    def _selected(self, operand: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        if self._next.kind not in ("name", "quoted"):
            self._refuse(f"no viable alternative at input '{dot.text}{self._next.text}'".replace(END, ""))
        token = self._take("name", "quoted")
        if not optional and token.kind == "name" and (bracket := self._accept("(")):
            return self._call(bracket.at, token.text, operand)
        return Select(dot.at, operand, token.text.strip("`"), optional=optional)

    def _call(self, at: int, function: str, target: Node | None) -> Node:
        arguments = self._list_until(")")
        try:
            expanded = expand(at, function, target, arguments, binds=self._binds)
        except MacroError as error:
            self._note(error.at, str(error))
            return Literal(at, None)
        return expanded if expanded is not None else Call(at, function, target, arguments)

    def _list_until(self, end: str) -> list[Node]:
        nodes: list[Node] = []
        if self._accept(end):
            return nodes
        nodes.append(self._expression())
        while self._accept(","):
            nodes.append(self._expression())
        self._take(end)
        return nodes

    def _primary(self) -> Node:
        token = self._next
        if token.kind in _CONSTANTS or self._is_negative_number():
            return self._constant()
        if token.kind in _WORDS:
            self._at += 1
            return Literal(token.at, _WORDS[token.kind])
        if self._accept("("):
            node = self._expression()
            self._take(")")
            return node
        if self._accept("["):
            return self._list(token.at)
        if self._accept("{"):
            return self._map(token.at)
        if token.kind in ("name", "."):
            return self._name()
        return self._refuse(f"mismatched input '{token.text}' expecting {listed(OPERAND)}")

    def _constant(self) -> Node:
        begin = self._next.at
        negative = self._accept("-") is not None
        token = self._take(*_CONSTANTS)
        try:
            return Literal(begin, constant(token, negative=negative))
        except ValueError as error:
            self._note(begin, str(error))
            return Literal(begin, None)

    def _name(self) -> Node:
        is_absolute = self._accept(".") is not None
        token = self._take("name")
        if token.text in _RESERVED:
            self._note(token.at, f"reserved identifier: {token.text}")
        if bracket := self._accept("("):
            return self._call(bracket.at, token.text, None)
        return Ident(token.at, token.text, is_absolute)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self._next.kind != "]":
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._accept(","):
                break
        self._take("]")
        return ListOf(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        entries: list[Entry] = []
        while self._next.kind != "}":
            optional = self._accept("?") is not None
            key = self._expression()
            colon = self._take(":")
            entries.append(Entry(colon.at, key, self._expression(), optional))
            if not self._accept(","):
                break
        self._take("}")
        return MapOf(at, entries)

    def _struct(self, name: str) -> Node:
        at = self._take("{").at
        fields: list[Entry] = []
        while self._next.kind != "}":
            optional = self._accept("?") is not None
            field = self._take("name", "quoted")
            colon = self._take(":")
            fields.append(Entry(colon.at, field.text.strip("`"), self._expression(), optional))
            if not self._accept(","):
                break
        self._take("}")
        return StructOf(at, name, fields)


def _balanced(function: str, terms: Sequence[Node], places: Sequence[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, places, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, places, middle + 1, high)
    return Call(places[middle], function, None, [left, right])


def qualified_name(node: Node) -> str:
    """Return `a.b.c` if a node is a qualified name; otherwise the empty string."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only and not node.optional:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""

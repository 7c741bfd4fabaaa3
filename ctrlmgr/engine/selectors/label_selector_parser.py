"""Parses label selectors with the whole grammar of apimachinery's `labels.Parse` and with the same error messages.

Guarantees: a selector matches exactly the objects that it matches in Kubernetes, and invalid selectors are refused with
Kubernetes' messages. The time that a match takes depends on the labels of the object, not on the number of
requirements. A selector has at most `MOST_REQUIREMENTS` requirements.

    selector    = [ requirement *( "," requirement ) ]
    requirement = [ "!" ] KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) VALUE | KEY ( "in" | "notin" ) "(" values ")"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.field import FieldError, invalid
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.engine.selectors.label_selector_lexer import MOST_REQUIREMENTS, Tokens, check_length, tokenize
from ctrlmgr.engine.validation.name_formats import label_value, qualified_name
from ctrlmgr.errors import BadRequest
from ctrlmgr.golang.go_numbers import parse_int

Labels: TypeAlias = Mapping[str, str]
Match: TypeAlias = Callable[[Labels], bool]

_BINARY = ("in", "notin", "=", "==", "!=", ">", "<")
_BINARY_WORDS = "in, notin, =, ==, !=, gt, lt"


class Requirement(NamedTuple):
    """One requirement of a selector; `operator` is `in`, `notin`, `=`, `==`, `!=`, `>`, `<`, `exists` or `!`."""

    key: str
    operator: str
    values: tuple[str, ...]


class LabelSelector:
    """A selector: a conjunction of requirements; an empty selector matches everything."""

    __slots__ = ("matches", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = ()) -> None:
        """Create a selector from `requirements`, which must be valid, and compile it."""
        self.requirements = tuple(sorted(requirements))
        self.matches: Match = _conjunction(self.requirements)
        """A function that takes an object's labels, and returns whether they meet every requirement of the selector."""

    @staticmethod
    @memoized(entries=1024, longest=1000)  # memoized, because informers send the same few selectors repeatedly
    def parse(text: str) -> LabelSelector:
        """Parse a selector; raises `BadRequest`, with Kubernetes' message, if the selector is invalid."""
        check_length(text)
        return LabelSelector(_parse(tokenize(text)))

    @property
    def is_empty(self) -> bool:
        """Return whether the selector matches everything."""
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(_written, self.requirements))


def _written(requirement: Requirement) -> str:
    """Return a requirement formatted as `labels.Requirement.String` does."""
    key, operator, values = requirement
    if operator in ("exists", "!"):
        return key if operator == "exists" else f"!{key}"
    if operator in ("in", "notin"):
        return f"{key} {operator} ({','.join(sorted(values))})"
    return f"{key}{operator}{values[0]}"


def _conjunction(requirements: Sequence[Requirement]) -> Match:
    """Compile requirements. Most selectors have only equalities, which are compared in one step."""
    equal = {(each.key, each.values[0]) for each in requirements if _is_equality(each)}
    others = [each for each in requirements if not _is_equality(each)]
    if not others and len(equal) == 1:
        return _equality(*equal.pop())
    if not others:
        return lambda labels: equal <= labels.items()
    rules = _rules(others)
    return rules if not equal else lambda labels: equal <= labels.items() and rules(labels)


def _is_equality(requirement: Requirement) -> bool:
    return requirement.operator in ("=", "==", "in") and len(requirement.values) == 1


def _equality(key: str, value: str) -> Match:
    return lambda labels: labels.get(key) == value


class _Rule:
    """The combination of all requirements for one key."""

    __slots__ = ("above", "allowed", "below", "denied", "is_absent", "is_required")

    def __init__(self) -> None:
        self.is_required = False
        self.is_absent = False
        self.allowed: frozenset[str] | None = None
        self.denied: set[str] = set()
        self.above: int | None = None
        self.below: int | None = None

    def add(self, operator: str, values: Sequence[str]) -> None:
        """Add one requirement."""
        self.is_required |= operator in ("in", "=", "==", "exists", ">", "<")
        self.is_absent |= operator == "!"
        if operator in ("in", "=", "=="):
            self.allowed = frozenset(values) if self.allowed is None else self.allowed & frozenset(values)
        elif operator in ("!=", "notin"):
            self.denied.update(values)
        elif operator == ">":
            bound = int(values[0])
            self.above = bound if self.above is None else max(bound, self.above)
        elif operator == "<":
            bound = int(values[0])
            self.below = bound if self.below is None else min(bound, self.below)

    def allows(self, value: str) -> bool:
        """Return whether a label with this key may have the given value."""
        if self.is_absent or value in self.denied or (self.allowed is not None and value not in self.allowed):
            return False
        return (self.above is None and self.below is None) or self._is_between(_integer(value))

    def _is_between(self, number: int | None) -> bool:
        if number is None or (self.above is not None and number <= self.above):
            return False
        return self.below is None or number < self.below


def _rules(requirements: Sequence[Requirement]) -> Match:
    """Compile requirements into a function that checks each label once, for any number of requirements."""
    rules: dict[str, _Rule] = {}
    for key, operator, values in requirements:
        rules.setdefault(key, _Rule()).add(operator, values)
    required = sum(rule.is_required for rule in rules.values())

    def matches(labels: Labels) -> bool:
        met = 0
        for key, value in labels.items():
            found = rules.get(key)
            if found is None:
                continue
            if not found.allows(value):
                return False
            met += found.is_required
        return met == required

    return matches


def _integer(text: str) -> int | None:
    try:
        return parse_int(text)
    except ValueError:
        return None


def _parse(tokens: Tokens) -> list[Requirement]:
    requirements: list[Requirement] = []
    while True:
        token = tokens.peek()
        if token.kind == "end":
            return requirements
        if token.kind not in ("identifier", "!"):
            raise BadRequest(f"found '{token.text}', expected: !, identifier, or 'end of string'")
        if len(requirements) == MOST_REQUIREMENTS:
            raise BadRequest(f"the selector has more than {MOST_REQUIREMENTS} requirements")
        requirements.append(_requirement(tokens))
        token = tokens.take()
        if token.kind == "end":
            return requirements
        if token.kind != ",":
            raise BadRequest(f"found '{token.text}', expected: ',' or 'end of string'")
        token = tokens.peek()
        if token.kind not in ("identifier", "!"):
            raise BadRequest(f"found '{token.text}', expected: identifier after ','")


def _requirement(tokens: Tokens) -> Requirement:
    negated = tokens.peek().kind == "!"
    if negated:
        tokens.take()
    key = tokens.take()
    if key.kind != "identifier":
        raise _unparsable(f"found '{key.text}', expected: identifier")
    if problems := qualified_name(key.text):
        raise _unparsable(invalid("<nil>", key.text, "; ".join(problems)).message)
    if negated:
        return Requirement(key.text, "!", ())
    if tokens.peek().kind in ("end", ","):
        return Requirement(key.text, "exists", ())
    operator = tokens.take(keywords=True)
    if operator.kind not in _BINARY:
        raise _unparsable(f"found '{operator.text}', expected: {_BINARY_WORDS}")
    values = _set(tokens) if operator.kind in ("in", "notin") else (_value(tokens),)
    _check(key.text, operator.kind, values)
    return Requirement(key.text, operator.kind, values)


def _value(tokens: Tokens) -> str:
    if tokens.peek().kind in ("end", ","):
        return ""
    token = tokens.take()
    if token.kind != "identifier":
        raise _unparsable(f"found '{token.text}', expected: identifier")
    return token.text


def _set(tokens: Tokens) -> tuple[str, ...]:
    """Parse a parenthesized list of values; an empty item stands for the empty value."""
    token = tokens.take()
    if token.kind != "(":
        raise _unparsable(f"found '{token.text}' expected: '('")
    first = tokens.peek()
    if first.kind == ")":
        tokens.take()
        return ("",)
    if first.kind not in ("identifier", ","):
        raise _unparsable(f"found '{first.text}', expected: ',', ')' or identifier")
    values = _identifiers(tokens)
    if tokens.take().kind != ")":
        raise _unparsable(f"found '{first.text}', expected: ')'")
    return tuple(sorted(values))


def _identifiers(tokens: Tokens) -> set[str]:
    values: set[str] = set()
    while True:
        token = tokens.take()
        following = tokens.peek()
        if token.kind == "identifier":
            values.add(token.text)
            if following.kind == ")":
                return values
            if following.kind != ",":
                raise _unparsable(f"found '{following.text}', expected: ',' or ')'")
        elif token.kind == ",":
            if not values or following.kind in (")", ","):
                values.add("")
            if following.kind == ")":
                return values
        else:
            raise _unparsable(f"found '{token.text}', expected: ',', or identifier")


def _check(key: str, operator: str, values: Sequence[str]) -> None:
    errors: list[FieldError] = []
    if operator in (">", "<"):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [invalid(f"values[{at}]", each, detail) for at, each in enumerate(values) if _integer(each) is None]
    for at, value in enumerate(values):
        if problems := label_value(value):
            errors.append(invalid(f"values[{at}][{key}]", value, "; ".join(problems)))
    if errors:
        messages = list(dict.fromkeys(error.message for error in errors))
        raise _unparsable(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")


def _unparsable(reason: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {reason}")

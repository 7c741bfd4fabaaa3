"""Parses field selectors such as `metadata.name=web,status.phase!=Running` (apimachinery's `fields.ParseSelector`).

Guarantees: a selector matches exactly the objects that it matches in Kubernetes. The attribute `Strategy.fields` lists
a kind's selectable fields in addition to name and namespace. Fields that are not selectable are refused with
Kubernetes' message for that kind (`Strategy.field_refusal`). In values, a backslash escapes the comma, the equals sign
and itself. The time that a match takes depends on the fields of the kind, not on the number of terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.engine.selectors.label_selector_lexer import check_length
from ctrlmgr.errors import BadRequest

Selectable: TypeAlias = Callable[[Object], Mapping[str, str]]

_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"
_OPERATOR = re.compile("!=|==|=")
_PLAIN = re.compile(r"[^\\,=]*")


class Term(NamedTuple):
    """A term: the field equals the value or, if `negated` is set, differs from the value."""

    field: str
    value: str
    negated: bool


class FieldSelector:
    """A selector: a conjunction of terms; an empty selector matches everything."""

    __slots__ = ("_metadata", "_others", "name", "namespace", "terms")

    def __init__(self, terms: tuple[Term, ...] = ()) -> None:
        """Compile `terms`."""
        self.terms = terms
        self.name = _required(terms, _NAME)
        """The name that all matching objects have; None if several names are possible."""
        self.namespace = _required(terms, _NAMESPACE)
        """The namespace that all matching objects have; None if several namespaces are possible."""
        rules = _gathered(terms)
        self._metadata = tuple(rule for rule in rules if rule.field in (_NAME, _NAMESPACE))
        self._others = tuple(rule for rule in rules if rule.field not in (_NAME, _NAMESPACE))

    @staticmethod
    @memoized(entries=1024, longest=1000)
    def parse(text: str) -> FieldSelector:
        """Parse a selector; raises `BadRequest`, with Kubernetes' message, if the selector is invalid."""
        check_length(text)
        return FieldSelector(tuple(_term(text, part) for part in sorted(_parts(text)) if part))

    @property
    def is_empty(self) -> bool:
        """Return whether the selector matches everything."""
        return not self.terms

    def check(self, fields: Container[str], refusal: Callable[[str], str]) -> None:
        """Raise `BadRequest` if the selector contains a field that is not selectable.

        The argument `fields` contains the kind's own selectable fields; `refusal` returns the message for any other
        field.
        """
        for rule in self._others:
            if rule.field not in fields:
                raise BadRequest(refusal(rule.field))

    def matches(self, obj: Object, selectable: Selectable) -> bool:
        """Return whether `obj` meets every term.

        `selectable` returns the values of the kind's own selectable fields.
        """
        for rule in self._metadata:
            key = obj.key
            if not rule.allows(key.name if rule.field == _NAME else key.namespace):
                return False
        if not self._others:
            return True
        values = selectable(obj)
        return all(rule.allows(values.get(rule.field, "")) for rule in self._others)


class _Rule(NamedTuple):
    """The combination of all terms for one field."""

    field: str
    wanted: frozenset[str]
    denied: frozenset[str]

    def allows(self, value: str) -> bool:
        """Return whether the field may have this value, given all terms; False if the terms require other values."""
        return value not in self.denied and (not self.wanted or self.wanted == {value})


def _gathered(terms: tuple[Term, ...]) -> list[_Rule]:
    required: dict[str, set[str]] = {}
    denied: dict[str, set[str]] = {}
    for term in terms:
        required.setdefault(term.field, set())
        denied.setdefault(term.field, set())
        (denied if term.negated else required)[term.field].add(term.value)
    return [_Rule(field, frozenset(required[field]), frozenset(denied[field])) for field in required]


def _required(terms: tuple[Term, ...], field: str) -> str | None:
    return next((term.value for term in terms if term.field == field and not term.negated), None)


def _term(text: str, part: str) -> Term:
    operator = _OPERATOR.search(part)
    if operator is None:
        raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
    return Term(part[: operator.start()], _unescaped(part[operator.end() :]), operator.group() == "!=")


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a selector between unescaped commas, with their backslashes."""
    start, escaped = 0, False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _unescaped(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    result: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            if character not in ("\\", ",", "="):
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{character}")
        elif character in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(character)}")
        result.append(character)
    return "".join(result)

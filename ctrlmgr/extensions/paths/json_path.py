"""Parses and evaluates JSONPaths as in Kubernetes: fields, indexes, slices, unions, wildcards, filters.

Guarantees: a path is accepted or refused as in client-go. A path to a missing field yields no value. Constructs of
templates that are not paths, such as `range`, yield no value either.

Source: client-go `util/jsonpath/{parser,jsonpath}.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ctrlmgr.extensions.schema_validation.go_json_values import encode, shown
from ctrlmgr.golang.go_numbers import write_float

Step: TypeAlias = Callable[[list[Any]], list[Any]]

_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_KEY = re.compile(r"'([^']*)'")
_FILTER = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9.]*", re.ASCII)
_FIELD = re.compile(r"(?:\\.|[^ \t\r\n.,\[\]$@{}\\])*", re.DOTALL)
_WORD = re.compile(r"[^ \t\r\n.,\[\]$@{}]+")
_DEEPEST = 64


class JSONPathError(ValueError):
    """Raised if a path is malformed, or cannot be evaluated on a value."""


class JSONPath:
    """A parsed JSONPath."""

    def __init__(self, text: str) -> None:
        """Parse a path as CustomResourceDefinitions contain it (such as `.spec.replicas`).

        Raises JSONPathError if the path is malformed.
        """
        self._steps = _Reader(text).read()

    def find(self, value: Any) -> list[Any]:
        """Return the values of an object at the path.

        Raises JSONPathError if a value cannot be indexed or compared as the path requires.
        """
        return _follow(self._steps, [value])


def _follow(steps: Sequence[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


class _Reader:
    """Parses the part between the braces of a template."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.steps: list[Step] = []
        self.is_recursive = False
        if depth > _DEEPEST:
            raise JSONPathError("exceeded max depth")

    def read(self) -> list[Step]:
        while self.at < len(self.text) and not self.text.startswith("}", self.at):
            self._one(self.text[self.at])
        return self.steps

    def _one(self, character: str) -> None:
        if self.text.startswith("[?(", self.at):
            self._filter()
        elif self.text.startswith("..", self.at):
            self._descend()
        elif character in " @$":
            self.at += 1
        elif character == "[":
            self._array()
        elif character in "\"'":
            self._add(_constant(self._quoted(character)))
        elif character == ".":
            self.at += 1
            self._field()
        elif character in "+-" or character.isdigit():
            self._number()
        elif character == "_" or character.isalpha():
            self._word()
        elif character in "\r\n":
            raise JSONPathError("unclosed action")
        else:
            raise JSONPathError(f"unrecognized character in action: U+{ord(character):04X} '{character}'")

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        self.is_recursive = False

    def _field(self) -> None:
        match = _FIELD.match(self.text, self.at)
        name = match[0] if match else ""
        self.at += len(name)
        self._add(_children if name == "*" else _field(name.replace("\\", "")))

    def _descend(self) -> None:
        if self.is_recursive:
            raise JSONPathError("invalid multiple recursive descent")
        self.at += 2
        self._add(_descendants)
        self.is_recursive = True
        following = self.text[self.at : self.at + 1]
        if following == "_" or following.isalnum():
            self._field()

    def _number(self) -> None:
        match = _NUMBER.match(self.text, self.at)
        text = match[0] if match else ""
        self.at += len(text)
        try:
            self._add(_constant(int(text) if "." not in text else float(text)))
        except ValueError as error:
            raise JSONPathError(f"cannot parse number {text}") from error

    def _word(self) -> None:
        match = _WORD.match(self.text, self.at)
        word = match[0] if match else ""
        self.at += len(word)
        self._add(_constant(word == "true") if word in ("true", "false") else _unknown(word))

    def _quoted(self, quote: str) -> str:
        end = self.at + 1
        while self.text[end : end + 1] not in (quote, "", "\n") or self.text[end - 1] == "\\":
            if self.text[end : end + 1] in ("", "\n"):
                break
            end += 1
        if self.text[end : end + 1] != quote:
            raise JSONPathError("unterminated quoted string")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return re.sub(r"\\(.)", r"\1", text)

    def _array(self) -> None:
        end = self.text.find("]", self.at)
        line = self.text.find("\n", self.at)
        if end < 0 or 0 <= line < end:
            raise JSONPathError("unterminated array")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        text = ":" if text == "*" else text
        if "," in text:
            self._add(_union([self._below(f"[{part.strip(' ')}]") for part in text.split(",")]))
        elif key := _KEY.fullmatch(text):
            for step in self._below(f".{key[1]}"):
                self._add(step)
        elif bounds := _SLICE.fullmatch(text):
            self._add(_slice(*bounds.groups()))
        else:
            raise JSONPathError(f"invalid array index {text}")

    def _below(self, text: str) -> list[Step]:
        return _Reader(text, self.depth + 1).read()

    def _filter(self) -> None:
        begin = self.at + len("[?(")
        end = self._end_of_filter(begin)
        if not self.text.startswith("]", end + 1):
            raise JSONPathError("unclosed array expect ]")
        text = self.text[begin:end]
        self.at = end + 2
        comparison = _FILTER.fullmatch(text)
        if comparison is None:
            self._add(_existing(self._below(text)))
        else:
            left, operator, right = comparison.groups()
            self._add(_comparing(self._below(left), operator, self._below(right)))

    def _end_of_filter(self, at: int) -> int:
        quote, closed = "", False
        while at < len(self.text) and self.text[at] != "\n":
            character = self.text[at]
            if character in "\"'":
                if not quote:
                    quote = character
                elif character == quote and self.text[at - 1] != "\\":
                    closed = True
            elif character == ")" and bool(quote) == closed:
                return at
            at += 1
        raise JSONPathError("unterminated filter")


# Steps


def _constant(value: Any) -> Step:
    return lambda values: [value] * max(len(values), 1) if type(value) is str else [value] * len(values)


def _unknown(word: str) -> Step:
    def refuse(values: list[Any]) -> list[Any]:
        raise JSONPathError(f"unrecognized identifier {word}")

    return refuse


def _field(name: str) -> Step:
    return lambda values: [each[name] for each in values if type(each) is dict and name in each]


def _children(values: list[Any]) -> list[Any]:
    return [child for each in values for child in _below(each)]


def _below(value: Any) -> Iterator[Any]:
    if type(value) is dict:
        yield from (value[key] for key in sorted(value))
    elif type(value) is list:
        yield from value


def _descendants(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        below = list(_below(each))
        if below:
            found.append(each)
            found += _descendants(below)
    return found


def _union(branches: list[list[Step]]) -> Step:
    return lambda values: [found for steps in branches for found in _follow(steps, values)]


def _slice(first: str, second: str | None, third: str | None) -> Step:
    begin = int(first) if first else None
    is_index = second is None
    end = (begin or 0) + 1 if second is None else int(second[1:]) if second[1:] else None
    step = int(third[1:]) if third and third[1:] else None

    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for each in values:
            if each is None:
                continue
            if type(each) is not list:
                raise JSONPathError("is not array or slice")
            found += _taken(each, begin or 0, end, step, is_index)
        return found

    return take


def _taken(values: list[Any], begin: int, end: int | None, step: int | None, is_index: bool) -> list[Any]:
    size = len(values)
    first = begin + size if begin < 0 else begin
    last = size if end is None else end
    if last < 0 or (last == 0 and is_index):
        last += size
    if first == last:
        return []
    if not 0 <= first < size:
        raise JSONPathError(f"array index out of bounds: index {first}, length {size}")
    if not 0 <= last <= size:
        raise JSONPathError(f"array index out of bounds: index {last - 1}, length {size}")
    if first > last:
        raise JSONPathError(f"starting index {first} is greater than ending index {last}")
    if step is not None and step <= 0:
        raise JSONPathError("step must be > 0")
    return values[first : last : step or 1]


def _items(values: list[Any]) -> Iterator[Any]:
    for each in values:
        if type(each) is not list:
            raise JSONPathError("is not array or slice and cannot be filtered")
        yield from each


def _existing(steps: list[Step]) -> Step:
    def keep(values: list[Any]) -> list[Any]:
        return [item for item in _items(values) if _exists(steps, item)]

    return keep


def _exists(steps: list[Step], item: Any) -> bool:
    try:
        return bool(_follow(steps, [item]))
    except JSONPathError:
        return False


def _comparing(left: list[Step], operator: str, right: list[Step]) -> Step:
    compare = _COMPARISONS.get(operator)

    def keep(values: list[Any]) -> list[Any]:
        kept: list[Any] = []
        for item in _items(values):
            lefts, rights = _follow(left, [item]), _follow(right, [item])
            if not lefts or not rights:
                continue
            if len(lefts) > 1 or len(rights) > 1:
                raise JSONPathError("can only compare one element at a time")
            if compare is None:
                raise JSONPathError(f"unrecognized filter operator {operator}")
            _refuse_incomparable(lefts[0], rights[0], operator)
            if compare(lefts[0], rights[0]):
                kept.append(item)
        return kept

    return keep


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}


def _refuse_incomparable(left: Any, right: Any, operator: str) -> None:
    if type(left) not in (str, int, float, bool) or type(right) not in (str, int, float, bool):
        raise JSONPathError("invalid type for comparison")
    if type(left) is not type(right):
        raise JSONPathError("incompatible types for comparison")
    if type(left) is bool and operator not in ("==", "!="):
        raise JSONPathError("invalid type for comparison")


def text_of(value: Any) -> str:
    """Format a result of a path as Kubernetes prints it; objects and lists are printed as JSON."""
    if type(value) in (dict, list):
        return encode(shown(value)).decode()
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return write_float(value)
    return "<no value>" if value is None else str(value)

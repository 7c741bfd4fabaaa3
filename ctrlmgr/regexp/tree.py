"""Defines the nodes of a pattern's syntax tree: characters, assertions, and combinations of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Assertion: TypeAlias = Literal["begin_text", "end_text", "begin_line", "end_line", "word_boundary", "no_word_boundary"]

Test: TypeAlias = Callable[[str], bool]


@dataclass(slots=True)
class Characters:
    """A set of characters: ranges, and functions that test for other classes; the whole set may be negated."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    negated: bool = False
    folded: bool = False
    """Whether the set treats upper and lower case as equal."""

    def matches(self, character: str) -> bool:
        """Return whether a character is in the set."""
        found = self._holds(character)
        if not found and self.folded:
            found = any(self._holds(each) for each in (character.lower(), character.upper()) if len(each) == 1)
        return found != self.negated

    def _holds(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) or any(test(character) for test in self.tests)


@dataclass(slots=True)
class Assert:
    """A node that matches the empty string at certain positions."""

    kind: Assertion


@dataclass(slots=True)
class Sequence:
    """A sequence of nodes; an empty sequence matches at every position."""

    parts: list[Node]


@dataclass(slots=True)
class Choice:
    """A choice between several nodes."""

    parts: list[Node]


@dataclass(slots=True)
class Repeat:
    """A repetition of a node, at least `least` and at most `most` times; a `most` of -1 means no maximum."""

    part: Node
    least: int
    most: int
    lazy: bool = False
    """Whether the repetition prefers fewer matches of its node."""


Node: TypeAlias = Characters | Assert | Sequence | Choice | Repeat

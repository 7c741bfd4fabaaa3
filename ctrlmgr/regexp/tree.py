"""What a pattern is, once it is read: characters, assertions, and how they are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Assertion: TypeAlias = Literal["begin_text", "end_text", "begin_line", "end_line", "word_boundary", "no_word_boundary"]

Test: TypeAlias = Callable[[str], bool]


@dataclass(slots=True)
class Characters:
    """A set of characters: ranges, tests for classes that are no ranges, each possibly negated as a whole."""

    ranges: list[tuple[str, str]] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    negated: bool = False
    folded: bool = False
    """Whether case does not matter."""

    def matches(self, character: str) -> bool:
        """Say whether a character is in the set."""
        found = self._holds(character)
        if not found and self.folded:
            found = any(self._holds(each) for each in (character.lower(), character.upper()) if len(each) == 1)
        return found != self.negated

    def _holds(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) or any(test(character) for test in self.tests)


@dataclass(slots=True)
class Assert:
    """Matches the empty text at certain places."""

    kind: Assertion


@dataclass(slots=True)
class Sequence:
    """One after the other; empty matches everywhere."""

    parts: list[Node]


@dataclass(slots=True)
class Choice:
    """One of several."""

    parts: list[Node]


@dataclass(slots=True)
class Repeat:
    """Again and again: at least `least` times and at most `most`, -1 for without end."""

    part: Node
    least: int
    most: int
    lazy: bool = False
    """Whether fewer times are preferred."""


Node: TypeAlias = Characters | Assert | Sequence | Choice | Repeat

"""Compiles a pattern's tree to the instructions of a Thompson automaton.

Guarantees: a program has at most `MOST_INSTRUCTIONS` instructions; a pattern that needs more raises `TooMuchWork`. A
counted repetition multiplies the instructions; for example, `a{1000}` needs a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ctrlmgr.regexp.tree import Assert, Characters, Choice, Node, Repeat, Sequence
from ctrlmgr.work_budget import TooMuchWork

MOST_INSTRUCTIONS: Final = 20_000
_PER_TEST: Final = 6
"""The number of steps for one look-up of a character in a Unicode class; a look-up is slower than a test of a range.
"""
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class Class(NamedTuple):
    """The characters that an instruction consumes; the instructions of one repetition use the same class."""

    matches: Callable[[str], bool]
    weight: int
    """The number of steps for one test of the class."""


class Instruction(NamedTuple):
    """One instruction of an automaton.

    An instruction either consumes a character of the class `consumes`, or continues at all instructions in `to` if the
    assertion `holds` is true. The last instruction of a program neither consumes a character nor continues.
    """

    to: tuple[int, ...]
    consumes: int = -1
    """The index of the character class that the instruction consumes; -1 if it consumes no character."""
    holds: Callable[[str, str], bool] | None = None


class Program:
    """The instructions to which a pattern is compiled.

    `start` is the first instruction, and `end` is the instruction that means a match.
    """

    def __init__(self, tree: Node) -> None:
        """Compile the tree of a pattern; raises `TooMuchWork` if the program would be too large."""
        self.instructions: list[Instruction] = []
        self.classes: list[Class] = []
        self._numbers: dict[int, int] = {}
        self.end = self._emit(Instruction(()))
        self.start = self._compile(tree, self.end)

    # Functions that compile a node: the argument is the instruction after the node, the result the node's first
    # instruction.

    def _emit(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MOST_INSTRUCTIONS:
            raise TooMuchWork
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _compile(self, node: Node, onward: int) -> int:
        if isinstance(node, Characters):
            return self._emit(Instruction((onward,), consumes=self._class(node)))
        if isinstance(node, Assert):
            return self._emit(Instruction((onward,), holds=_HOLDS[node.kind]))
        if isinstance(node, Choice):
            return self._emit(Instruction(tuple(self._compile(each, onward) for each in node.parts)))
        if isinstance(node, Sequence):
            return self._sequence(node.parts, onward)
        return self._repeat(node, onward)

    def _class(self, node: Characters) -> int:
        number = self._numbers.get(id(node))
        if number is None:
            number = self._numbers[id(node)] = len(self.classes)
            self.classes.append(Class(node.matches, 2 + len(node.ranges) // 2 + _PER_TEST * len(node.tests)))
        return number

    def _sequence(self, parts: Iterable[Node], onward: int) -> int:
        for part in reversed(list(parts)):
            onward = self._compile(part, onward)
        return onward

    def _repeat(self, node: Repeat, onward: int) -> int:
        if node.most < 0:
            again = self._emit(Instruction(()))
            body = self._compile(node.part, again)
            self.instructions[again] = Instruction((onward, body) if node.lazy else (body, onward))
            onward = again
        else:
            end = onward
            for _ in range(node.most - node.least):
                body = self._compile(node.part, onward)
                onward = self._emit(Instruction((end, body) if node.lazy else (body, end)))
        for _ in range(node.least):
            onward = self._compile(node.part, onward)
        return onward


def class_of(character: str) -> str:
    """Return a character that represents all characters that assertions treat in the same way."""
    return "\n" if character == "\n" else "w" if character in _WORD else "-" if character else ""


def _at_boundary(before: str, after: str) -> bool:
    return (before in _WORD) != (after in _WORD)


_HOLDS: dict[str, Callable[[str, str], bool]] = {
    "begin_text": lambda before, after: not before,
    "end_text": lambda before, after: not after,
    "begin_line": lambda before, after: before in ("", "\n"),
    "end_line": lambda before, after: after in ("", "\n"),
    "word_boundary": _at_boundary,
    "no_word_boundary": lambda before, after: not _at_boundary(before, after),
}

"""Evaluates the conditions of `test`, `[` and `[[`: comparisons, checks of files, and combinations of conditions.

Guarantees: the result depends only on the words of the condition and on files. A malformed condition is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from ctrlmgr.simulation.simulated_files import Files

_NUMBERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_UNARY: Final = frozenset(f"-{letter}" for letter in "znefdrwxsLhSpbc")
_BINARY: Final = frozenset(["=", "==", "!=", "=~", "<", ">", *_NUMBERS])


def holds(words: Sequence[str], files: Files, path: Callable[[str], str], *, patterns: bool = False) -> bool:
    """Return whether a condition of the command `test` is true.

    If `patterns` is set, the right side of `==` is a pattern, as in `[[ … ]]`.
    """
    reader = _Reader(words, files, path, patterns=patterns)
    return bool(words) and reader.either()


class _Reader:
    def __init__(self, words: Sequence[str], files: Files, path: Callable[[str], str], *, patterns: bool) -> None:
        self._words = [*words]
        self._files = files
        self._path = path
        self._patterns = patterns

    def _takes(self, *texts: str) -> bool:
        if self._words and self._words[0] in texts:
            self._words.pop(0)
            return True
        return False

    def either(self) -> bool:
        found = self._both()
        while self._takes("-o", "||"):
            found = self._both() or found
        return found

    def _both(self) -> bool:
        found = self._one()
        while self._takes("-a", "&&"):
            found = self._one() and found
        return found

    def _one(self) -> bool:
        words = self._words
        if len(words) >= 3 and words[1] in _BINARY:
            left, operator, right = (words.pop(0) for _ in range(3))
            return self._compares(left, operator, right)
        if self._takes("!"):
            return not self._one()
        if len(words) > 1 and words[0] == "(":
            self._takes("(")
            found = self.either()
            self._takes(")")
            return found
        if len(words) >= 2 and words[0] in _UNARY:
            operator, value = words.pop(0), words.pop(0)
            return self._unary(operator, value)
        return bool(words.pop(0)) if words else False

    def _compares(self, left: str, operator: str, right: str) -> bool:
        if operator in _NUMBERS:
            try:
                return _NUMBERS[operator](int(left), int(right))
            except ValueError:
                return False
        if operator in ("<", ">"):
            return left < right if operator == "<" else left > right
        if operator == "=~":
            try:
                return re.search(right, left) is not None
            except re.error:
                return False
        same = fnmatchcase(left, right) if self._patterns else left == right
        return same is (operator != "!=")

    def _unary(self, operator: str, value: str) -> bool:
        if operator in ("-z", "-n"):
            return bool(value) is (operator == "-n")
        path = self._path(value)
        if operator == "-d":
            return self._files.is_folder(path)
        if operator == "-s":
            return bool(self._files.get(path, ""))
        return path in self._files or (operator in ("-e", "-r", "-w", "-x") and self._files.is_folder(path))

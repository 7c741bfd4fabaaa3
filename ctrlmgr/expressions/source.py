"""The text of an expression, and how problems in it are told.

Guarantees: a problem is written as cel-go writes it, with line and column (from 1), the line, and a mark below it:

    ERROR: <input>:1:5: undeclared reference to 'x' (in container '')
     | a + x
     | ....^

Source: cel-go `common/{error,errors,source}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

MOST_PROBLEMS: Final = 100


class Problem(NamedTuple):
    """What is wrong at a place, which is an offset in characters."""

    at: int
    text: str


class CompileError(Exception):
    """An expression cannot be compiled; the message tells every problem, in the order of their places."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        """Write the problems that were found in `source`."""
        self.problems = sorted(problems, key=lambda each: each.at)
        self._source = source
        super().__init__("\n".join(written(source, each) for each in self.problems[:MOST_PROBLEMS]))

    @property
    def in_one_line(self) -> str:
        """The problems with their places, without the lines that they are in."""
        shown = (written(self._source, each).partition("\n")[0] for each in self.problems[:MOST_PROBLEMS])
        return "; ".join(shown)


def written(source: str, problem: Problem) -> str:
    """Return a problem with its place and its line; of an empty text there is none to show."""
    if not source:
        return f"ERROR: <input>:1:0: {problem.text}"
    before = source[: problem.at]
    line = before.count("\n")
    column = problem.at - (before.rfind("\n") + 1)
    shown = source.split("\n")[line].replace("\t", " ")
    dots = "".join("．" if ord(each) > 127 else "." for each in shown[:column])  # as wide as what they stand below
    mark = "＾" if column < len(shown) and ord(shown[column]) > 127 else "^"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {problem.text}\n | {shown}\n | {dots}{mark}"

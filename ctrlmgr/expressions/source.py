"""Formats the errors in the text of an expression.

Guarantees: an error has cel-go's format: the line number and the column (both from 1), the message, the line of the
expression, and a marker below it:

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
    """An error at an offset in the expression, in characters."""

    at: int
    text: str


class CompileError(Exception):
    """Raised if an expression cannot be compiled; the message contains all errors, sorted by position."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        """Create the error from the errors in `source`."""
        self.problems = sorted(problems, key=lambda each: each.at)
        self._source = source
        super().__init__("\n".join(written(source, each) for each in self.problems[:MOST_PROBLEMS]))

    @property
    def in_one_line(self) -> str:
        """All errors in one line: each message with its position, without the line of the expression."""
        shown = (written(self._source, each).partition("\n")[0] for each in self.problems[:MOST_PROBLEMS])
        return "; ".join(shown)


def written(source: str, problem: Problem) -> str:
    """Format an error with its position and its line; if the expression is empty, no line is shown."""
    if not source:
        return f"ERROR: <input>:1:0: {problem.text}"
    before = source[: problem.at]
    line = before.count("\n")
    column = problem.at - (before.rfind("\n") + 1)
    shown = source.split("\n")[line].replace("\t", " ")
    # Wide characters need a wide marker below them.
    dots = "".join("．" if ord(each) > 127 else "." for each in shown[:column])
    mark = "＾" if column < len(shown) and ord(shown[column]) > 127 else "^"
    return f"ERROR: <input>:{line + 1}:{column + 1}: {problem.text}\n | {shown}\n | {dots}{mark}"

"""Predefined queries, each in one SQL file that contains its description and parameters.

Each file begins with comments. The first comment of a file is the query's description. Each further comment declares a
parameter with its type, default and description: `-- :limit int = 20 how many`. A parameter's type is `int`, `text`
(`-` means the empty string) or `revision`, whose value may also be a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.api.resource import Revision

_PARAMETER = re.compile(r"-- :(\w+) (int|text|revision)(?: = (\S+))?  (.+)")


class Parameter(NamedTuple):
    """A parameter of a query."""

    name: str
    type: str
    default: str | None
    """The default value; None if the parameter is required."""
    description: str


class Question(NamedTuple):
    """A predefined query."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    statement: str

    @property
    def usage(self) -> str:
        """The query's usage text on the command line, such as `history resource=TEXT namespace=- name=TEXT`."""
        given = (f"{each.name}={each.default or each.type.upper()}" for each in self.parameters)
        return " ".join((self.name, *given))

    def bind(self, given: Mapping[str, str], resolve: Callable[[str], Revision]) -> dict[str, int | str]:
        """Return the values of the parameters; the function `resolve` converts a point in time to a revision.

        Raises ValueError if a parameter is missing, unknown, or not a number.
        """
        if unknown := given.keys() - {each.name for each in self.parameters}:
            raise ValueError(f"{self.name} has no parameter {min(unknown)}; usage: {self.usage}")
        return {each.name: self._value(each, given.get(each.name, each.default), resolve) for each in self.parameters}

    def _value(self, parameter: Parameter, text: str | None, resolve: Callable[[str], Revision]) -> int | str:
        if text is None:
            raise ValueError(f"{self.name} needs {parameter.name}, {parameter.description}; usage: {self.usage}")
        if parameter.type == "revision":
            return resolve(text)
        if parameter.type == "text":
            return "" if text == "-" else text
        if not text.isdecimal():
            raise ValueError(f"{parameter.name} should be a number, not {text!r}")
        return int(text)


@cache
def questions() -> Mapping[str, Question]:
    """Return all predefined queries, by name."""
    return _questions(Path(__file__).parent)


@cache
def audit_questions() -> Mapping[str, Question]:
    """Return the predefined queries about audited requests (`inspection.audited_requests`), by name."""
    return _questions(Path(__file__).parent / "audit")


def _questions(folder: Path) -> Mapping[str, Question]:
    files = sorted(folder.glob("*.sql"))
    return {file.stem: _read(file.stem, file.read_text(encoding="utf-8")) for file in files}


def _read(name: str, text: str) -> Question:
    first, *rest = text.splitlines()
    declared = [line for line in rest if line.startswith("-- ")]
    parameters = tuple(Parameter(*found.groups()) for line in declared if (found := _PARAMETER.fullmatch(line)))
    if len(parameters) != len(declared):
        raise ValueError(f"{name}.sql: a comment declares no parameter")
    statement = "\n".join(line for line in rest if not line.startswith("-- "))
    return Question(name, first.removeprefix("-- "), parameters, statement.strip())

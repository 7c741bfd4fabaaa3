"""The result of a script: when it ends, with which code, what it writes; and the exceptions that leave a part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Line(NamedTuple):
    """Something written to the standard output, so many seconds after the start."""

    at: float
    text: str
    ends: bool = True
    """Whether the next begins on a line of its own."""

    @property
    def written(self) -> str:
        """It as it was written."""
        return f"{self.text}\n" if self.ends else self.text


@dataclass
class Run:
    """The result of a script; `ends_at` None: it runs for ever."""

    ends_at: float | None = None
    code: int = 0
    lines: list[Line] = field(default_factory=list)
    unknown: str = ""


class Exit(Exception):  # it ends a script, and is no error
    """A script ends."""

    def __init__(self, code: int) -> None:
        """With this code."""
        self.code = code


class ForEver(Exception):  # likewise
    """A script runs for ever."""

    def __init__(self, unknown: str = "") -> None:
        """Because of a command that is not known, if it is named."""
        self.unknown = unknown


class Leave(Exception):  # likewise
    """A loop or a function is left: `break`, `continue` or `return`."""

    def __init__(self, what: str, code: int = 0, levels: int = 1) -> None:
        """Leave so many loops."""
        self.what = what
        self.code = code
        self.levels = levels

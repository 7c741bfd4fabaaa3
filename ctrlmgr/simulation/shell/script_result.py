"""The result of a script: when it ends, with which code, what it writes; and the exceptions that leave a part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Line(NamedTuple):
    """A line of standard output; `at` is in seconds after the start."""

    at: float
    text: str
    ends: bool = True
    """Whether it ends with a newline."""

    @property
    def written(self) -> str:
        """The line with its newline."""
        return f"{self.text}\n" if self.ends else self.text


@dataclass
class Run:
    """The result of a script; `ends_at` None: it runs for ever."""

    ends_at: float | None = None
    code: int = 0
    lines: list[Line] = field(default_factory=list)
    unknown: str = ""


class Exit(Exception):  # control flow, not an error
    """Ends a script."""

    def __init__(self, code: int) -> None:
        """End with this exit code."""
        self.code = code


class ForEver(Exception):  # control flow, not an error
    """Marks a script as running for ever."""

    def __init__(self, unknown: str = "") -> None:
        """Name the unknown command that causes it, if any."""
        self.unknown = unknown


class Leave(Exception):  # control flow, not an error
    """Leaves a loop or function: `break`, `continue` or `return`."""

    def __init__(self, what: str, code: int = 0, levels: int = 1) -> None:
        """Leave `levels` loops."""
        self.what = what
        self.code = code
        self.levels = levels

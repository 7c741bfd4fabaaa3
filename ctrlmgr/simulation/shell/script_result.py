"""The result of a script (its end, exit code and output), and the exceptions that end a script or a part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Line(NamedTuple):
    """A line of a script's output; `at` is in seconds after the start of the script."""

    at: float
    text: str
    ends: bool = True
    """Whether the line ends with a newline."""

    @property
    def written(self) -> str:
        """The line; if the line ends with a newline, the newline is included."""
        return f"{self.text}\n" if self.ends else self.text


@dataclass
class Run:
    """The result of a script; if `ends_at` is None, the script runs forever."""

    ends_at: float | None = None
    code: int = 0
    lines: list[Line] = field(default_factory=list)
    unknown: str = ""


class Exit(Exception):  # This exception is control flow, not an error.
    """Raised to end a script with an exit code."""

    def __init__(self, code: int) -> None:
        """Create the exception that ends the script with this exit code."""
        self.code = code


class RunsForever(Exception):  # This exception is control flow, not an error.
    """Raised if a script runs forever, so that it has no result."""

    def __init__(self, unknown: str = "") -> None:
        """Store the name of the unknown command that runs forever.

        The name is empty if the script runs forever for another reason.
        """
        self.unknown = unknown


class ControlFlow(Exception):  # This exception is control flow, not an error.
    """Raised to leave a loop or function, by `break`, `continue` or `return`."""

    def __init__(self, what: str, code: int = 0, levels: int = 1) -> None:
        """Create an exception that leaves `levels` loops."""
        self.what = what
        self.code = code
        self.levels = levels

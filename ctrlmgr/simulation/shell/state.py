"""The state of a shell: its time, files, variables and streams.

Guarantees: when the shell's time advances, the time of its files also advances. The interpreter implements the methods
`command` and `script`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from posixpath import normpath
from random import Random
from typing import Any, NamedTuple

from ctrlmgr.simulation.behaviour import ContainerExit
from ctrlmgr.simulation.shell.expansion import Expander
from ctrlmgr.simulation.shell.script_result import Line, Run
from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import Answer, Network


class Input:
    """The standard input of a command."""

    def __init__(self, text: str) -> None:
        """Create an instance that reads from the beginning of the string."""
        self._text = text

    def is_left(self) -> bool:
        """Return whether any input is left."""
        return bool(self._text)

    def rest(self) -> str:
        """Read and return the rest of the input."""
        found, self._text = self._text, ""
        return found

    def line(self) -> str | None:
        """Read and return a line; return None at the end of the input."""
        if not self._text:
            return None
        found, _, self._text = self._text.partition("\n")
        return found


class Streams(NamedTuple):
    """The streams of a command: its input, and the targets of its output and errors."""

    input: Input
    out: Callable[[str], None]
    err: Callable[[str], None]


class State(ABC):
    """The state of a shell, which its commands read and change."""

    def __init__(
        self, files: Files, variables: Mapping[str, str], unknown: ContainerExit | None, network: Network
    ) -> None:
        """Create a state with these files and variables; `unknown` defines how unknown commands end."""
        self.files = files
        self.network = network
        self.unknown = unknown
        self.variables = {"HOME": "/root", **variables, "?": "0", "$": "1", "!": "2", "0": "sh"}
        random = Random("\0".join(f"{name}={value}" for name, value in sorted(variables.items())))
        self.expander = Expander(
            self.variables, self.captured, lambda: [*self.files], lambda: int(random.random() * 32768)
        )
        self.folder = variables.get("PWD") or "/"
        self.now = 0.0
        self.stops_at_errors = False
        self.background: list[float | None] = []
        """The time at which each background command ends; None if the command never ends."""
        self.run = Run()
        self.streams = Streams(Input(""), self.log, self.log)

    @abstractmethod
    def command(self, words: Sequence[str]) -> int:
        """Run a command; return the command's exit code."""

    @abstractmethod
    def script(self, script: str) -> int:
        """Run a script in this shell; return the script's exit code."""

    @abstractmethod
    def captured(self, script: str) -> str:
        """Return the output of a script, for a command substitution."""

    def log(self, text: str) -> None:
        """Write text to the container's log."""
        *whole, last = text.split("\n")
        self.run.lines += [Line(self.now, line) for line in whole]
        if last:
            self.run.lines.append(Line(self.now, last, ends=False))

    def passes(self, seconds: float) -> None:
        """Set the time of the shell: advance the time, or return to the start of a background command."""
        self.now += seconds
        self.files.now = self.files.start + self.now

    def connect(self, host: str, port: int | None) -> Answer:
        """Connect to a port of a host now; if no port is given, only resolve the host's name."""
        return self.network.connect(host, port, self.files.now)

    def path(self, name: str) -> str:
        """Return the absolute form of a path, which may be relative to the current folder."""
        found = normpath(name if name.startswith("/") else f"{self.folder}/{name}")
        return found.replace("//", "/", 1)

    @contextmanager
    def with_streams(self, **streams: Any) -> Iterator[None]:
        """Replace some streams of the shell until the `with` block ends."""
        before = self.streams
        self.streams = before._replace(**streams)
        try:
            yield
        finally:
            self.streams = before

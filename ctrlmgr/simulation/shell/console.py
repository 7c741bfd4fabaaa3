"""Runs commands in a simulated container whose input arrives in pieces, for `kubectl exec` with or without a terminal.

Guarantees:
- The output of a command is the same as if all input had been available from the start. A part of the output is written
  when it no longer depends on input that is missing.
- A shell without a script runs each line when the line is complete. If there is a terminal, the shell echoes the input
  and shows a prompt.
- A command that the simulation does not know ends with the exit code 127 and an error message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.simulation.behaviour import ContainerExit
from ctrlmgr.simulation.shell.archive_tools import decoded, encoded
from ctrlmgr.simulation.shell.script_result import Run
from ctrlmgr.simulation.shell.shell_interpreter import SHELLS, Shell, script_of
from ctrlmgr.simulation.shell.state import Input, Streams
from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import Network

MOST_INPUT: Final = 16 << 20
"""The maximum size of the input, in bytes."""
_RETRIED: Final = 64 * 1024
"""The maximum size of the input in bytes for which the command is computed again for each piece of the input. For a
longer input, the command is computed only once, at the end of the input.
"""
_NOT_FOUND: Final = ContainerExit(127)
_KEYS: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+")
"""Matches one of these: a key with an escape sequence, a control character, or a sequence of other characters."""


class Chunk(NamedTuple):
    """A piece of a command's output."""

    at: float
    """The time at which the output is written, in seconds after the start of the command."""
    is_error: bool
    data: bytes


class _Missing(Exception):  # control flow, not an error
    """Raised if the command reads input that is not available yet."""


class _PartialInput(Input):
    """The input of a command; the end of the input may not be available yet."""

    def __init__(self, text: str, *, is_complete: bool) -> None:
        super().__init__(text)
        self._is_complete = is_complete

    def rest(self) -> str:
        if not self._is_complete:
            raise _Missing
        return super().rest()

    def line(self) -> str | None:
        if not self._is_complete and "\n" not in self._text:
            raise _Missing
        return super().line()


class Setting(NamedTuple):
    """The container in which a command runs."""

    files: Files
    """A copy of the container's files, which the command changes."""
    variables: Mapping[str, str]
    network: Network


class Command:
    """A running command that is not an interactive shell."""

    def __init__(self, words: Sequence[str], setting: Setting) -> None:
        """Start the command with no input so far."""
        self.code: int | None = None
        """The exit code of the command; None until it has ended."""
        self.ends_at = 0.0
        """The time at which the command ends, in seconds after its start."""
        self.files = setting.files
        """The files with all changes of the command, once it has ended."""
        self._words = words
        self._setting = setting
        self._input = bytearray()
        self._shown = 0

    def receive(self, data: bytes, now: float) -> list[Chunk]:
        """Return the output that a piece of input causes; `now` is in seconds after the command's start."""
        self._input += data
        if len(self._input) > MOST_INPUT:
            return self._fail(f"the simulation takes at most {MOST_INPUT} bytes of input")
        return self._computed(is_complete=False) if len(self._input) <= _RETRIED else []

    def end(self, now: float) -> list[Chunk]:
        """Return the output that the end of the input causes."""
        return self._computed(is_complete=True)

    def _computed(self, *, is_complete: bool) -> list[Chunk]:
        """Compute the command with the input that is available so far.

        Return the part of the output that was not returned before.
        """
        if self.code is not None:
            return []
        files = self._setting.files.copied(self._setting.files.now, self._setting.files.changed)
        shell = Shell(files, self._setting.variables, _NOT_FOUND, self._setting.network)
        chunks = list[Chunk]()
        text = _PartialInput(decoded(bytes(self._input)), is_complete=is_complete)
        shell.streams = Streams(text, _writer(shell, chunks, is_error=False), _writer(shell, chunks, is_error=True))
        try:
            run = _run(shell, self._words)
        except _Missing:
            run = Run()
        if run.ends_at is not None:
            self.code, self.ends_at, self.files = run.code, run.ends_at, files
            chunks += [Chunk(run.ends_at, True, _unknown(run.unknown))] if run.unknown else []
        shown, self._shown = self._shown, max(len(chunks), self._shown)
        return chunks[shown:]

    def _fail(self, problem: str) -> list[Chunk]:
        self.code = 1
        return [Chunk(0.0, True, f"{problem}\n".encode())]


class Terminal:
    """An interactive shell, which runs each line when it is complete."""

    def __init__(self, setting: Setting, *, is_terminal: bool) -> None:
        """Start an interactive shell; if `is_terminal` is set, it echoes input and shows a prompt."""
        self.code: int | None = None
        """The exit code of the shell; None until it has ended."""
        self.ends_at = 0.0
        """The time at which the shell ends, in seconds after its start."""
        self.files = setting.files
        """The container's files with all changes that the shell's commands have made."""
        self._is_terminal = is_terminal
        self._shell = Shell(setting.files, setting.variables, _NOT_FOUND, setting.network)
        self._chunks = list[Chunk]()
        self._line = ""
        # On a terminal, errors are written to the output stream.
        out = _writer(self._shell, self._chunks, is_error=False)
        err = out if is_terminal else _writer(self._shell, self._chunks, is_error=True)
        self._shell.streams = Streams(Input(""), out, err)
        self._prompt()

    def receive(self, data: bytes, now: float) -> list[Chunk]:
        """Return the output that a piece of input causes; `now` is in seconds after the shell's start."""
        self._shell.passes(max(now - self._shell.now, 0.0))
        for key in _KEYS.findall(decoded(data)):
            if self.code is None:
                self._press(key)
        return self._taken()

    def end(self, now: float) -> list[Chunk]:
        """Return the output that the end of the input causes."""
        self._shell.passes(max(now - self._shell.now, 0.0))
        if self.code is None and self._line:
            self._run_line()
        self._exit(int(self._shell.variables["?"]))
        return self._taken()

    def _press(self, key: str) -> None:
        if key in ("\r", "\n"):
            self._echo("\n")
            self._run_line()
        elif key in ("\x7f", "\b"):
            self._echo("\b \b" if self._line else "")
            self._line = self._line[:-1]
        elif key == "\x03":
            self._echo("^C\n")
            self._line = ""
            self._prompt()
        elif key == "\x04":
            if not self._line:
                self._exit(int(self._shell.variables["?"]))
        elif key == "\t" or key.isprintable():
            self._line += key
            self._echo(key)

    def _run_line(self) -> None:
        line, self._line = self._line, ""
        run = self._shell.run = Run()
        self._shell.variables["?"] = str(self._shell.run_script(line, ()).code)
        if run.unknown:
            self._shell.streams.err(decoded(_unknown(run.unknown)))
        elif run.ends_at is None:
            self._shell.streams.err("sh: this would run for ever, and was stopped by the simulation\n")
        if self._shell.has_exited:
            self._exit(run.code)
        else:
            self._prompt()

    def _exit(self, code: int) -> None:
        if self.code is None:
            self.code, self.ends_at = code, self._shell.now

    def _prompt(self) -> None:
        self._echo(f"{self._shell.folder} # ")

    def _echo(self, text: str) -> None:
        if self._is_terminal:
            self._shell.streams.out(text)

    def _taken(self) -> list[Chunk]:
        chunks = self._chunks[:]
        self._chunks.clear()
        if self._is_terminal:  # On a terminal, each line end also moves the cursor to the first column.
            return [each._replace(data=each.data.replace(b"\n", b"\r\n")) for each in chunks]
        return chunks


def command(words: Sequence[str], setting: Setting, *, is_terminal: bool) -> Command | Terminal:
    """Return a running command; if the words start a shell without a script, return an interactive shell."""
    if words and words[0].rsplit("/", 1)[-1] in SHELLS and script_of(words) is None:
        return Terminal(setting, is_terminal=is_terminal)
    return Command(words, setting)


def _run(shell: Shell, words: Sequence[str]) -> Run:
    script = script_of(words)
    return shell.run_script(*script) if script is not None else shell.run_words(words)


def _writer(shell: Shell, chunks: list[Chunk], *, is_error: bool) -> Callable[[str], None]:
    def write(text: str) -> None:
        if text:
            chunks.append(Chunk(shell.now, is_error, encoded(text)))

    return write


def _unknown(name: str) -> bytes:
    return f"sh: {name}: not found: this node is simulated, and the simulation does not know it\n".encode()

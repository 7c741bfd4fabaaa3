"""The interface of the small shell's tools, and functions that read arguments and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import Answer


class Outcome(NamedTuple):
    """The result of a tool: its exit code, output and error messages."""

    code: int = 0
    out: str = ""
    err: str = ""
    takes: float = 0.0
    """The duration of the tool in seconds; infinite if it runs forever."""


class ToolContext(NamedTuple):
    """The environment in which a tool runs."""

    files: Files
    path: Callable[[str], str]
    """A function that returns the absolute form of a path."""
    variables: Mapping[str, str]
    input: Callable[[], str]
    """A function that returns the rest of the input."""
    connect: Callable[[str, int | None], Answer]
    """A function that connects to a port of a host, or resolves the host's name."""


Tool = Callable[[Sequence[str], ToolContext], Outcome]


def parted(arguments: Sequence[str], taking: str = "") -> tuple[dict[str, str], list[str]]:
    """Split arguments into single-letter options and other arguments; the options in `taking` have a value."""
    found: dict[str, str] = {}
    rest = [*arguments]
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        letters = rest.pop(0)[1:]
        if letters == "-":
            break
        while letters and not letters.startswith("-"):
            letter, letters = letters[0], letters[1:]
            found[letter] = ""
            if letter in taking:
                found[letter], letters = letters or (rest.pop(0) if rest else ""), ""
    return found, rest


def options_of(arguments: Sequence[str], taking: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Split arguments into options and other arguments, like GNU's getopt.

    Options may follow other arguments, and may have long names. Options in `taking` have a value: `-oX`, `-o X`,
    `--output X`, `--output=X`.
    """
    found: dict[str, str] = {}
    words: list[str] = []
    rest = [*arguments]
    while rest:
        each = rest.pop(0)
        if each == "--":
            words, rest = [*words, *rest], []
        elif each.startswith("--"):
            name, given, value = each[2:].partition("=")
            found[name] = value if given or name not in taking or not rest else rest.pop(0)
        elif each.startswith("-") and len(each) > 1:
            _read_letters(each[1:], rest, taking, found)
        else:
            words.append(each)
    return found, words


def _read_letters(letters: str, rest: list[str], taking: Collection[str], found: dict[str, str]) -> None:
    """Read single-letter options; the value of the last option may be the next argument in `rest`."""
    for at, letter in enumerate(letters):
        if letter in taking:
            found[letter] = letters[at + 1 :] or (rest.pop(0) if rest else "")
            return
        found[letter] = ""


def contents(tool: str, names: Sequence[str], desk: ToolContext) -> tuple[list[tuple[str, str]], str]:
    """Return the names and contents of files, and error messages for missing files.

    If there are no names, or a name is `-`, the function reads the input.
    """
    found, err = [], ""
    for name in names or ["-"]:
        text = desk.input() if name in ("-", "/dev/stdin") else desk.files.get(desk.path(name))
        if text is None:
            err += f"{tool}: {name}: No such file or directory\n"
        else:
            found.append((name, text))
    return found, err


def lines_of(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of all files, in the order of the files."""
    return [line for _, text in texts for line in text.splitlines()]


def as_lines(lines: Iterable[str]) -> str:
    """Join lines to one string."""
    return "".join(f"{line}\n" for line in lines)


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0", "a": "\a"}


def unescaped(text: str) -> str:
    r"""Return a string in which escapes such as `\n` are replaced by their characters."""
    return re.sub(r"\\([ntr\\0a])", lambda found: _ESCAPES[found[1]], text)


def number_of(text: str) -> int:
    """Return a string as an integer; 0 if it is not an integer."""
    return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else 0

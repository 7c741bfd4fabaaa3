"""Implements tools that read text from files or from their input, such as `cat`, `grep` and `awk`.

Guarantees: `awk` supports only programs that print fields. All other `awk` programs print nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from ctrlmgr.simulation.shell.tool_interface import (
    Outcome,
    Tool,
    ToolContext,
    as_lines,
    contents,
    lines_of,
    number_of,
    parted,
    unescaped,
)


def _cat(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    found, err = contents("cat", parted(arguments)[1], desk)
    return Outcome(
        int(bool(err)), "".join(text for _, text in found), re.sub(r"cat: (.*): No", r"cat: can't open '\1': No", err)
    )


def _wc(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments)
    found, err = contents("wc", names, desk)
    counts = {"l": lambda text: text.count("\n"), "w": lambda text: len(text.split()), "c": len}
    selected = [each for each in counts if each in options] or [*counts]
    lines = [
        " ".join([*(str(counts[each](text)) for each in selected), *([name] if names else [])]) for name, text in found
    ]
    return Outcome(int(bool(err)), as_lines(lines), err)


_PROGRAM: Final = re.compile(r"\s*(?:/(.*?)/)?\s*(?:\{\s*print\s*(.*?)\s*;?\s*\})?\s*", re.DOTALL)
"""Matches the supported awk programs: a pattern, and the fields of a line to print."""


def _awk(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, rest = parted(arguments, "Fv")
    program = _PROGRAM.fullmatch(rest[0] if rest else "")
    found, err = contents("awk", rest[1:], desk)
    pattern, printed = program.groups() if program else ("(?!)", "")
    selected = (line for line in lines_of(found) if pattern is None or re.search(pattern, line))
    lines = [_printed(printed or "$0", line, options.get("F") or None) for line in selected]
    return Outcome(2 if err else 0, as_lines(lines), err)


def _printed(expressions: str, line: str, separator: str | None) -> str:
    fields = line.split(separator)
    found = []
    for each in re.split(r"\s*,\s*", expressions):
        if each == "$0":
            found.append(line)
        elif each == "$NF":
            found.append(fields[-1] if fields else "")
        elif re.fullmatch(r"\$\d+", each):
            found.append(fields[int(each[1:]) - 1] if int(each[1:]) <= len(fields) else "")
        else:
            found.append(each.strip('"'))
    return " ".join(found)


def _grep(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, rest = parted(arguments, "e")
    pattern = options["e"] if "e" in options else (rest.pop(0) if rest else "")
    found, err = contents("grep", rest, desk)
    source = re.escape(pattern) if "F" in options else pattern
    if "E" not in options and "F" not in options:
        source = re.sub(r"\\([|()+?{}])", r"\1", re.sub(r"(?<!\\)([|()+?{}])", r"[\1]", source))
    try:
        selected = re.compile(f"^(?:{source})$" if "x" in options else source, re.IGNORECASE if "i" in options else 0)
    except re.error:
        return Outcome(2, err=f"grep: bad regex '{pattern}'\n")
    lines = [each for each in lines_of(found) if (selected.search(each) is None) is ("v" in options)]
    out = "" if "q" in options else f"{len(lines)}\n" if "c" in options else as_lines(lines)
    return Outcome(int(not lines), out, "" if "s" in options or "q" in options else err)


def _head(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return _ends("head", arguments, desk)


def _tail(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return _ends("tail", arguments, desk)


def _ends(tool: str, arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted([re.sub(r"^-(\d+)$", r"-n\1", each) for each in arguments], "nc")
    takes = inf if tool == "tail" and {"f", "F"} & options.keys() else 0.0
    found, err = contents(tool, names, desk)
    count, lines = abs(number_of(options.get("n", "10"))), lines_of(found)
    kept = lines[:count] if tool == "head" else lines[max(len(lines) - count, 0) :]
    return Outcome(int(bool(err)), as_lines(kept), err, takes)


def _cut(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments, "dfc")
    found, err = contents("cut", names, desk)
    separator, number = options.get("d") or "\t", number_of(options.get("f", options.get("c", "1")))
    lines = []
    for line in lines_of(found):
        fields = [*line] if "c" in options else line.split(separator)
        lines.append(line if len(fields) == 1 else fields[number - 1] if number <= len(fields) else "")
    return Outcome(int(bool(err)), as_lines(lines), err)


def _sort(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments, "kt")
    found, err = contents("sort", names, desk)
    lines = sorted(
        lines_of(found), key=lambda line: (number_of(line) if "n" in options else 0, line), reverse="r" in options
    )
    return Outcome(int(bool(err)), as_lines(dict.fromkeys(lines) if "u" in options else lines), err)


def _tr(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, sets = parted(arguments)
    first, second = (_set(each) for each in ([*sets, "", ""])[:2])
    table: dict[int, str | None] = {}
    for at, each in enumerate(first):
        new = second[min(at, len(second) - 1)] if second else each
        table[ord(each)] = None if "d" in options else new
    return Outcome(out=desk.input().translate(table))


def _set(text: str) -> str:
    text = unescaped(text.replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:space:]", " \t\n"))
    return re.sub(r"(.)-(.)", lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), text)


TEXT: Final[Mapping[str, Tool]] = {
    "awk": _awk,
    "cat": _cat,
    "cut": _cut,
    "egrep": lambda arguments, desk: _grep(["-E", *arguments], desk),
    "grep": _grep,
    "head": _head,
    "sort": _sort,
    "tail": _tail,
    "tr": _tr,
    "wc": _wc,
}
"""The tools of this module, by name."""

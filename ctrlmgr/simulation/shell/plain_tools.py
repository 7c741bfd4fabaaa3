"""Implements tools whose output depends only on arguments and the environment, such as `echo`, `expr` and `seq`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.simulation.shell.arithmetic import evaluate
from ctrlmgr.simulation.shell.tool_interface import Outcome, Tool, ToolContext, as_lines, number_of, unescaped

LONGEST: Final = 10_000
"""The maximum number of lines that `seq` prints."""


def _echo(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, words = "", [*arguments]
    while words and re.fullmatch(r"-[neE]+", words[0]):
        options += words.pop(0)
    text = " ".join(words)
    if "e" in options:
        text = unescaped(text)
    return Outcome(out=text if "n" in options else f"{text}\n")


def _printf(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    if not arguments:
        return Outcome(1, err="printf: usage: printf FORMAT [ARGUMENT...]\n")
    pattern, values = unescaped(arguments[0]), [*arguments[1:]]
    pieces = re.split(r"(%[-+ 0#]*\d*(?:\.\d+)?[sdiouxXc%])", pattern)
    out, again = "", True
    while again:
        before = len(values)
        for each in pieces:
            if each == "%%":
                out += "%"
            elif each.startswith("%") and len(each) > 1:
                value = values.pop(0) if values else ""
                out += each % value if each.endswith(("s", "c")) else each % number_of(value)
            else:
                out += each
        again = bool(values) and len(values) < before
    return Outcome(out=out)


def _seq(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    numbers = [int(each) for each in arguments if re.fullmatch(r"-?\d+", each)][:3] or [0]
    first, last = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    step = numbers[1] if len(numbers) == 3 and numbers[1] else 1
    most = first + step * LONGEST
    end = min(last, most) + 1 if step > 0 else max(last, most) - 1
    return Outcome(out=as_lines(str(each) for each in range(first, end, step)))


def _expr(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    """Evaluate an expression: arithmetic, comparisons of numbers or strings, `TEXT : PATTERN`, or `length`."""
    words = [*arguments]
    if len(words) == 3 and words[1] == ":":
        match = re.match(re.sub(r"\\([()])", r"\1", words[2]), words[0])
        value = (match[1] if match.groups() else str(match.end())) if match else ("" if r"\(" in words[2] else "0")
    elif len(words) == 2 and words[0] == "length":
        value = str(len(words[1]))
    elif len(words) == 1:
        value = words[0]
    elif len(words) == 3 and words[1] in ("=", "!=") and not all(re.fullmatch(r"-?\d+", each) for each in words[::2]):
        value = str(int((words[0] == words[2]) is (words[1] == "=")))
    else:
        text = " ".join("==" if each == "=" else each for each in words)
        if not re.fullmatch(r"[-+*/%()<>=!\d\s]+", text) or not words:
            return Outcome(2, err="expr: syntax error\n")
        value = str(evaluate(text, {}))
    return Outcome(int(value in ("", "0")), f"{value}\n")


def _hostname(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome(out=desk.variables.get("HOSTNAME", "") + "\n")


def _id(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    user = desk.variables.get("UID") or "0"
    return Outcome(out=f"{user}\n" if "-u" in arguments else f"uid={user} gid={user}\n")


def _whoami(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome(out="root\n" if (desk.variables.get("UID") or "0") == "0" else "nobody\n")


def _printenv(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    names = [*arguments] or sorted(each for each in desk.variables if re.fullmatch(r"[A-Za-z_]\w*", each))
    found = {name: desk.variables[name] for name in names if name in desk.variables}
    lines = [*found.values()] if arguments else [f"{name}={value}" for name, value in found.items()]
    return Outcome(int(len(found) < len(names)), as_lines(lines))


def _uname(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome(out="x86_64\n" if "-m" in arguments else "Linux\n")


def _basename(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    name = posixpath.basename(arguments[0].rstrip("/")) if arguments else ""
    return Outcome(out=name.removesuffix(arguments[1] if len(arguments) > 1 else "") + "\n")


def _dirname(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome(out=(posixpath.dirname((arguments or [""])[0].rstrip("/")) or ".") + "\n")


def _nothing(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome()


def _false(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return Outcome(1)


PLAIN: Final[Mapping[str, Tool]] = {
    "basename": _basename,
    "chgrp": _nothing,
    "chmod": _nothing,
    "chown": _nothing,
    "date": _nothing,
    "dirname": _dirname,
    "echo": _echo,
    "expr": _expr,
    "false": _false,
    "hostname": _hostname,
    "id": _id,
    "printenv": _printenv,
    "printf": _printf,
    "seq": _seq,
    "sync": _nothing,
    "true": _nothing,
    "uname": _uname,
    "whoami": _whoami,
}
"""The tools of this module, by name."""

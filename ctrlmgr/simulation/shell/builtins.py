"""The builtins of the small shell: commands that change the shell's state."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ctrlmgr.simulation.shell.script_result import ControlFlow, Exit, RunsForever
from ctrlmgr.simulation.shell.state import State

ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


def _exec(shell: State, arguments: Sequence[str]) -> int:
    if not arguments:
        return 0
    raise Exit(shell.command([*arguments]))


def _exit(shell: State, arguments: Sequence[str]) -> int:
    raise Exit(_code(arguments, shell.variables["?"]))


def _return(shell: State, arguments: Sequence[str]) -> int:
    raise ControlFlow("return", _code(arguments, shell.variables["?"]))


def _break(shell: State, arguments: Sequence[str]) -> int:
    raise ControlFlow("break", levels=max(_code(arguments, "1"), 1))


def _continue(shell: State, arguments: Sequence[str]) -> int:
    raise ControlFlow("continue", levels=max(_code(arguments, "1"), 1))


def _eval(shell: State, arguments: Sequence[str]) -> int:
    return shell.script(" ".join(arguments))


def _command(shell: State, arguments: Sequence[str]) -> int:
    if arguments and arguments[0].startswith("-"):  # `command -v NAME` succeeds, because every program exists.
        shell.streams.out(f"{arguments[-1]}\n")
        return 0
    return shell.command([*arguments]) if arguments else 0


def _env(shell: State, arguments: Sequence[str]) -> int:
    words = [*arguments]
    while words and (found := ASSIGNMENT.fullmatch(words[0])):
        shell.variables[found[1]] = found[3]
        words.pop(0)
    return shell.command(words) if words else shell.command(["printenv"])


def _timeout(shell: State, arguments: Sequence[str]) -> int:
    """Run a command with a time limit; exit with 124 if the command takes longer."""
    words = [each for each in arguments if not each.startswith("-")]
    most = _seconds(words[:1])
    if most is None or len(words) < 2:
        return 125
    began = shell.now
    try:
        code = shell.command(words[1:])
    except RunsForever:
        code, shell.now = 124, began
        shell.passes(most)
    if shell.now - began > most:
        code = 124
        shell.passes(began + most - shell.now)
    return code


def _sleep(shell: State, arguments: Sequence[str]) -> int:
    seconds = _seconds(arguments)
    if seconds is None:
        raise RunsForever
    shell.passes(seconds)
    return 0


def _wait(shell: State, arguments: Sequence[str]) -> int:
    if None in shell.background:
        raise RunsForever
    last = max((each for each in shell.background if each is not None), default=shell.now)
    shell.passes(max(last - shell.now, 0.0))
    shell.background.clear()
    return 0


def _export(shell: State, arguments: Sequence[str]) -> int:
    for each in arguments:
        if found := ASSIGNMENT.fullmatch(each):
            shell.variables[found[1]] = found[3]
    return 0


def _unset(shell: State, arguments: Sequence[str]) -> int:
    for each in arguments:
        shell.variables.pop(each, None)
    return 0


def _set(shell: State, arguments: Sequence[str]) -> int:
    words = [*arguments]
    while words and words[0][:1] in ("-", "+") and words[0] != "--":
        option = words.pop(0)
        if option in ("-o", "+o") and words:
            option += {"errexit": "e"}.get(words.pop(0), "")
        if "e" in option.replace("o", ""):
            shell.stops_at_errors = option.startswith("-")
    if words:
        shell.expander.arguments = words[1:] if words[0] == "--" else words
    return 0


def _shift(shell: State, arguments: Sequence[str]) -> int:
    shell.expander.arguments = shell.expander.arguments[_code(arguments, "1") :]
    return 0


def _read(shell: State, arguments: Sequence[str]) -> int:
    names = [each for each in arguments if not each.startswith("-")] or ["REPLY"]
    line = shell.streams.input.line()
    values = (line or "").split(None, len(names) - 1)
    for at, name in enumerate(names):
        shell.variables[name] = values[at].strip() if at < len(values) else ""
    return int(line is None)


def _cd(shell: State, arguments: Sequence[str]) -> int:
    shell.folder = shell.path(arguments[0] if arguments else shell.variables["HOME"])
    shell.variables["PWD"] = shell.folder
    return 0


def _pwd(shell: State, arguments: Sequence[str]) -> int:
    shell.streams.out(f"{shell.folder}\n")
    return 0


def _code(arguments: Sequence[str], default: str) -> int:
    text = arguments[0] if arguments else default
    return int(text) % 256 if text.lstrip("-").isdigit() else 2 if arguments else 0


def _seconds(arguments: Sequence[str]) -> float | None:
    """Return the seconds for which `sleep` waits; None means forever."""
    total = 0.0
    for each in arguments:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", each)
        if found is None:
            return None
        total += float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
    return total if arguments else None


BUILTINS: Final[Mapping[str, Callable[[State, Sequence[str]], int]]] = {
    "break": _break,
    "cd": _cd,
    "command": _command,
    "continue": _continue,
    "env": _env,
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "export": _export,
    "pwd": _pwd,
    "read": _read,
    "return": _return,
    "set": _set,
    "shift": _shift,
    "sleep": _sleep,
    "timeout": _timeout,
    "unset": _unset,
    "wait": _wait,
    "declare": _export,
    "local": _export,
    "readonly": _export,
    "typeset": _export,
    **dict.fromkeys([":", "trap", "ulimit", "umask", "unalias", "alias", "hash", "disown"], lambda shell, arguments: 0),
}
"""The builtins of this module, by name."""

"""Redirects the streams of a shell for a command.

Guarantees: output to `/dev/stdout` or `/dev/stderr` is written to the container's log. Output to the standard streams
of process 1 is written to the container's log, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ctrlmgr.simulation.shell.script_syntax import Redirection
from ctrlmgr.simulation.shell.state import Input, State
from ctrlmgr.simulation.simulated_files import ReadOnly

_SOCKET: Final = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/(\d+)")
_LOGS: Final = ("/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2")


def redirect(shell: State, each: Redirection) -> int | None:
    """Replace a stream of the shell; return an exit code if this fails, otherwise return None."""
    number, operator = re.fullmatch(r"([0-9]?)(.*)", each.operator, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches everything
    target = shell.expander.text(each.target)
    if operator.startswith(">&"):
        stream = shell.streams.err if operator == ">&2" else shell.streams.out
        _direct(shell, number, stream)
        return None
    if operator.startswith("<&"):
        return None
    if operator in ("<<", "<<-", "<<<"):
        text = re.sub(r"(?m)^\t+", "", target) if operator == "<<-" else target
        shell.streams = shell.streams._replace(input=Input(f"{text}\n" if operator == "<<<" else text))
        return None
    if operator == "<>" and shell.path(target) not in shell.files and not _SOCKET.fullmatch(target):
        _sink(shell, target, appends=True)
    if operator in ("<", "<>"):
        return _read(shell, target)
    if (found := _SOCKET.fullmatch(target)) is not None:
        _direct(shell, number, lambda text: None)
        return _connect(shell, found[1], int(found[2]))
    sink = _sink(shell, target, appends=operator.endswith(">>"))
    if sink is None:
        shell.streams.err(f"sh: can't create {target}: Read-only file system\n")
        return 1
    if operator.startswith("&"):
        shell.streams = shell.streams._replace(out=sink, err=sink)
    else:
        _direct(shell, number, sink)
    return None


def _direct(shell: State, number: str, to: Callable[[str], None]) -> None:
    """Redirect the output or the errors (descriptor 2); commands of the small shell use no other descriptors."""
    if number in ("", "1"):
        shell.streams = shell.streams._replace(out=to)
    elif number == "2":
        shell.streams = shell.streams._replace(err=to)


def _read(shell: State, name: str) -> int | None:
    if (found := _SOCKET.fullmatch(name)) is not None:
        return _connect(shell, found[1], int(found[2]))
    text = "" if name == "/dev/null" else shell.files.get(shell.path(name))
    if text is None:
        shell.streams.err(f"sh: can't open {name}: no such file\n")
        return 1
    shell.streams = shell.streams._replace(input=Input(text))
    return None


def _connect(shell: State, host: str, port: int) -> int | None:
    """Connect to `/dev/tcp/HOST/PORT` like bash; return an exit code if this fails, otherwise return None."""
    problem = shell.connect(host, port).problem
    shell.passes(0.001)
    if problem:
        shell.streams.err(f"sh: connect: {problem.capitalize()}\n")
        return 1
    return None


def _sink(shell: State, name: str, *, appends: bool) -> Callable[[str], None] | None:
    """Return a function that writes to a file; None if the file is read-only."""
    path = shell.path(name)
    if path == "/dev/null":
        return lambda text: None
    if path in _LOGS:
        return shell.log

    def write(text: str) -> None:
        shell.files[path] = shell.files.get(path, "") + text

    try:
        shell.files[path] = shell.files.get(path, "") if appends else ""
    except ReadOnly:
        return None
    return write

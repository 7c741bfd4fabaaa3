"""`ctrlmgr exec`: runs a command, such as a test suite, with its own control plane.

Guarantees:
- The server listens on a free port of 127.0.0.1 and keeps all files in a temporary directory.
- The exit code is the command's exit code, or 128 + N if signal N ended the command. The exit codes 126 and 127 have
  the same meaning as in a shell.
- Before this process ends, it stops the server and removes the temporary directory, even after SIGTERM, SIGHUP and
  Ctrl-C. If `--keep` is given, the temporary directory is kept after a failure of the command.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import given_flags, takes_settings
from ctrlmgr.settings import Loaded, variable

if TYPE_CHECKING:
    from ctrlmgr.testing.served import ServerProcess

_SETTINGS = ("controllers.apps", "controllers.nodes")
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_CANNOT_RUN, _NOT_FOUND, _BY_SIGNAL = 126, 127, 128
_OUTPUT_LINES = 10


@click.command(
    "exec",
    short_help="Run a command with a new control plane.",
    context_settings={"allow_interspersed_args": False},
)
@takes_settings(*_SETTINGS)
@click.option("--keep", is_flag=True, help="If the command fails, keep the log and print commands that inspect it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
# this check reports wrong settings before the server starts
def exec_(loaded: Loaded, keep: bool, command: tuple[str, ...]) -> int:
    """Run COMMAND with a new control plane, which stops when the command ends.

    The server listens on a free port of 127.0.0.1 and stores its data in a temporary directory. When the server is
    ready, the command starts with a KUBECONFIG for this server. `ctrlmgr get`, `events` and `why` also read the log of
    this server. The exit code is that of the command. Use environment variables (CTRLMGR_…) or --settings to change
    other settings of the server.

    \b
    ctrlmgr exec -- pytest -q
    ctrlmgr exec --nodes 3 --app shop:app --keep -- pytest -q
    ctrlmgr exec --nodes 2 -- sh -c 'kubectl apply -f shop.yaml && kubectl rollout status deployment/shop'
    """
    if not shutil.which(command[0]):
        is_file = os.path.sep in command[0] and Path(command[0]).exists()
        click.echo(f"error: {command[0]}: {'not executable' if is_file else 'command not found'}", err=True)
        return _CANNOT_RUN if is_file else _NOT_FOUND
    folder = Path(tempfile.mkdtemp(prefix="ctrlmgr-exec-"))
    code = 1
    try:
        code = _with_server(folder, command)
    finally:
        if keep and code:
            _say_what_is_kept(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _with_server(folder: Path, command: Sequence[str]) -> int:
    """Run the command with a server.

    Return the command's exit code, or the exit code of the server if it cannot start.
    """
    from ctrlmgr.testing.served import NotServed, ServerProcess

    database = f"sqlite:///{folder / 'ctrlmgr.db'}"
    server = ServerProcess(folder, "--database", database, *given_flags(*_SETTINGS), directory=Path.cwd())
    with _Forwarding.installed() as forwarding:
        try:
            with server:
                return _run(command, server, folder, forwarding)
        except NotServed as error:
            click.echo(_last_words(error.output), err=True)
            return error.code
        except _Interrupted as error:
            return error.code


def _run(command: Sequence[str], server: ServerProcess, folder: Path, forwarding: _Forwarding) -> int:
    database = f"sqlite:///{folder / 'ctrlmgr.db'}"
    more = {variable("data_dir"): str(folder), variable("database.url"): database, "KUBECONFIG": str(server.kubeconfig)}
    code = forwarding.run(command, {**os.environ, **more})
    if (ended := server.exit_code) is not None:
        click.echo(f"note: the server ended before the command, with code {ended}:", err=True)
        click.echo(_last_words(server.output), err=True)
    return code


def _last_words(output: str) -> str:
    """Return the server's final error line; if the server printed no error, return the last lines of its output."""
    lines = output.rstrip().splitlines()
    return lines[-1] if lines and lines[-1].startswith("error: ") else "\n".join(lines[-_OUTPUT_LINES:])


def _say_what_is_kept(folder: Path) -> None:
    at = shlex.quote(str(folder))
    click.echo(f"kept {at}: the log (ctrlmgr.db) and the server's output (output.log)", err=True)
    click.echo(f"  print its events   ctrlmgr events --data-dir {at}", err=True)
    click.echo(f"  show its objects   ctrlmgr get all -A --data-dir {at}", err=True)
    click.echo(f"  serve it again     ctrlmgr serve --data-dir {at}", err=True)


class _Interrupted(Exception):
    """Raised if a signal ended this process before the command was started."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = _BY_SIGNAL + number


class _Forwarding:
    """Forwards signals to the command; before the command has started, a signal ends this process."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._is_starting = False
        self._early: list[int] = []
        """The signals that this process receives while it starts the command."""

    @classmethod
    @contextmanager
    def installed(cls) -> Iterator[_Forwarding]:
        """Handle signals until the end of the context."""
        forwarding = cls()
        before = {number: signal.signal(number, forwarding._take) for number in _SIGNALS}
        try:
            yield forwarding
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def run(self, command: Sequence[str], environment: dict[str, str]) -> int:
        """Run the command and return its exit code as a shell reports it."""
        self._is_starting = True
        try:
            self._child = subprocess.Popen(command, env=environment)
        except OSError as error:
            click.echo(f"error: {command[0]}: {error.strerror}", err=True)
            return _CANNOT_RUN
        for number in self._early:
            self._child.send_signal(number)
        code = self._child.wait()
        return _BY_SIGNAL - code if code < 0 else code

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._child is not None:
            # if this process is in the foreground, the terminal also sends Ctrl-C to the command
            if number != signal.SIGINT or not _is_in_foreground():
                self._child.send_signal(number)
        elif self._is_starting:
            self._early.append(number)
        else:
            raise _Interrupted(number)


def _is_in_foreground() -> bool:
    """Return whether the terminal sends Ctrl-C to the process group of this process."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False

"""The `ctrlmgr` command: the only package that prints, reads the command line and sets the exit code.

Guarantees:
- Exit codes are listed in `ExitCode`; the code 130 means that the user pressed Ctrl-C. The code 141 means that the
  program that reads the output (`| head`) has ended.
- An error is printed as one line, `error: …`, on stderr; the line says what to do. A traceback in the output is always
  a bug.
- The command starts fast, because it imports the module of a subcommand only when the subcommand is used. The command
  imports SQLAlchemy and other large packages only when a subcommand runs.
"""

from __future__ import annotations

import enum
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ctrlmgr import __version__
from ctrlmgr.errors import CtrlmgrError, LogUnavailable, OutcomeUnknown, RecordingError, SchemaOutdated, SettingsError

COMMANDS: Mapping[str, str] = {
    "serve": "serve",
    "exec": "exec_",
    "wait": "wait",
    "cluster": "cluster",
    "run": "operators.run",
    "crd": "operators.crd",
    "rbac": "operators.rbac",
    "node-config": "nodes.node_config",
    "new": "operators.new",
    "trial": "operators.trial",
    "record": "recordings.record",
    "import": "recordings.import_",
    "replay": "recordings.replay",
    "play": "recordings.play",
    "events": "inspect.events",
    "get": "inspect.get",
    "history": "inspect.history",
    "diff": "inspect.diff",
    "why": "inspect.why",
    "failures": "inspect.failures",
    "blame": "inspect.blame",
    "rollout": "inspect.rollout",
    "ui": "inspect.ui",
    "sql": "inspect.sql",
    "verify": "maintenance.verify",
    "compact": "maintenance.compact",
    "purge": "maintenance.purge",
    "encryption": "maintenance.encryption",
    "repair": "maintenance.repair",
    "migrate": "maintenance.migrate",
    "restore": "maintenance.restore",
    "fork": "maintenance.fork",
    "copy": "maintenance.copy",
    "backup": "maintenance.backup",
    "settings": "settings",
    "version": "version",
}
"""The module of each command, in the order in which the help lists the commands."""


_MEANT: Mapping[str, str] = dict.fromkeys(("--host", "--bind"), "--listen HOST:PORT")
"""For each flag of Kubernetes' servers that ctrlmgr lacks, the option of ctrlmgr that replaces the flag."""


class ExitCode(enum.IntEnum):
    """The exit codes of the process `ctrlmgr`."""

    OK = 0
    FAILED = 1
    """The command failed, or it searched for problems and found at least one."""
    USAGE = 2
    """A flag, an environment variable or the settings file is wrong."""
    DATABASE = 3
    """The database cannot be used: it is unreachable, does not exist, or has the schema of another version."""
    RECORDING = 4
    """The recording cannot be used: it does not exist, is damaged, or is out of order."""
    INTERRUPTED = 130
    """The exit code of a command that the user interrupted with Ctrl-C."""
    PIPE_CLOSED = 141
    """The program that reads the output (`| head`) has ended."""


class _Commands(click.Group):
    """A group of commands; the module of a command is imported when the command is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help instead of alphabetically."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in COMMANDS:
            return None
        path = COMMANDS[cmd_name]
        module = importlib.import_module(f"ctrlmgr.cli.{path}")
        return getattr(module, path.rpartition(".")[2])  # type: ignore[no-any-return]  # each module has a command of its name

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if the program that reads the output has ended, exit without a message."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout again at exit. stdout is redirected to /dev/null, so that this flush raises no
            # error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.PIPE_CLOSED
        return result


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="ctrlmgr %(version)s")
def ctrlmgr() -> None:
    """A Kubernetes control plane that stores all state in an event log.

    \b
    Start a control plane on SQLite:       ctrlmgr serve
    Run tests with a new control plane:    ctrlmgr exec -- pytest
    Replay a recording and compare:        ctrlmgr replay recording.jsonl.gz
    Serve a recording to kubectl:          ctrlmgr serve --recording recording.jsonl.gz
    Print the events of the log:           ctrlmgr events --resource endpoints
    Show earlier states, and causes:       ctrlmgr get pods --at 10m; ctrlmgr why endpoints web
    Show failing reconciles:               ctrlmgr failures

    Exit codes: 0 success, 1 failure or a problem was found, 2 wrong usage or settings, 3 database unusable,
    4 recording unusable, 130 interrupted.
    """


def main() -> None:
    """Run the command line of this process and exit. Files that the process creates are private to the user."""
    os.umask(0o077)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. The function prints all errors of the command."""
    try:
        return int(ctrlmgr.main(list(arguments), prog_name="ctrlmgr", standalone_mode=False) or ExitCode.OK)
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except click.UsageError as error:
        hint = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        message = error.format_message()
        if isinstance(error, click.NoSuchOption) and error.option_name in _MEANT:
            message = (
                f"no such option {error.option_name}; {_MEANT[error.option_name]} is the address on "
                "which `serve` listens"
            )
        return _complain(message + hint, ExitCode.USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), ExitCode.FAILED)
    except CtrlmgrError as error:
        return _complain(str(error), exit_code_of(error))
    except OSError as error:  # for example, a directory cannot be created or the disk is full
        return _complain(
            ": ".join(str(part) for part in (error.filename, error.strerror or error) if part), ExitCode.FAILED
        )


def exit_code_of(error: CtrlmgrError) -> ExitCode:
    """Return the exit code of the process for an error."""
    match error:
        case SettingsError():
            return ExitCode.USAGE
        case LogUnavailable() | SchemaOutdated() | OutcomeUnknown():
            return ExitCode.DATABASE
        case RecordingError():
            return ExitCode.RECORDING
        case _:
            return ExitCode.FAILED


def _complain(message: str, code: ExitCode) -> ExitCode:
    from ctrlmgr.logging import escape, mask

    line = " ".join(message.split())  # error messages of database drivers have several lines
    click.echo(f"error: {escape(mask(line))}", err=True)
    return code

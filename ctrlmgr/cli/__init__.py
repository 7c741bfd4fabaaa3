"""The `ctrlmgr` command: the only place that prints, reads the command line or decides how the process ends.

Guarantees:
- Exit codes mean something: see `ExitCode`; 130 after Ctrl-C, 141 when the reader of a pipe has gone.
- What goes wrong is one line, `error: …`, on stderr, saying what to do; a traceback is always a bug of ours.
- Starting is quick: a command's module is imported when it is asked for, and imports SQLAlchemy and the like only
  when it runs.
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
    "run": "operators.run",
    "crd": "operators.crd",
    "new": "operators.new",
    "record": "recordings.record",
    "import": "recordings.import_",
    "replay": "recordings.replay",
    "play": "recordings.play",
    "events": "looking.events",
    "get": "looking.get",
    "history": "looking.history",
    "diff": "looking.diff",
    "why": "looking.why",
    "failures": "looking.failures",
    "blame": "looking.blame",
    "rollout": "looking.rollout",
    "ui": "looking.ui",
    "sql": "looking.sql",
    "verify": "upkeep.verify",
    "compact": "upkeep.compact",
    "purge": "upkeep.purge",
    "repair": "upkeep.repair",
    "migrate": "upkeep.migrate",
    "restore": "upkeep.restore",
    "fork": "upkeep.fork",
    "settings": "settings",
    "version": "version",
}
"""The commands in the order in which a user meets them, and the module of each."""


_MEANT: Mapping[str, str] = dict.fromkeys(("--port", "--host", "--bind", "--secure-port"), "--listen HOST:PORT")
"""What to write in place of a flag that other servers have."""


class ExitCode(enum.IntEnum):
    """What the process tells the one who started it."""

    OK = 0
    FAILED = 1
    """It failed, or it looked for problems and found one."""
    USAGE = 2
    """A flag, a variable or the settings file is wrong."""
    DATABASE = 3
    """The database cannot be used: unreachable, not there yet, or of another version's schema."""
    RECORDING = 4
    """The recording cannot be used: not there, damaged, or out of order."""
    INTERRUPTED = 130
    """Ctrl-C."""
    PIPE_CLOSED = 141
    """The reader of the output (`| head`) has gone."""


class _Commands(click.Group):
    """A group whose commands live in modules of the same name, imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which one meets them, not the alphabet's."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        path = COMMANDS[cmd_name]
        module = importlib.import_module(f"ctrlmgr.cli.{path}")
        return getattr(module, path.rpartition(".")[2])  # type: ignore[no-any-return]  # each module has a command of its name

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that went away ends it in silence."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more at exit: let that go nowhere instead of complaining.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitCode.PIPE_CLOSED
        return result


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="ctrlmgr %(version)s")
def ctrlmgr() -> None:
    """A Kubernetes control plane whose only memory is an event log.

    \b
    Start it here, on SQLite:           ctrlmgr serve
    Run tests with one of their own:    ctrlmgr exec -- pytest
    Replay a real cluster's recording:  ctrlmgr replay recording.jsonl.gz
    Play it to kubectl and operators:   ctrlmgr serve --recording recording.jsonl.gz
    Look at what happened:              ctrlmgr events --resource endpoints
    Go back in time, and ask why:       ctrlmgr get pods --at 10m; ctrlmgr why endpoints web
    See which controllers fail:         ctrlmgr failures

    Exit codes: 0 fine, 1 failed or found a problem, 2 wrong usage or settings, 3 database unusable,
    4 recording unusable, 130 interrupted.
    """


def main() -> None:
    """Run the command line of this process and exit; what it makes on disk is its user's alone."""
    os.umask(0o077)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; the one place where errors become words."""
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
            message = f"no such option {error.option_name}; {_MEANT[error.option_name]} says where `serve` listens"
        return _complain(message + hint, ExitCode.USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), ExitCode.FAILED)
    except CtrlmgrError as error:
        return _complain(str(error), exit_code_of(error))
    except OSError as error:  # a directory that cannot be made, a disk that is full
        return _complain(
            ": ".join(str(part) for part in (error.filename, error.strerror or error) if part), ExitCode.FAILED
        )


def exit_code_of(error: CtrlmgrError) -> ExitCode:
    """Say how the process ends when `error` reaches the top."""
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

    line = " ".join(message.split())  # drivers explain themselves over several lines
    click.echo(f"error: {escape(mask(line))}", err=True)
    return code

"""The options and the output of `ctrlmgr serve --recording`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctrlmgr.cli.options import Duration

if TYPE_CHECKING:
    from ctrlmgr.recording.playback.playback_control import State
    from ctrlmgr.serve.recording import PlayedApplication, Playing
    from ctrlmgr.settings import Loaded

_FILE = click.Path(dir_okay=False, path_type=Path)
_PRETEND = "pretend"
_OPTIONS = ("speed", "paused", "max_gap", "writes", "until_end")
_KEPT = ("server.listen", "server.advertise_address", "data_dir", "service.", "log.")
"""Settings that also affect a server that has neither a database nor controllers."""


def takes_recording(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--recording` and its related options to a command."""
    options = [
        click.option(
            "--recording", type=_FILE, metavar="FILE", help="Serve this recording, read-only, instead of a database."
        ),
        click.option(
            "--speed",
            type=float,
            metavar="X",
            help=("Play the recording X times as fast as it was recorded; by default 1."),
        ),
        click.option("--paused", is_flag=True, help="Start the recording paused; `ctrlmgr play resume` starts it."),
        click.option(
            "--max-gap",
            type=Duration(),
            metavar="DURATION",
            help="Shorten pauses in the recording, in which no event happens, to this duration (at speed 1).",
        ),
        click.option(
            "--writes",
            type=click.Choice(("refuse", _PRETEND)),
            help="The response to writes, which are never stored: refuse them, or pretend that they succeeded.",
        ),
        click.option("--until-end", is_flag=True, help="Stop the server at the end of the recording."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def playing(recording: Path | None, options: dict[str, Any]) -> Playing | None:
    """Return the recording to play and how to play it; None if the options name no recording.

    Raises `click.UsageError` if an option needs a recording but none is given, or if a flag has no effect on a
    recording.
    """
    given = [name for name in _OPTIONS if options[name]]
    if recording is None:
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} needs --recording")
        return None
    _refuse_settings()
    from ctrlmgr.serve.recording import Playing

    return Playing(
        recording,
        speed=1.0 if options["speed"] is None else options["speed"],
        paused=options["paused"],
        max_gap=options["max_gap"],
        pretend=options["writes"] == _PRETEND,
        until_end=options["until_end"],
    )


def _refuse_settings() -> None:
    """Raise `click.UsageError` if a flag sets a setting that has no effect on a recording."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = (parameter.name or "").removeprefix("flag_")
        is_setting = parameter.name != name and context.params.get(parameter.name or "") is not None
        if is_setting and not name.startswith(tuple(each.replace(".", "_") for each in _KEPT)):
            raise click.UsageError(
                f"{parameter.opts[0]} cannot be combined with --recording, which needs no database and no controllers"
            )


def run(loaded: Loaded, playing: Playing) -> None:
    """Serve a recording until a signal arrives or, if the options say so, until the end of the recording."""
    from ctrlmgr.serve.recording import serve_recording

    is_for_people = loaded.settings.log.format == "console"
    with _progress() as tell:

        def started(application: PlayedApplication) -> None:
            if is_for_people:
                _greet(application)
            if tell is not None:
                application.playback.on_move(tell)

        serve_recording(loaded.settings, playing, started=started)


def _greet(application: PlayedApplication) -> None:
    state = application.playback.state()
    click.echo(f"ctrlmgr serves the recording {state.recording} on {application.server.url}")
    click.echo(f"  use it             export KUBECONFIG={shlex.quote(str(application.kubeconfig))}")
    click.echo(f"  recorded           {state.begins_at} to {state.ends_at}, {state.events:,} events")
    click.echo("  print the position ctrlmgr play status")
    click.echo("  control it         ctrlmgr play pause | resume | step | seek +30s | speed 10")
    click.echo("  stop it with Ctrl-C")


@contextmanager
def _progress() -> Iterator[Callable[[State], None] | None]:
    """Show a progress line on stderr if stderr is a terminal; yields a function that updates the line."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading the recording …") as line:
        yield lambda state: line.update(words(state))


def words(state: State) -> str:
    """Return the position in a recording as one line of text."""
    how = "at its end" if state.ended else "paused" if state.paused else f"playing at {state.speed:g}x"
    return f"{how}: {state.time}, revision {state.revision}, {state.position:,} of {state.events:,} events"

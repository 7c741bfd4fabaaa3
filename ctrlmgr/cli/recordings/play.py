"""`ctrlmgr play`: controls the recording that `ctrlmgr serve --recording` plays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctrlmgr.cli.options import configure_logging, output_option, takes_settings
from ctrlmgr.cli.recordings.serve_recording import words

if TYPE_CHECKING:
    from ctrlmgr.recording.playback.controls import Controls
    from ctrlmgr.recording.playback.playback_control import State
    from ctrlmgr.recording.playback.pretended_writes import PretendedWrite
    from ctrlmgr.settings import Loaded

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(short_help="Control the recording that `ctrlmgr serve --recording` plays.")
@takes_settings("data_dir")
@click.option(
    "--kubeconfig",
    type=_FILE,
    metavar="FILE",
    help=("The kubeconfig of the server that plays the recording; by default the one that the server wrote."),
)
@click.pass_context
def play(context: click.Context, loaded: Loaded, kubeconfig: Path | None) -> None:
    """Control the recording that `ctrlmgr serve --recording` plays; each command prints the new position.

    \b
    ctrlmgr play status
    ctrlmgr play pause; ctrlmgr play step 10; ctrlmgr play resume
    ctrlmgr play seek 2026-01-02T03:04:05Z; ctrlmgr play seek +30s; ctrlmgr play seek start
    ctrlmgr play speed 10
    ctrlmgr play writes -o yaml
    """
    configure_logging(loaded.settings)
    context.obj = functools.partial(_controls, loaded, kubeconfig)


def _controls(loaded: Loaded, kubeconfig: Path | None) -> Controls:
    from ctrlmgr.recording.playback import controls
    from ctrlmgr.settings.kubeconfig import load

    return controls.Controls(load([kubeconfig or controls.kubeconfig(loaded.settings)]))


def _tells(command: Callable[..., State]) -> Callable[..., None]:
    """Return a command of `ctrlmgr play` with the option `-o`, which runs `control` and prints the result."""

    @output_option("text", "json")
    @functools.wraps(command)
    def wrapped(output: str, **arguments: Any) -> None:
        state = command(click.get_current_context().obj(), **arguments)
        if output == "json":
            import msgspec

            click.echo(msgspec.json.format(msgspec.json.encode(state), indent=2).decode())
        else:
            click.echo(words(state))

    return wrapped


@play.command(short_help="Print the position in the recording.")
@_tells
def status(controls: Controls) -> State:
    """Print the current position in the recording."""
    return controls.state()


@play.command(short_help="Pause the recording.")
@_tells
def pause(controls: Controls) -> State:
    """Pause the recording."""
    return controls.command("pause")


@play.command(short_help="Resume a paused recording.")
@_tells
def resume(controls: Controls) -> State:
    """Resume a paused recording."""
    return controls.command("resume")


@play.command(
    short_help="Move a number of events forward or back, and pause.", context_settings={"ignore_unknown_options": True}
)
@click.argument("events", type=int, default=1)
@_tells
def step(controls: Controls, events: int) -> State:
    """Move EVENTS events forward (1 by default), or backward if the number is negative, and pause."""
    return controls.command("step", events=str(events))


@play.command(
    short_help="Move to another position in the recording.", context_settings={"ignore_unknown_options": True}
)
@click.argument("place")
@_tells
def seek(controls: Controls, place: str) -> State:
    """Move to a PLACE: a revision, a time, `start`, `end`, or a distance such as `+30s` or `-1m30s`.

    A move back ends all watches with 410 (Expired), so that informers list again.
    """
    return controls.command("seek", to=place)


@play.command(short_help="Change the speed at which the recording is played.")
@click.argument("times", type=float)
@_tells
def speed(controls: Controls, times: float) -> State:
    """Set the speed of playing to TIMES times the speed at which the recording was made."""
    return controls.command("speed", times=repr(times))


@play.command(short_help="List the writes that the server accepted but did not store.")
@output_option("table", "json", "yaml")
@click.pass_obj
def writes(controls: Callable[[], Controls], output: str) -> None:
    """List the writes that clients sent, and that the server accepted but did not store (`serve --writes pretend`)."""
    found = controls().writes()
    if output == "table":
        _print_table(found)
        return
    import msgspec

    text = msgspec.json.encode(found)
    if output == "json":
        click.echo(msgspec.json.format(text, indent=2).decode())
    else:
        import yaml

        click.echo(yaml.safe_dump_all(msgspec.json.decode(text), sort_keys=False), nl=False)


def _print_table(found: list[PretendedWrite]) -> None:
    from ctrlmgr.cli.output import aligned_columns

    rows = [
        (
            write.number,
            write.recorded_time,
            write.at,
            write.verb,
            f"{write.resource} {'/'.join(filter(None, (write.namespace, write.name)))}",
            write.user,
        )
        for write in found
    ]
    for line in aligned_columns.lines(("NUMBER", "TIME", "REVISION", "VERB", "OBJECT", "USER"), rows):
        click.echo(line)

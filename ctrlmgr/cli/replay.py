"""`ctrlmgr replay`: a recording through our log, caches and controllers, compared at every checkpoint."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import configure_logging, output_option, takes_settings
from ctrlmgr.settings import Loaded, Settings

if TYPE_CHECKING:
    from ctrlmgr.eventlog import EventLog
    from ctrlmgr.recording.clock import ReplayClock
    from ctrlmgr.recording.replay import Progress

MEMORY = "memory:"


@click.command(short_help="Replay a real cluster's recording and compare.")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RECORDING")
@takes_settings("controllers.enabled", "log.level", "log.format")
@click.option(
    "--database",
    default=MEMORY,
    metavar="URL",
    help="The empty log to replay into, made if need be: sqlite:///FILE, postgresql://USER@HOST/NAME or memory:.",
)
@output_option("table", "json")
@click.option("--no-progress", is_flag=True, help="No progress bar, even on a terminal.")
def replay(loaded: Loaded, recording: Path, database: str, output: str, no_progress: bool) -> int:
    """Load what clients did in RECORDING into a log, run our controllers on it, and compare at every checkpoint.

    A recording is what `kubectl get --watch --output-watch-events -o json` prints, best with checkpoints; .gz is
    understood. What the recorded controllers wrote is not loaded: it is what ours must come to by themselves.

    \b
    ctrlmgr replay recording.jsonl.gz
    ctrlmgr replay recording.jsonl.gz --database sqlite:///replayed.db
    ctrlmgr replay recording.jsonl.gz -o json > report.json

    Exit codes beside the usual: 1 the results diverge, 4 the recording cannot be used (what stands above the fault
    is replayed nevertheless, and stays in --database).
    """
    from ctrlmgr.cli import ExitCode, report_output
    from ctrlmgr.errors import RecordingError
    from ctrlmgr.recording.builders import CONTROLLERS
    from ctrlmgr.recording.clock import ReplayClock
    from ctrlmgr.recording.format import RecordingReader
    from ctrlmgr.recording.replay import Replay
    from ctrlmgr.serve import enabled_controllers

    configure_logging(loaded.settings)
    controllers = {
        name: CONTROLLERS[name] for name in enabled_controllers(loaded.settings.controllers.enabled, CONTROLLERS)
    }
    clock = ReplayClock()
    fault: RecordingError | None = None
    with _opened(database, clock, loaded.settings) as log, _progress(recording, hidden=no_progress) as tell:
        run = Replay(log, clock, controllers=controllers)
        try:
            report = run.run(RecordingReader(recording), tell)
        except RecordingError as error:
            fault, report = error, run.report()
    report_output.write(report, output, fault)
    if fault:
        kept = f"{database} has it up to revision {report.revision}" if database != MEMORY and report.events else ""
        return report_output.complain(fault, report, kept)
    return ExitCode.FAILED if report.divergences else ExitCode.OK


@contextmanager
def _opened(url: str, clock: ReplayClock, settings: Settings) -> Iterator[EventLog]:
    from ctrlmgr.recording.stage import open_replay_log

    anchor = dataclasses.replace(settings, database=dataclasses.replace(settings.database, url=url)).anchor_path
    if anchor:
        anchor.parent.mkdir(parents=True, exist_ok=True)
    log = open_replay_log(url, clock, anchor=anchor)
    try:
        yield log
    finally:
        log.close()


@contextmanager
def _progress(recording: Path, *, hidden: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on stderr while the block runs, if that is a terminal; yields what to tell it with."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[line]:,} lines"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(recording.name, total=None, line=0)
        yield lambda at: bar.update(task, completed=at.position, total=at.size, line=at.line)

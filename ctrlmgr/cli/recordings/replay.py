"""`ctrlmgr replay`: replays a recording with ctrlmgr's controllers, and compares the results at every checkpoint."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli.options import configure_logging, output_option, takes_settings
from ctrlmgr.cli.signal_handling import Interrupted, stop_on_signal
from ctrlmgr.settings import Loaded, Settings

if TYPE_CHECKING:
    from ctrlmgr.eventlog import EventLog
    from ctrlmgr.framework.app_replays import Replayed
    from ctrlmgr.recording.twice import ReplayMaker
    from ctrlmgr.recording.version_comparison import Comparison
    from ctrlmgr.recording.virtual_clock import ReplayClock

MEMORY = "memory:"


@click.command(short_help="Replay a recording with ctrlmgr's controllers, and compare the results.")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RECORDING")
@takes_settings("controllers.enabled", "controllers.apps", "log.level", "log.format")
@click.option(
    "--database",
    default=MEMORY,
    metavar="URL",
    help=(
        "The log into which the recording is replayed, empty or new: sqlite:///FILE, postgresql://USER@HOST/NAME "
        "or memory:."
    ),
)
@click.option(
    "--against",
    metavar="URL",
    help="Also compare the results with this log, into which another version has replayed the same RECORDING.",
)
@click.option(
    "--every-write",
    is_flag=True,
    help="Compare each write, not only the state at checkpoints; the replay takes about three times as long.",
)
@output_option("table", "json", "yaml")
@click.option("--no-progress", is_flag=True, help="Do not show a progress bar.")
def replay(
    loaded: Loaded,
    recording: Path,
    database: str,
    against: str | None,
    every_write: bool,
    output: str,
    no_progress: bool,
) -> int:
    """Replay the clients' writes of RECORDING with ctrlmgr's controllers, and compare the results at every checkpoint.

    A recording has the format that `kubectl get --watch --output-watch-events -o json` prints, and may contain
    checkpoints; .gz files are decompressed. The writes of the recorded controllers are not replayed, because ctrlmgr's
    controllers must produce the same writes.

    \b
    ctrlmgr replay recording.jsonl.gz
    ctrlmgr replay recording.jsonl.gz --database sqlite:///replayed.db
    ctrlmgr replay recording.jsonl.gz --every-write
    ctrlmgr replay recording.jsonl.gz -o json > report.json
    ctrlmgr replay recording.jsonl.gz --app shop:app
    ctrlmgr replay recording.jsonl.gz --against sqlite:///replayed-by-another-version.db

    If --every-write is given, ctrlmgr's controllers act at the same points in time as the recorded controllers, and
    each recorded write must have a counterpart. If --every-write is not given, ctrlmgr's controllers may combine
    several writes between two checkpoints into one write. If --against is given, the report lists the controllers'
    writes that differ between the two versions of ctrlmgr.

    Additional exit codes: 1 if the results diverge (with --against: if the versions differ), 4 if the recording cannot
    be used; the events before the error are replayed, and stay in --database.
    """
    from ctrlmgr.cli import ExitCode
    from ctrlmgr.cli.output import replay_report
    from ctrlmgr.cli.output.progress import reading
    from ctrlmgr.cli.recordings.interruptible_reading import StoppableReader
    from ctrlmgr.errors import RecordingError
    from ctrlmgr.recording.twice import planned
    from ctrlmgr.recording.virtual_clock import ReplayClock

    configure_logging(loaded.settings)
    make = _maker(loaded.settings)
    clock = ReplayClock()
    fault: RecordingError | None = None
    with stop_on_signal() as stop:
        reader, plan, is_kept = StoppableReader(recording, stop), None, False
        try:
            if every_write:
                with reading(f"{recording.name}, first pass", hidden=no_progress) as tell:
                    plan = planned(make, reader, tell)
                reader = StoppableReader(recording, stop)
            with _opened(database, clock, loaded.settings) as log, reading(recording.name, hidden=no_progress) as tell:
                run, is_kept = make(log, clock, tracks=every_write, plan=plan), database != MEMORY
                try:
                    report = run.run(reader, tell)
                except RecordingError as error:
                    fault, report = error, run.report()
                compared = _compare(log, against) if against else None
        except Interrupted:
            click.echo(_where(recording, reader.line, database, kept=is_kept), err=True)
            return ExitCode.INTERRUPTED
    replay_report.write(report, output, fault, compared, not_replayed=_without_replay(loaded.settings))
    if fault:
        kept = f"and are in {database} up to revision {report.revision}" if database != MEMORY and report.events else ""
        return replay_report.complain(fault, report, kept)
    failed = bool(report.divergences) if compared is None else bool(compared.differences)
    return ExitCode.FAILED if failed else ExitCode.OK


def _maker(settings: Settings) -> ReplayMaker:
    """Return a function that creates replays with these settings; print the warnings about the settings."""
    from ctrlmgr.controllers import registry
    from ctrlmgr.recording.replayed_controllers import CONTROLLERS
    from ctrlmgr.recording.replayer import JUDGED, Replay

    chosen = registry.enabled(settings.controllers.enabled)
    for warning in chosen.warnings:
        click.echo(f"warning: {warning}", err=True)
    apps = replayed_apps(settings.controllers.apps)
    controllers = {each.name: CONTROLLERS[each.name] for each in chosen.descriptors if each.replays}
    controllers |= apps.builders
    judges = [each.name for each in chosen.descriptors if each.name in JUDGED]
    return partial(Replay, controllers=controllers, shares=apps.shares, judges=judges)


def _without_replay(settings: Settings) -> list[str]:
    """Return the names of the enabled controllers that a replay cannot run, in alphabetical order."""
    from ctrlmgr.controllers import registry
    from ctrlmgr.recording.replayer import JUDGED

    chosen = registry.enabled(settings.controllers.enabled).descriptors
    return sorted(each.name for each in chosen if not each.replays and each.name not in JUDGED)


def _where(recording: Path, line: int, database: str, *, kept: bool) -> str:
    """Return a message that says which revision the replay has reached.

    The replay cannot be continued, because no log contains the state of the controllers.
    """
    from ctrlmgr.logging import mask

    place = f"; the events before it are in {mask(database)}" if kept else ""
    into = "" if database == MEMORY else " --database URL-OF-AN-EMPTY-LOG"
    again = f"ctrlmgr replay {shlex.quote(str(recording))}{into}"
    return (
        f"stopped at line {line} of {recording.name}{place}; a replay cannot be continued, so start it again: {again}"
    )


def replayed_apps(names: Sequence[str]) -> Replayed:
    """Load apps for a replay; raises `SettingsError` if a replay cannot run an app."""
    from ctrlmgr.controllers import registry
    from ctrlmgr.framework.app_loading import load_apps
    from ctrlmgr.framework.app_replays import Replayed, replayed
    from ctrlmgr.framework.controller_building import check_names

    if not names:
        return Replayed({}, {})
    apps = load_apps(names)
    check_names(apps, registry.ALL)
    return replayed(apps)


def _compare(log: EventLog, url: str) -> Comparison:
    import random

    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog.opening import open_log_for_reading
    from ctrlmgr.recording.version_comparison import compare

    other = open_log_for_reading(url, clock=SystemClock(), random=random.SystemRandom())
    try:
        return compare(log, other)
    finally:
        other.close()


@contextmanager
def _opened(url: str, clock: ReplayClock, settings: Settings) -> Iterator[EventLog]:
    from ctrlmgr.recording.replay_stage import open_replay_log

    anchor = dataclasses.replace(settings, database=dataclasses.replace(settings.database, url=url)).anchor_path
    if anchor:
        anchor.parent.mkdir(parents=True, exist_ok=True)
    log = open_replay_log(url, clock, anchor=anchor)
    try:
        yield log
    finally:
        log.close()

"""`ctrlmgr import`: imports a recording into a log, at the recorded revisions."""

from __future__ import annotations

import dataclasses
import random
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.options import LOG, configure_logging, takes_settings
from ctrlmgr.cli.signal_handling import Interrupted, stop_on_signal
from ctrlmgr.errors import RecordingError, SettingsError
from ctrlmgr.settings import Loaded, Settings

if TYPE_CHECKING:
    from ctrlmgr.eventlog.sqllog import SQLLog

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("import", short_help="Import a recording into a log.")
@click.argument("recordings", type=_FILE, nargs=-1, required=True, metavar="RECORDING…")
@takes_settings(*LOG)
@click.option(
    "--database",
    required=True,
    metavar="URL",
    help="The log into which the changes are imported: an empty database; it is created if it does not exist.",
)
@click.option(
    "--append",
    is_flag=True,
    help=("Import into a log that is not empty, for example to continue an interrupted import."),
)
@click.option("--no-progress", is_flag=True, help="Do not show a progress bar.")
def import_(loaded: Loaded, recordings: tuple[Path, ...], database: str, append: bool, no_progress: bool) -> int:
    """Import recordings into a log; each change gets its recorded revision.

    The import runs no controllers and compares no results; use `ctrlmgr replay` for that. All commands that read a log
    can read the imported log, and `ctrlmgr serve --at` serves it. Several files, such as the parts of a rotated
    recording, are imported in the given order. Changes that are in the log already are skipped.

    \b
    ctrlmgr import incident.jsonl.gz --database sqlite:///incident.db
    ctrlmgr why endpoints web -n shop --database sqlite:///incident.db
    ctrlmgr serve --at 2026-01-02T03:04:05Z --database sqlite:///incident.db

    Ctrl-C stops the import between two changes. After Ctrl-C the log is usable, and --append continues the import.

    Additional exit code: 4 if a recording cannot be used. After the error, the log contains the changes before it, and
    --append continues the import.
    """
    from ctrlmgr.cli.output.progress import reading
    from ctrlmgr.cli.recordings.interruptible_reading import StoppableReader
    from ctrlmgr.logging import mask
    from ctrlmgr.recording.importing import Importer

    configure_logging(loaded.settings)
    with stop_on_signal() as stop, _opened(database, loaded.settings) as log:
        head = log.head().revision
        if head and not append:
            raise SettingsError(
                f"{mask(database)} is not empty: it is at revision {head}; --append continues from there"
            )
        importer = Importer(log)
        imported = passed_over = 0
        try:
            for path in recordings:
                with reading(path.name, hidden=no_progress) as tell:
                    tally = importer.run(StoppableReader(path, stop), tell or (lambda reader: None))
                imported, passed_over = imported + tally.imported, passed_over + tally.passed_over
        except Interrupted:
            click.echo(_where(log.head().revision, recordings, mask(database)), err=True)
            return ExitCode.INTERRUPTED
        except RecordingError as error:
            if reached := log.head().revision:
                reason = f"{error.reason} (the log is at revision {reached})"
                raise RecordingError(error.file, error.line, reason) from error
            raise
        reached = log.head().revision
    had = f"; {passed_over:,} existing ones were skipped" if passed_over else ""
    click.echo(f"{imported:,} changes up to revision {reached} are in {mask(database)}{had}", err=True)
    return ExitCode.OK


def _where(revision: int, recordings: tuple[Path, ...], database: str) -> str:
    """Return a message that says which revision the import has reached, and how to continue the import."""
    if not revision:
        return "stopped: nothing has been imported yet"
    command = f"ctrlmgr import {shlex.join(map(str, recordings))} --database {shlex.quote(database)} --append"
    return f"stopped at revision {revision}; to continue: {command}"


@contextmanager
def _opened(url: str, settings: Settings) -> Iterator[SQLLog]:
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import open_log
    from ctrlmgr.eventlog.memory_log import MemoryEventLog

    anchor = dataclasses.replace(settings, database=dataclasses.replace(settings.database, url=url)).anchor_path
    if anchor:
        anchor.parent.mkdir(parents=True, exist_ok=True)
    log = open_log(url, clock=SystemClock(), random=random.SystemRandom(), migrate=True, anchor=anchor)
    if isinstance(log, MemoryEventLog):
        raise SettingsError("memory: a log in memory is lost when the command ends; choose a database with --database")
    try:
        yield log
    finally:
        log.close()

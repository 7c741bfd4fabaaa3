"""`ctrlmgr copy`: copies a log into another database, which may be of the other type."""

from __future__ import annotations

import random
from contextlib import suppress

import click

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.options import configure_logging, takes_settings
from ctrlmgr.cli.output.progress import counting
from ctrlmgr.cli.signal_handling import Interrupted, stop_on_signal
from ctrlmgr.errors import CopyUnfinished, LogCorrupt, SettingsError
from ctrlmgr.settings import Loaded


@click.command(short_help="Copy a log into another database, from SQLite to PostgreSQL or back.")
@takes_settings("data_dir")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--verify/--no-verify", default=True, help="Check the copy against its hash chain.", show_default=True)
def copy(loaded: Loaded, source: str, target: str, verify: bool) -> int:
    """Copy the log at the URL SOURCE into the database at the URL TARGET, and verify the copy.

    The copy is the same log: it has the same UUID, revisions, hashes and history. A server may use SOURCE during the
    copy. If the command is stopped, the same command continues; nothing else uses the unfinished copy. If a copy is
    finished, the same command adds newer events to the copy. To move a cluster, copy its log while the server runs,
    stop the server, run the same command again, and start the server with TARGET.

    \b
    ctrlmgr copy sqlite:///data/ctrlmgr.db postgresql://ctrlmgr@db.example.com/ctrlmgr
    ctrlmgr copy postgresql://ctrlmgr@db.example.com/ctrlmgr sqlite:///ctrlmgr.db
    """
    configure_logging(loaded.settings)
    return copy_log(source, target, verify=verify)


def copy_log(source: str, target: str, *, verify: bool) -> int:
    """Copy the log at one URL to another, print the result, and return the exit code.

    Raises the errors of `log_copy.copy`, and `LogCorrupt` if the copy is damaged.
    """
    from ctrlmgr.eventlog.copying import log_copy
    from ctrlmgr.eventlog.copying.copied_tables import merge_wal
    from ctrlmgr.inspection.database import open_database
    from ctrlmgr.logging import mask

    if source == target:
        raise SettingsError("SOURCE and TARGET are the same database")
    with open_database(source) as opened, stop_on_signal() as stop:
        total = opened.query("SELECT count(*) FROM event").rows[0][0]
        _create(target)
        copied = 0
        try:
            with counting("copying", total) as progress:

                def tell(events: int) -> None:
                    nonlocal copied
                    copied = events
                    progress(events)
                    if stop.is_set():
                        raise Interrupted

                made = log_copy.copy(lambda asked, given: opened.query(asked, given).rows, target, progress=tell)
        except Interrupted:
            click.echo(
                f"stopped: {copied:,} events are copied; the same command continues with the next event", err=True
            )
            return ExitCode.INTERRUPTED
    checked = _verify(target) if verify else "not verified"
    merge_wal(target)
    click.echo(f"copied {made.events:,} events to {mask(target)}, which is at revision {made.head.revision}; {checked}")
    return ExitCode.OK


def _create(target: str) -> None:
    """Create the tables at `target`, unless it holds an unfinished copy."""
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import migrate_log

    with suppress(CopyUnfinished):
        migrate_log(target, clock=SystemClock(), random=random.SystemRandom())


def _verify(target: str) -> str:
    """Check the copy against its hash chain; return the result in words."""
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import verify
    from ctrlmgr.eventlog.opening import open_log_for_reading

    log = open_log_for_reading(target, clock=SystemClock(), random=random.SystemRandom())
    try:
        with counting("verifying", log.head().revision) as progress:
            sound = verify(log, progress=progress)
    except LogCorrupt as error:
        raise LogCorrupt(f"the copy is damaged: {error}", revision=error.revision) from error
    finally:
        log.close()
    return f"verified {sound.events:,} events"

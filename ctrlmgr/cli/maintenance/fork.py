"""`ctrlmgr fork`: creates a new log from the state of another log at a revision."""

from __future__ import annotations

import random

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.options import takes_settings
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Loaded


@click.command(short_help="Create a new log that begins with the history of an existing log.")
@takes_settings("data_dir")
@arguments.at_option("The last revision that the fork contains")
@click.option(
    "--from", "source", metavar="URL", help=("The log that is forked; by default the log that the settings name.")
)
@click.option(
    "--database",
    required=True,
    metavar="URL",
    help="The database of the new log; it must be empty, and it is created if it does not exist.",
)
def fork(loaded: Loaded, at: str | None, source: str | None, database: str) -> None:
    """Create a new log that equals an existing log up to a revision, and continues independently after it.

    The fork has the same revisions, histories and causes, and a new UUID; `ctrlmgr verify` can check the whole fork.
    For example, you can serve yesterday's cluster from a fork and try other changes there. The existing log is not
    changed by the fork.

    \b
    ctrlmgr fork --at 1200 --database sqlite:///try.db
    ctrlmgr fork --from postgresql://db/ctrlmgr --at 2026-01-02T03:04:05Z --database sqlite:///try.db
    ctrlmgr serve --database sqlite:///try.db
    """
    from ctrlmgr.cli.options import configure_logging
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import migrate_log
    from ctrlmgr.eventlog.copying.log_fork import fork as make
    from ctrlmgr.inspection.database import open_database
    from ctrlmgr.logging import mask

    configure_logging(loaded.settings)
    source = source or loaded.settings.database_url
    if source == database:
        raise SettingsError("--database is the log to fork; choose another database for the fork")
    with open_database(source) as opened:
        revision = arguments.moment(opened, at)
        clock, source_of_uuids = SystemClock(), random.SystemRandom()
        migrate_log(database, clock=clock, random=source_of_uuids)
        head = make(
            lambda statement, given: opened.query(statement, given).rows,
            database,
            revision,
            clock=clock,
            random=source_of_uuids,
        )
        arguments.note_compacted(opened, revision)
    click.echo(f"{mask(database)} is a fork of {mask(source)} at revision {head.revision}, with UUID {head.uuid}")

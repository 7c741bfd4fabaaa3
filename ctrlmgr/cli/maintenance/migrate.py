"""`ctrlmgr migrate`: updates the schema of a database."""

from __future__ import annotations

import random

import click

from ctrlmgr.cli.options import DATABASE, configure_logging, takes_settings
from ctrlmgr.settings import Loaded


@click.command(short_help="Create the event log in a database, or update its schema.")
@takes_settings(*DATABASE)
def migrate(loaded: Loaded) -> None:
    """Create the event log in a database, or update its schema.

    The update is one transaction, so it is safe to run the command repeatedly or concurrently. `ctrlmgr serve` also
    creates or updates the schema when it starts.

    \b
    ctrlmgr migrate
    ctrlmgr migrate --database postgresql://ctrlmgr@db.example.com/ctrlmgr
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import migrate_log
    from ctrlmgr.eventlog.database_schema import LATEST
    from ctrlmgr.logging import mask

    configure_logging(loaded.settings)
    url = loaded.settings.database_url
    found = migrate_log(url, clock=SystemClock(), random=random.SystemRandom())
    if found is None:
        click.echo(f"created the event log in {mask(url)} (schema {LATEST})")
    elif found == LATEST:
        click.echo(f"{mask(url)} is up to date (schema {LATEST})")
    else:
        click.echo(f"migrated {mask(url)} from schema {found} to {LATEST}")

"""`ctrlmgr purge`: removes an object's contents from the log."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.options import DATABASE, opened_log, takes_settings
from ctrlmgr.settings import Loaded


@click.command(short_help="Remove the contents of an object from the log.")
@arguments.takes_object
@takes_settings(*DATABASE, "database.anchor", "database.anchor_key")
@click.option(
    "--superseded",
    is_flag=True,
    help=("Remove the superseded states of an object that still exists; its current state is kept."),
)
@click.confirmation_option(
    "--yes", help="Do not ask for confirmation.", prompt="Remove all its payloads? This cannot be undone."
)
def purge(loaded: Loaded, kind: str, name: str | None, namespace: str | None, superseded: bool) -> None:
    """Remove every payload of a deleted object, such as a Secret, from the log.

    The log keeps the object's name, the times and authors of its changes, and a digest of each payload, so `ctrlmgr
    verify` can still check the hash chain. The database is rewritten, because free pages would still contain the
    payloads. On PostgreSQL, only the owner of the tables can rewrite the database. A server may run at the same time,
    but it may keep the payloads in memory until it stops. Backups, standby servers and archives of the database are not
    changed.

    \b
    ctrlmgr purge secret db-password -n shop
    ctrlmgr purge secret/db-password -n shop --superseded --yes
    """
    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
    with opened_log(loaded) as log:
        done = log.purge(named.resource, key, superseded=superseded)
    click.echo(f'purged {done.events:,} events of {named.resource} "{key}", up to revision {done.revision}')

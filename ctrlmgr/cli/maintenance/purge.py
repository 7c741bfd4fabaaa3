"""`ctrlmgr purge`: removes an object's contents from the log."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.options import DATABASE, opened_log, takes_settings
from ctrlmgr.settings import Loaded


@click.command(short_help="Take what an object was out of the log.")
@arguments.takes_object
@takes_settings(*DATABASE, "database.anchor", "database.anchor_key")
@click.option("--superseded", is_flag=True, help="Of an object that exists, what it was before; its state stays.")
@click.confirmation_option("--yes", help="Do not ask.", prompt="Remove every payload of it? There is no way back.")
def purge(loaded: Loaded, kind: str, name: str | None, namespace: str | None, superseded: bool) -> None:
    """Remove every payload of a deleted object from the log: a Secret, above all.

    What stays is that there was an object of this name, when it changed and by whom, and a digest of each payload, so
    that `ctrlmgr verify` still proves the chain. The database is written anew, so that nothing is left in free pages;
    on PostgreSQL that takes the owner of the tables. A server may run meanwhile: what it has in its memory goes with
    its process. Backups, standbys and archives are yours to clean.

    \b
    ctrlmgr purge secret db-password -n shop
    ctrlmgr purge secret/db-password -n shop --superseded --yes
    """
    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
    with opened_log(loaded) as log:
        done = log.purge(named.resource, key, superseded=superseded)
    click.echo(f'purged {done.events:,} events of {named.resource} "{key}", the last of them {done.revision}')

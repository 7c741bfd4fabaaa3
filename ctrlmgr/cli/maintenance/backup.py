"""`ctrlmgr backup`: writes a backup of the log into one file while the server runs."""

from __future__ import annotations

from pathlib import Path

import click

from ctrlmgr.cli.maintenance.copy import copy_log
from ctrlmgr.cli.options import DATABASE, configure_logging, takes_settings
from ctrlmgr.settings import Loaded


@click.command(short_help="Write a backup of the log into a file while the server runs.")
@takes_settings(*DATABASE)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--verify/--no-verify", default=True, help="Check the backup against its hash chain.", show_default=True)
def backup(loaded: Loaded, file: Path, verify: bool) -> int:
    """Write a backup of the log into the SQLite file FILE, and verify it; the server need not stop.

    If FILE is an earlier backup of the same log, only newer events are added. If the command is interrupted, running it
    again continues the backup. To restore the log at its newest revision, copy the backup to an empty database and
    accept it with `ctrlmgr restore`. To restore the log at an earlier revision, fork the backup. A backup keeps what a
    later `ctrlmgr purge` removes from the log; purge the backup, too.

    \b
    ctrlmgr backup /mnt/backups/ctrlmgr.db
    ctrlmgr copy sqlite:////mnt/backups/ctrlmgr.db postgresql://ctrlmgr@db.example.com/ctrlmgr
    ctrlmgr fork --from sqlite:////mnt/backups/ctrlmgr.db --at 2026-01-02T03:04:05Z --database sqlite:///restored.db
    """
    configure_logging(loaded.settings)
    return copy_log(loaded.settings.database_url, f"sqlite:///{file}", verify=verify)

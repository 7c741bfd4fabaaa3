"""`ctrlmgr restore`: accepts a database that is older than its anchor."""

from __future__ import annotations

import click

from ctrlmgr.cli.options import DATABASE, opened_log, takes_settings
from ctrlmgr.settings import Loaded

_MARGIN = 1_000_000
"""Number of revisions that are skipped after the anchor, which is at most a second behind the log."""


@click.command(short_help="Go on with a database that lost its newest events.")
@takes_settings(*DATABASE, "database.anchor", "database.anchor_key")
@click.option(
    "--above", type=click.IntRange(min=0), metavar="REV", help="Newest revision the lost history can have used."
)
@click.option("--reason", default="restored from a backup", help="Why, for the log's own record.", show_default=True)
@click.confirmation_option(
    "--yes", help="Do not ask.", prompt="Accept this database as the log, and what is missing as lost?"
)
def restore(loaded: Loaded, above: int | None, reason: str) -> None:
    """Accept a database that is older than its anchor as a new incarnation of the log.

    A database restored from a backup lacks its newest events, and their revisions must never be given to other
    events: clients may have seen them. So the log goes on far above, under a new UUID, and every reader lists
    again. By default the anchor says where; without one, give --above.

    \b
    ctrlmgr restore --yes
    ctrlmgr restore --above 250000 --reason "disk of db-1 lost"
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog.anchor import Anchor
    from ctrlmgr.eventlog.sealing import Sealing

    path = loaded.settings.anchor_path
    key = loaded.settings.anchor_key_path
    sealing = Sealing(key) if key else None
    known = Anchor(path, SystemClock(), sealing).read() if path else None
    if above is None:
        if known is None:
            raise click.UsageError("there is no anchor to tell how far the log had come; give --above REV")
        above = known.revision + _MARGIN
    # The log is opened with another anchor than the one it contradicts; the new one replaces it at the end.
    beside = path.with_name(f"{path.name}.restored") if path else None
    with opened_log(loaded, anchor=beside) as log:
        head = log.begin_epoch(reason, above=above)
    if path and beside:
        beside.replace(path)
    click.echo(f"the log goes on above revision {head.revision} as {head.uuid}")

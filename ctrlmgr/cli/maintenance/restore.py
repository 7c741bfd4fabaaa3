"""`ctrlmgr restore`: accepts a database that is older than its anchor, for example after a restored backup."""

from __future__ import annotations

import click

from ctrlmgr.cli.options import DATABASE, opened_log, takes_settings
from ctrlmgr.settings import Loaded

_MARGIN = 1_000_000
"""The number of revisions that the restored log skips after the anchor's revision. Revisions are skipped because the
anchor may be a second older than the log.
"""


@click.command(short_help="Accept a database that has lost its newest events.")
@takes_settings(*DATABASE, "database.anchor", "database.anchor_key")
@click.option(
    "--above", type=click.IntRange(min=0), metavar="REV", help="The newest revision that a lost event can have had."
)
@click.option(
    "--reason",
    default="restored from a backup",
    help="The reason for the restore, which is stored in the log.",
    show_default=True,
)
@click.confirmation_option(
    "--yes", help="Do not ask for confirmation.", prompt="Accept this database, without the missing events?"
)
def restore(loaded: Loaded, above: int | None, reason: str) -> None:
    """Accept a database that is older than its anchor as a new incarnation of the log.

    A database that was restored from a backup lacks its newest events. Clients may have seen the revisions of these
    events, so the log must not use them again. Therefore the log continues with much higher revisions and a new UUID,
    and all clients that watch must list again. The anchor contains the newest revision; if there is no anchor, use the
    option --above.

    \b
    ctrlmgr restore --yes
    ctrlmgr restore --above 250000 --reason "disk of db-1 lost"
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog.anchor import Anchor
    from ctrlmgr.eventlog.anchor_signing import Sealing

    path = loaded.settings.anchor_path
    key = loaded.settings.anchor_key_path
    sealing = Sealing(key) if key else None
    known = Anchor(path, SystemClock(), sealing).read() if path else None
    if above is None:
        if known is None:
            raise click.UsageError("there is no anchor with the newest revision of the log; give --above REV")
        above = known.revision + _MARGIN
    # The log is opened with a new anchor, because the log contradicts the old anchor. At the end, the new anchor
    # replaces the old anchor.
    beside = path.with_name(f"{path.name}.restored") if path else None
    with opened_log(loaded, anchor=beside) as log:
        head = log.begin_epoch(reason, above=above)
    if path and beside:
        beside.replace(path)
    click.echo(f"the log continues above revision {head.revision} with UUID {head.uuid}")

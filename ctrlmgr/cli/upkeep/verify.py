"""`ctrlmgr verify`: whether the log is still what was written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.options import DATABASE, opened_log, output_option, takes_settings
from ctrlmgr.errors import LogCorrupt, LogRolledBack
from ctrlmgr.settings import Loaded


@click.command(short_help="Check the log against its hash chain and its anchor.")
@takes_settings(*DATABASE, "database.anchor")
@output_option("text", "json")
def verify(loaded: Loaded, output: str) -> int:
    """Check every event of the log against its hash chain, and its end against the anchor.

    The chain shows a changed, missing, added or reordered event; the anchor, a small file outside the database,
    shows that the newest events are gone. Exit code 1 and the first damaged revision when something is wrong.

    \b
    ctrlmgr verify
    ctrlmgr verify --database sqlite:///copy.db --anchor /mnt/elsewhere/ctrlmgr.anchor
    """
    from ctrlmgr import eventlog

    try:
        with opened_log(loaded) as log, _progress(log.head().revision) as progress:
            sound = eventlog.verify(log, progress=progress)
    except (LogCorrupt, LogRolledBack) as error:
        return _report_damage(error, output)
    if output == "json":
        head = {"uuid": sound.head.uuid, "revision": sound.head.revision, "hash": sound.head.hash.hex()}
        click.echo(json.dumps({"ok": True, "events": sound.events, "purged": sound.purged, "head": head}))
    else:
        purged = f" ({sound.purged:,} purged)" if sound.purged else ""
        click.echo(f"ok: {sound.events:,} events{purged}, head {sound.head.revision}, hash {sound.head.hash.hex()}")
    return ExitCode.OK


def _report_damage(error: LogCorrupt | LogRolledBack, output: str) -> int:
    revision = error.revision if isinstance(error, LogCorrupt) else None
    if output == "json":
        click.echo(json.dumps({"ok": False, "revision": revision, "reason": str(error)}))
    else:
        click.echo(f"DAMAGED: {error}")
    return ExitCode.FAILED


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr if somebody looks at it; yields what takes the number of events checked."""
    if not sys.stderr.isatty():
        yield lambda events: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("verifying", total=total)
        yield lambda events: bar.update(task, completed=events)

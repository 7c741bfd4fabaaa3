"""`ctrlmgr verify`: checks whether the log is unchanged.

Guarantees: the command changes neither the log nor an anchor, because both may be the only evidence of tampering.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import click

from ctrlmgr.cli import ExitCode
from ctrlmgr.cli.options import DATABASE, opened_for_reading, output_option, takes_settings
from ctrlmgr.cli.output.progress import counting
from ctrlmgr.cli.signal_handling import Interrupted, stop_on_signal
from ctrlmgr.errors import LogCorrupt, LogRolledBack, SettingsError
from ctrlmgr.settings import Loaded, Settings

if TYPE_CHECKING:
    from ctrlmgr.eventlog.sqllog import SQLLog


@click.command(short_help="Check the log against its hash chain and its anchor.")
@takes_settings(*DATABASE, "database.anchor", "database.anchor_key")
@output_option("text", "json")
def verify(loaded: Loaded, output: str) -> int:
    """Check every event of the log against its hash chain, and compare the log with its anchor.

    The hash chain detects changed, missing, added and reordered events. The anchor, a small file outside the database,
    detects that the newest events are missing, or that the whole chain was replaced. The file of --anchor may contain
    many anchors, one per line; the log is compared with each anchor. The key in --anchor-key verifies the signatures of
    the anchors; its public half is enough. If the log is damaged, the command prints the first damaged revision and
    exits with code 1.

    \b
    ctrlmgr verify
    ctrlmgr verify --database sqlite:///copy.db --anchor /mnt/elsewhere/anchors --anchor-key anchor.pub
    """
    from ctrlmgr import eventlog

    checked = 0
    try:
        with (
            stop_on_signal() as stop,
            opened_for_reading(loaded) as log,
            counting("verifying", log.head().revision) as progress,
        ):

            def tell(events: int) -> None:
                nonlocal checked
                checked = events
                progress(events)
                if stop.is_set():
                    raise Interrupted

            sound = eventlog.verify(log, progress=tell)
            held = _hold(log, loaded.settings)
    except Interrupted:
        click.echo(
            f"stopped: the first {checked:,} events are intact; the next `ctrlmgr verify` starts again from the "
            "first event",
            err=True,
        )
        return ExitCode.INTERRUPTED
    except (LogCorrupt, LogRolledBack) as error:
        return _report_damage(error, output)
    if output == "json":
        head = {"uuid": sound.head.uuid, "revision": sound.head.revision, "hash": sound.head.hash.hex()}
        counted = {"events": sound.events, "purged": sound.purged, **held._asdict()}
        click.echo(json.dumps({"ok": True, **counted, "head": head}))
    else:
        purged = f" ({sound.purged:,} purged)" if sound.purged else ""
        click.echo(f"ok: {sound.events:,} events{purged}, head {sound.head.revision}, hash {sound.head.hash.hex()}")
        click.echo(_about_anchors(held))
    return ExitCode.OK


class _AnchorCheck(NamedTuple):
    """The result of checking a log against anchors: their number, and the fingerprint of the key that signed them."""

    anchors: int
    key: str = ""


def _hold(log: SQLLog, settings: Settings) -> _AnchorCheck:
    """Check a log against its anchors; raises `LogCorrupt` or `LogRolledBack` if the log contradicts them."""
    from ctrlmgr.eventlog.anchor import check, parse
    from ctrlmgr.eventlog.anchor_signing import fingerprint, read_public_key

    path, key = settings.anchor_path, settings.anchor_key_path
    if path is None or not path.exists():
        if settings.database.anchor:
            raise SettingsError(f"database.anchor: there is no file {path}")
        return _AnchorCheck(0)
    public = read_public_key(key) if key and (settings.database.anchor_key or key.exists()) else ""
    head, lines = log.head(), [line for line in path.read_bytes().splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        source = str(path) if len(lines) == 1 else f"{path}, line {number},"
        anchored = parse(line, path)
        if public and not anchored.is_signed_by(public):
            raise LogCorrupt(f"{source} is not signed with the key in {key}")
        check(anchored.head, head, log.hash_at, source)
    return _AnchorCheck(len(lines), fingerprint(public) if public else "")


def _about_anchors(held: _AnchorCheck) -> str:
    if not held.anchors:
        return "no anchor: missing events at the end cannot be detected"
    anchors = "1 anchor matches" if held.anchors == 1 else f"{held.anchors:,} anchors match"
    return f"{anchors}, {f'signed with key {held.key}' if held.key else 'signatures not checked: no key'}"


def _report_damage(error: LogCorrupt | LogRolledBack, output: str) -> int:
    revision = error.revision if isinstance(error, LogCorrupt) else None
    if output == "json":
        click.echo(json.dumps({"ok": False, "revision": revision, "reason": str(error)}))
    else:
        click.echo(f"DAMAGED: {error}")
    return ExitCode.FAILED

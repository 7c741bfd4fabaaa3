"""`ctrlmgr compact`: removes old events from the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from ctrlmgr import __version__
from ctrlmgr.api.resource import SECRETS, Resource, Revision
from ctrlmgr.cli.options import DATABASE, Duration, ResourceName, opened_log, takes_settings
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.eventlog.sqllog import SQLLog


class _Part(NamedTuple):
    """The events that a compaction removes: the events of one resource, or of all resources."""

    resource: Resource | None
    before: Revision
    keep: int

    @property
    def shown(self) -> str:
        return f"events of {self.resource or 'all resources'} superseded up to revision {self.before}"


@click.command(short_help="Remove superseded events from the log now.")
@takes_settings(*DATABASE)
@click.option(
    "--before",
    type=click.IntRange(min=1),
    metavar="REV",
    help="Remove events that were superseded at or before this revision.",
)
@click.option(
    "--older-than",
    type=Duration(),
    metavar="DURATION",
    help=("Remove events that were superseded longer ago than this duration."),
)
@click.option(
    "--resource", type=ResourceName(), metavar="RESOURCE", help=("Remove only events of this resource, such as pods.")
)
@click.option(
    "--keep", type=click.IntRange(min=1), default=1, metavar="N", help=("Keep the newest N events of each object.")
)
@click.option(
    "--api-only", is_flag=True, help=("Remove nothing, but let servers answer requests for older revisions with 410.")
)
@click.option("--dry-run", is_flag=True, help="Print the number of events to remove, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--shrink", is_flag=True, help=("After the removal, rewrite the database, which returns free space to the disk.")
)
def compact(
    loaded: Loaded,
    before: int | None,
    older_than: float | None,
    resource: Resource | None,
    keep: int,
    api_only: bool,
    dry_run: bool,
    yes: bool,
    shrink: bool,
) -> None:
    """Remove superseded events from the log, by the rules in the settings or by the options.

    The current state of every object is kept. If neither --before nor --older-than is given, the rules of
    [compaction.resources] apply, as in `ctrlmgr serve`. Removed events cannot be restored, so export the events that
    you may need first.

    New events reuse the free space in the database. --shrink returns that space to the disk. While --shrink runs, the
    command temporarily doubles the space that the database needs, and writers wait.

    If --api-only is given, the log keeps all events. Servers answer watches, continue tokens and exact lists of all
    earlier revisions with status 410, as after a compaction of etcd. Running servers send these 410 responses
    immediately.

    \b
    ctrlmgr compact --dry-run
    ctrlmgr compact --api-only
    ctrlmgr compact --older-than 1d --resource leases.coordination.k8s.io
    ctrlmgr compact --before 250000 --keep 5 --shrink
    """
    if before is not None and older_than is not None:
        raise click.UsageError("--before and --older-than exclude each other")
    if api_only:
        if before is not None or older_than is not None or resource is not None or keep != 1 or dry_run or shrink:
            raise click.UsageError("--api-only removes nothing, so the other options do not apply; leave them out")
        _compact_api(loaded)
        return
    by_the_rules = before is None and older_than is None
    if by_the_rules and (resource is not None or keep != 1):
        raise click.UsageError("--resource and --keep need --before or --older-than")
    if dry_run and (yes or shrink):
        raise click.UsageError("--dry-run cannot be combined with --yes or --shrink, because it removes nothing")
    with opened_log(loaded) as log:
        if by_the_rules:
            parts = [*_by_the_rules(loaded, log)]
        else:
            parts = [_Part(resource, _until(log, before, older_than), keep)]
        if not parts:
            click.echo("nothing to do: the rules of [compaction] keep all events")
        elif dry_run:
            for part in parts:
                click.echo(f"would remove {_expected(log, part):,} {part.shown}")
        else:
            _compact(log, parts, asks=not yes and sys.stdin.isatty(), shrinks=shrink)


def _compact_api(loaded: Loaded) -> None:
    from random import SystemRandom

    from ctrlmgr.authentication.user import API_SERVER
    from ctrlmgr.client import LogClient
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.controllers.compaction.api_compaction import compact_api
    from ctrlmgr.engine.generated_names import new_uid
    from ctrlmgr.eventlog import Author

    random = SystemRandom()
    author = Author(API_SERVER.name, f"ctrlmgr-compact/{__version__}")
    with opened_log(loaded) as log:
        client = LogClient(log, author=author, clock=SystemClock(), new_uid=lambda: new_uid(random))
        oldest = log.head().revision + 1  # the revision of the compaction itself; every revision before it is older
        compact_api(log, client, oldest)
    click.echo(f"the API answers 410 for revisions before {oldest}; the log has kept all events")


def _compact(log: SQLLog, parts: Sequence[_Part], *, asks: bool, shrinks: bool) -> None:
    if asks:
        expected = sum(_expected(log, part) for part in parts)
        shown = "; ".join(part.shown for part in parts)
        click.confirm(f"{expected:,} events will be removed permanently ({shown}). Continue?", abort=True)
    removed = 0
    for part in parts:
        forgot = log.compact(part.before, resource=part.resource, keep=part.keep) if part.before else 0
        click.echo(f"removed {forgot:,} {part.shown}")
        removed += forgot
    if shrinks:
        log.shrink()
        click.echo("the free space was returned to the disk")
    elif removed:
        click.echo("new events use the free space; --shrink returns it to the disk", err=True)


def _expected(log: SQLLog, part: _Part) -> int:
    return log.compactable(part.before, resource=part.resource, keep=part.keep)


def _until(log: SQLLog, before: Revision | None, older_than: float | None) -> Revision:
    if older_than is not None:
        return log.revision_at(_now() - int(older_than * 1_000_000))
    head = log.head().revision
    if before is None or before > head:
        raise click.UsageError(f"--before {before} is beyond the end of the log, revision {head}")
    return before


def _now() -> int:
    from ctrlmgr.clock import SystemClock

    return SystemClock().now()


def _by_the_rules(loaded: Loaded, log: SQLLog) -> Iterator[_Part]:
    """Yield the events that the periodic compaction of `ctrlmgr serve` would remove now."""
    from ctrlmgr.controllers.compaction.controller import newest_secret_to_forget, newest_to_compact

    rules = loaded.settings.compaction
    for name, rule in rules.resources.items():
        before = newest_to_compact(log, rule, rules, now=_now())
        yield _Part(Resource.parse(name), max(before, 0), rule.keep)
    if rules.secrets_for > 0 and str(SECRETS) not in rules.resources:
        secrets = newest_secret_to_forget(log, rules, now=_now())
        if secrets:
            yield _Part(SECRETS, secrets, 1)

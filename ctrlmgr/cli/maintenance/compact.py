"""`ctrlmgr compact`: removes old events now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from ctrlmgr.api.resource import SECRETS, Resource, Revision
from ctrlmgr.cli.options import DATABASE, Duration, ResourceName, opened_log, takes_settings
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.eventlog.sqllog import SQLLog


class _Part(NamedTuple):
    """The events to remove of a resource, or of all."""

    resource: Resource | None
    before: Revision
    keep: int

    @property
    def shown(self) -> str:
        return f"events of {self.resource or 'all resources'} superseded up to revision {self.before}"


@click.command(short_help="Forget superseded events now.")
@takes_settings(*DATABASE)
@click.option("--before", type=click.IntRange(min=1), metavar="REV", help="Forget what was superseded at or before it.")
@click.option("--older-than", type=Duration(), metavar="DURATION", help="Forget what was superseded longer ago.")
@click.option("--resource", type=ResourceName(), metavar="RESOURCE", help="Only this one, such as pods.")
@click.option("--keep", type=click.IntRange(min=1), default=1, metavar="N", help="Keep each object's newest N events.")
@click.option("--dry-run", is_flag=True, help="Say how many events would go, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--shrink", is_flag=True, help="Then give the room back to the disk: the database is rewritten.")
def compact(
    loaded: Loaded,
    before: int | None,
    older_than: float | None,
    resource: Resource | None,
    keep: int,
    dry_run: bool,
    yes: bool,
    shrink: bool,
) -> None:
    """Forget superseded events, by the settings' rules or as told. Every object's current state stays.

    Without --before or --older-than the rules of [compaction.resources] are applied, as `ctrlmgr serve` does
    every [compaction] every. There is no way back: export what you may need first.

    The room of what went is used for new events; --shrink gives it back to the disk, which takes as much room
    again meanwhile, and writers wait.

    \b
    ctrlmgr compact --dry-run
    ctrlmgr compact --older-than 1d --resource leases.coordination.k8s.io
    ctrlmgr compact --before 250000 --keep 5 --shrink
    """
    if before is not None and older_than is not None:
        raise click.UsageError("--before and --older-than say the same in two ways; give one of them")
    by_the_rules = before is None and older_than is None
    if by_the_rules and (resource is not None or keep != 1):
        raise click.UsageError("--resource and --keep need --before or --older-than")
    if dry_run and (yes or shrink):
        raise click.UsageError("--dry-run removes nothing: there is nothing to ask about, and no room to give back")
    with opened_log(loaded) as log:
        if by_the_rules:
            parts = [*_by_the_rules(loaded, log)]
        else:
            parts = [_Part(resource, _until(log, before, older_than), keep)]
        if not parts:
            click.echo("nothing to do: the rules of [compaction] let nothing go, so everything is kept")
        elif dry_run:
            for part in parts:
                click.echo(f"would forget {_expected(log, part):,} {part.shown}")
        else:
            _compact(log, parts, asks=not yes and sys.stdin.isatty(), shrinks=shrink)


def _compact(log: SQLLog, parts: Sequence[_Part], *, asks: bool, shrinks: bool) -> None:
    if asks:
        expected = sum(_expected(log, part) for part in parts)
        shown = "; ".join(part.shown for part in parts)
        click.confirm(f"{expected:,} events will be gone for good ({shown}). Go on?", abort=True)
    removed = 0
    for part in parts:
        forgot = log.compact(part.before, resource=part.resource, keep=part.keep) if part.before else 0
        click.echo(f"forgot {forgot:,} {part.shown}")
        removed += forgot
    if shrinks:
        log.shrink()
        click.echo("the room is given back to the disk")
    elif removed:
        click.echo("the room is used for new events; --shrink gives it back to the disk", err=True)


def _expected(log: SQLLog, part: _Part) -> int:
    return log.compactable(part.before, resource=part.resource, keep=part.keep)


def _until(log: SQLLog, before: Revision | None, older_than: float | None) -> Revision:
    if older_than is not None:
        return log.revision_at(_now() - int(older_than * 1_000_000))
    head = log.head().revision
    if before is None or before > head:
        raise click.UsageError(f"--before {before} lies ahead: the log ends at revision {head}")
    return before


def _now() -> int:
    from ctrlmgr.clock import SystemClock

    return SystemClock().now()


def _by_the_rules(loaded: Loaded, log: SQLLog) -> Iterator[_Part]:
    """Yield the parts that `serve` would compact now."""
    from ctrlmgr.controllers.compaction.controller import newest_secret_to_forget, newest_to_compact

    rules = loaded.settings.compaction
    for name, rule in rules.resources.items():
        before = newest_to_compact(log, rule, rules, now=_now())
        yield _Part(Resource.parse(name), max(before, 0), rule.keep)
    if rules.secrets_for > 0 and str(SECRETS) not in rules.resources:
        secrets = newest_secret_to_forget(log, rules, now=_now())
        if secrets:
            yield _Part(SECRETS, secrets, 1)

"""`ctrlmgr compact`: forget old events now."""

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

_ROOM = "the database keeps the room for what comes; `ctrlmgr compact --shrink` gives it back to the disk"


class _Step(NamedTuple):
    """What is to go of one resource, or of all."""

    resource: Resource | None
    before: Revision
    keep: int
    events: int

    def __str__(self) -> str:
        named = self.resource or "all resources"
        return f"{self.events:,} events of {named} superseded up to revision {self.before}"


@click.command(short_help="Forget superseded events now.")
@takes_settings(*DATABASE)
@click.option("--before", type=click.IntRange(min=1), metavar="REV", help="Forget what was superseded at or before it.")
@click.option("--older-than", type=Duration(), metavar="DURATION", help="Forget what was superseded longer ago.")
@click.option("--resource", type=ResourceName(), metavar="RESOURCE", help="Only this one, such as pods.")
@click.option("--keep", type=click.IntRange(min=1), default=1, metavar="N", help="Keep each object's newest N events.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--shrink", is_flag=True, help="Give the room back to the disk: the database is written anew.")
@click.option("--yes", is_flag=True, help="Do not ask, as is done on a terminal.")
def compact(
    loaded: Loaded,
    before: int | None,
    older_than: float | None,
    resource: Resource | None,
    keep: int,
    dry_run: bool,
    shrink: bool,
    yes: bool,
) -> None:
    """Forget superseded events, by the settings' rules or as told. Every object's current state stays.

    Without --before or --older-than the rules of [compaction.resources] are applied, as `ctrlmgr serve` does
    every [compaction] every. There is no way back: export what you may need first.

    What goes leaves room in the database, which what comes fills again. --shrink gives it back to the disk; meanwhile
    the database takes twice its room there, and on PostgreSQL nothing else can be done with it.

    \b
    ctrlmgr compact --dry-run
    ctrlmgr compact --older-than 1d --resource leases.coordination.k8s.io
    ctrlmgr compact --before 250000 --keep 5 --shrink
    """
    if before is not None and older_than is not None:
        raise click.UsageError("--before and --older-than say the same in two ways; give one of them")
    if dry_run and shrink:
        raise click.UsageError("--dry-run changes nothing, and --shrink does")
    by_rules = before is None and older_than is None
    if by_rules and (resource is not None or keep != 1):
        raise click.UsageError("--resource and --keep need --before or --older-than")
    with opened_log(loaded) as log:
        if by_rules:
            steps = list(_steps_by_rules(loaded, log))
        else:
            steps = [_step(log, resource, _revision(log, before, older_than), keep)]
        _take(log, steps, dry_run=dry_run, asks=not yes and sys.stdin.isatty())
        if by_rules and not _has_rules(loaded):
            click.echo("nothing to do: [compaction.resources] names no resource, so everything is kept")
        if shrink:
            log.give_back()
            click.echo("the database has been written anew", err=True)
        elif not dry_run and any(each.events for each in steps):
            click.echo(_ROOM, err=True)


def _take(log: SQLLog, steps: Sequence[_Step], *, dry_run: bool, asks: bool) -> None:
    """Do it, or only say what would be done; asks before anything goes."""
    if dry_run:
        for step in steps:
            click.echo(f"would forget {step}")
        return
    if asks and any(step.events for step in steps):
        for step in steps:
            click.echo(f"this forgets {step}", err=True)
        click.confirm("Go on? There is no way back.", abort=True, err=True)
    for step in steps:
        removed = log.compact(step.before, resource=step.resource, keep=step.keep) if step.before > 0 else 0
        click.echo(f"forgot {step._replace(events=removed)}")


def _step(log: SQLLog, resource: Resource | None, before: Revision, keep: int) -> _Step:
    count = log.superseded(before, resource=resource, keep=keep) if before > 0 else 0
    return _Step(resource, max(before, 0), keep, count)


def _revision(log: SQLLog, before: int | None, older_than: float | None) -> Revision:
    if older_than is not None:
        return log.revision_at(_now() - int(older_than * 1_000_000))
    head = log.head().revision
    if before is None or before > head:
        raise click.UsageError(f"--before {before} is in the future: the log is at revision {head}")
    return before


def _now() -> int:
    from ctrlmgr.clock import SystemClock

    return SystemClock().now()


def _has_rules(loaded: Loaded) -> bool:
    rules = loaded.settings.compaction
    return bool(rules.resources or rules.secrets_for > 0)


def _steps_by_rules(loaded: Loaded, log: SQLLog) -> Iterator[_Step]:
    from ctrlmgr.controllers.compaction.controller import newest_to_compact, secrets_to_compact

    rules = loaded.settings.compaction
    for name, rule in rules.resources.items():
        yield _step(log, Resource.parse(name), newest_to_compact(log, rule, rules, now=_now()), rule.keep)
    if rules.secrets_for > 0 and str(SECRETS) not in rules.resources:
        before = secrets_to_compact(log, rules, now=_now())
        if before:
            yield _step(log, SECRETS, before, 1)

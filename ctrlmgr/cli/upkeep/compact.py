"""`ctrlmgr compact`: forget old events now."""

from __future__ import annotations

import click

from ctrlmgr.api.resource import SECRETS, Resource
from ctrlmgr.cli.options import DATABASE, Duration, ResourceName, opened_log, takes_settings
from ctrlmgr.settings import Loaded


@click.command(short_help="Forget superseded events now.")
@takes_settings(*DATABASE)
@click.option("--before", type=click.IntRange(min=1), metavar="REV", help="Forget what was superseded at or before it.")
@click.option("--older-than", type=Duration(), metavar="DURATION", help="Forget what was superseded longer ago.")
@click.option("--resource", type=ResourceName(), metavar="RESOURCE", help="Only this one, such as pods.")
@click.option("--keep", type=click.IntRange(min=1), default=1, metavar="N", help="Keep each object's newest N events.")
def compact(loaded: Loaded, before: int | None, older_than: float | None, resource: Resource | None, keep: int) -> None:
    """Forget superseded events, by the settings' rules or as told. Every object's current state stays.

    Without --before or --older-than the rules of [compaction.resources] are applied, as `ctrlmgr serve` does
    every [compaction] every. There is no way back: export what you may need first.

    \b
    ctrlmgr compact
    ctrlmgr compact --older-than 1d --resource leases.coordination.k8s.io
    ctrlmgr compact --before 250000 --keep 5
    """
    if before is not None and older_than is not None:
        raise click.UsageError("--before and --older-than say the same in two ways; give one of them")
    if before is None and older_than is None:
        if resource is not None or keep != 1:
            raise click.UsageError("--resource and --keep need --before or --older-than")
        _by_the_rules(loaded)
        return
    with opened_log(loaded) as log:
        if older_than is not None:
            before = log.revision_at(_ago(older_than))
        removed = log.compact(before or 0, resource=resource, keep=keep)
    click.echo(f"forgot {removed:,} events of {resource or 'all resources'} superseded up to revision {before}")


def _ago(seconds: float) -> int:
    from ctrlmgr.clock import SystemClock

    return SystemClock().now() - int(seconds * 1_000_000)


def _by_the_rules(loaded: Loaded) -> None:
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.controllers.compaction.controller import compact_by_rule, forget_secrets

    rules = loaded.settings.compaction
    forgets_secrets = rules.secrets_for > 0 and str(SECRETS) not in rules.resources
    if not (rules.resources or forgets_secrets):
        click.echo("nothing to do: [compaction.resources] names no resource, so everything is kept")
        return
    with opened_log(loaded) as log:
        for name, rule in rules.resources.items():
            done = compact_by_rule(log, Resource.parse(name), rule, rules, now=SystemClock().now())
            click.echo(f"forgot {done.removed:,} events of {name} superseded up to revision {done.before}")
        if forgets_secrets and (done := forget_secrets(log, rules, now=SystemClock().now())).removed:
            click.echo(f"forgot {done.removed:,} events of {SECRETS} superseded up to revision {done.before}")

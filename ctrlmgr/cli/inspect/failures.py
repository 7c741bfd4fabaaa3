"""`ctrlmgr failures`: shows failing reconciles, with the time since which they fail, and their errors."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.settings import Loaded


@click.command(short_help="Show failing reconciles, with their errors and the time since when they fail.")
@takes_log
@click.option(
    "--all", "ended", is_flag=True, help=("Also show failures that have ended and that the log still contains.")
)
@arguments.at_option("Show the reconciles that failed at this moment")
@output_option("table", "wide", "json", "yaml")
def failures(loaded: Loaded, ended: bool, at: str | None, output: str) -> None:
    """Show the objects whose reconciles fail: controller, object, attempts, first failure, next retry, and error.

    Each failing object has one line with its newest error, regardless of the number of retries. Conflicts, and short
    periods in which the database is unavailable, do not count as failures. `-o wide` adds the tracebacks of the failed
    reconciles.

    \b
    ctrlmgr failures
    ctrlmgr failures -o wide
    ctrlmgr failures --at 10m
    """
    from ctrlmgr.cli.output import change_lines, failure_lines
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import failing_reconciles as inspected
    from ctrlmgr.inspection import moment_parser

    with arguments.opened(loaded) as database:
        moment = None if at is None else moment_parser.time_of(database, at, now=SystemClock().now())
        found = inspected.failures(database, at=moment, ended=ended)
        where = arguments.queried_log(loaded, database)
    if output in ("json", "yaml"):
        change_lines.write_document({"failures": inspected.as_json(found)}, output)
        return
    if not found:
        click.echo(f"no failures in {where}", err=True)
        return
    for line in failure_lines.with_tracebacks(found) if output == "wide" else failure_lines.table(found):
        click.echo(line)

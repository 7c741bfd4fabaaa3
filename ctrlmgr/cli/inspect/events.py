"""`ctrlmgr events`: prints events of the log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.inspect.remote_log import is_copy, shown_log, takes_log
from ctrlmgr.cli.options import ResourceName, opened_for_reading, opened_log, output_option
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Resource, Revision
    from ctrlmgr.eventlog import Event, EventLog

_PAGE = 500
_LOOK_UP = 1.0
"""The maximum number of seconds for which --follow waits for events in one call; Ctrl-C is handled between two calls.
"""


@click.command(short_help="Print the events of the log.")
@takes_log
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="REV", help=("Print only events after this revision.")
)
@click.option(
    "--since",
    metavar="REV|TIME",
    help="Print only events since this moment: a revision, a time, or an age such as 10m (ten minutes ago).",
    shell_complete=completion.moments,
)
@click.option(
    "--resource",
    type=ResourceName(),
    metavar="RESOURCE",
    help="Print only events of this resource, such as pods or leases.coordination.k8s.io.",
    shell_complete=completion.resources,
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Print only events of objects in this namespace.",
    shell_complete=completion.namespaces,
)
@click.option(
    "--name",
    metavar="NAME",
    help="Print only events of objects with this name.",
    shell_complete=completion.object_names,
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print at most N events.")
@click.option(
    "--tail",
    type=click.IntRange(min=1),
    metavar="N",
    help=("Print only the newest N events; with --follow, new events follow."),
)
@click.option("-f", "--follow", is_flag=True, help="After the existing events, print new events until Ctrl-C.")
@output_option("table", "wide", "json", "jsonl")
def events(
    loaded: Loaded,
    after: int,
    since: str | None,
    resource: Resource | None,
    namespace: str | None,
    name: str | None,
    limit: int | None,
    tail: int | None,
    follow: bool,
    output: str,
) -> None:
    """Print the events of the log, the newest last.

    The format `wide` adds the reconcile that wrote each event, and all revisions that triggered the reconcile. The
    format `jsonl` prints one JSON object per line, in the format of a recording that `ctrlmgr replay` reads.

    \b
    ctrlmgr events --resource endpoints --namespace default
    ctrlmgr events --after 1200 --follow -o wide
    ctrlmgr events --since 10m
    ctrlmgr events --tail 20 --follow
    ctrlmgr events -o jsonl > recording.jsonl
    """
    from ctrlmgr.cli.output import event_lines

    if follow and output == "json":
        raise click.UsageError("--follow does not work with -o json, which is one document; use -o jsonl")
    if follow and is_copy(loaded):
        raise click.UsageError(
            "--follow works only with --database; for a server, run the command repeatedly: each run copies only "
            "new events"
        )
    if limit and tail:
        raise click.UsageError(
            "--limit and --tail exclude each other: --limit selects the first events, --tail the last"
        )

    def is_wanted(event: Event) -> bool:
        return (namespace is None or event.object.namespace == namespace) and name in (None, event.object.name)

    opened = opened_for_reading if is_copy(loaded) else opened_log
    with opened(loaded) as log:
        after = max(after, _before(loaded, since)) if since else after
        if tail:
            after = _before_the_last(
                log, tail, after, lambda each: resource in (None, each.resource) and is_wanted(each)
            )
        found = filter(is_wanted, itertools.chain.from_iterable(_pages(log, after, resource, follow=follow)))
        first = list(itertools.islice(found, 1)) if not follow else []
        event_lines.write(itertools.islice(itertools.chain(first, found), limit), log, output)
        if not first and not follow:
            click.echo(f"no matching events in {shown_log(loaded)} ({log.head().revision:,} revisions)", err=True)


def _before(loaded: Loaded, since: str) -> Revision:
    """Return the revision before the point in time `since`."""
    from ctrlmgr.cli.inspect import arguments
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import moment_parser

    with arguments.opened(loaded) as database:
        return moment_parser.before(database, since, now=SystemClock().now())


def _before_the_last(log: EventLog, count: int, after: Revision, is_wanted: Callable[[Event], bool]) -> Revision:
    """Return the revision before the last `count` matching events; if there are fewer matching events, return `after`.

    The search reads backwards from the end in growing steps, because the log may be long.
    """
    until, step = log.head().revision, _PAGE
    while until > after:
        start = max(after, until - step)
        part = itertools.takewhile(lambda event: event.revision <= until, log.scan(start=start + 1))  # noqa: B023  # used at once
        found = [event.revision for event in part if is_wanted(event)]
        if len(found) >= count:
            return found[-count] - 1
        count, until, step = count - len(found), start, 2 * step
    return after


def _pages(log: EventLog, after: Revision, resource: Resource | None, *, follow: bool) -> Iterator[list[Event]]:
    """Yield the existing events, page by page; if `follow` is set, also yield new events.

    If the log was compacted, the command prints a note and the remaining events, because the remaining events are more
    useful than an error.
    """
    floor = log.floor(resource)
    if after < floor:
        click.echo(f"note: events up to revision {floor} have been compacted; the remaining ones follow", err=True)
        retained = (event for event in log.scan(start=after + 1) if resource in (None, event.resource))
        yield from _paged(itertools.takewhile(lambda event: event.revision <= floor, retained))
        after = floor
    while True:
        page = log.events_after(after, resource=resource, limit=_PAGE)
        if page:
            yield list(page)
            after = page[-1].revision
        elif follow:
            log.wait(max(after, log.head().revision), _LOOK_UP)
        else:
            return


def _paged(events: Iterator[Event]) -> Iterator[list[Event]]:
    while page := list(itertools.islice(events, _PAGE)):
        yield page

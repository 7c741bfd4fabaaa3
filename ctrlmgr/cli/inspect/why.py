"""`ctrlmgr why`: shows the causes and effects of a change."""

from __future__ import annotations

import shutil
import sys

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.settings import Loaded

_PROMPT = 2
"""Lines of the screen for the command and the next prompt."""
_FEWEST = 10
"""Minimum number of printed lines on a small screen."""


@click.command(short_help="Show why an object is as it is: the causes of a change.")
@arguments.takes_object
@takes_log
@arguments.at_option("Why it was as it was then")
@click.option("--effects", is_flag=True, help="The other way: what the change led to.")
@click.option("--depth", type=click.IntRange(1, 100), default=20, show_default=True, help="How far to follow.")
@click.option("--all", "whole", is_flag=True, help="Everything, also what is alike or was drawn before.")
@output_option("tree", "json", "yaml")
def why(
    loaded: Loaded,
    kind: str,
    name: str | None,
    namespace: str | None,
    at: str | None,
    effects: bool,
    depth: int,
    whole: bool,
    output: str,
) -> None:
    """Show what led to an object's newest change.

    That is the reconcile that made it, all the changes that this reconcile answered (a workqueue makes one reconcile
    of many; every one of them is in the tree), and what led to those; at the ends stand the requests that wrote what
    no reconcile did, if they were audited and are still kept. Changes that are alike are drawn as one; --all draws
    them all, and on a terminal everything that does not fit the screen. With --effects the tree goes the other way:
    which reconciles answered the change, and what they wrote.
    Of what was imported from another cluster no reconcile is known: there causes are inferred from what the recording
    holds, and each is marked as that, with what speaks for it.
    Of a pod that our scheduler has decided about it is told besides what became of each node: which filter refused
    it, or how it scored. If a controller fails for the object now, the last line shows its error (`ctrlmgr failures`).

    \b
    ctrlmgr why endpoints web -n shop
    ctrlmgr why pod/web-0 --at 1200 --effects
    """
    from ctrlmgr.api.resource import PODS
    from ctrlmgr.cli.output import change_lines, failure_lines, trees
    from ctrlmgr.inspection import causes, placement
    from ctrlmgr.inspection.failures import as_json, failures_of
    from ctrlmgr.inspection.requests import requests_if_kept

    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
        revision = causes.newest_event(database, named.resource, key, until=arguments.moment(database, at))
        if effects:
            tree = causes.effects(database, revision, depth=depth)
        else:
            with requests_if_kept(loaded.settings.data_path) as requests:
                tree = causes.why(database, revision, depth=depth, requests=requests)
        failing = failures_of(database, named, key) if at is None and not effects else []
        placed = None
        if named.resource == PODS and not effects and output == "tree":
            placed = placement.of(database, key, until=revision)
    if output != "tree":
        told = {"failures": as_json(failing)} if failing else {}
        change_lines.write_document({**causes.as_json(tree), **told}, output)
        return
    for line in _fitting([*(trees.effects(tree) if effects else trees.causes(tree, whole=whole))], whole=whole):
        click.echo(line)
    for line in placement.lines(placed) if placed is not None else ():
        click.echo(line)
    for failure in failing:
        click.echo(failure_lines.line(failure))


def _fitting(lines: list[str], *, whole: bool) -> list[str]:
    """Return the lines that fit on the terminal's screen, with the number of omitted ones; all lines elsewhere."""
    room = shutil.get_terminal_size().lines - _PROMPT
    if whole or not sys.stdout.isatty() or len(lines) <= room:
        return lines
    kept = max(room - 1, _FEWEST)
    return [*lines[:kept], f"… and {len(lines) - kept} lines more; --all shows them"]

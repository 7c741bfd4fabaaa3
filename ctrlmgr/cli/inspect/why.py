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
"""The number of screen lines that are reserved for the command and the next prompt."""
_FEWEST = 10
"""The minimum number of lines that are printed on a small screen."""


@click.command(short_help="Show the causes of an object's newest change.")
@arguments.takes_object
@takes_log
@arguments.at_option("Explain the change that was the newest at this moment")
@click.option(
    "--effects",
    is_flag=True,
    help=("Show the reconciles that the change triggered, and their writes, instead of its causes."),
)
@click.option(
    "--depth",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help=("Maximum number of levels in the tree of causes or effects."),
)
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help=("Draw similar and repeated changes in full, and do not cut the tree to the screen."),
)
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
    """Show the causes of an object's newest change, as a tree.

    The tree contains the reconcile that wrote the change, all changes that triggered this reconcile, and the causes of
    those changes in turn. A change by a user ends a branch of the tree; if the change's request was audited, the
    request is shown. Similar changes are drawn as one line, and the tree is cut to the height of the screen; --all
    draws everything. If --effects is given, the tree contains the reconciles that the change triggered, and their
    writes.

    Imported changes have no recorded reconciles. The causes of imported changes are inferred from the recording, and
    each cause is marked as inferred, with a reason.

    For a pod that ctrlmgr's scheduler has handled, the output also lists each node with its score, or with the plugin
    that rejected the node. If a controller fails for the object at the moment, the last line shows its error (`ctrlmgr
    failures`).

    \b
    ctrlmgr why endpoints web -n shop
    ctrlmgr why pod/web-0 --at 1200 --effects
    """
    from ctrlmgr.api.resource import PODS
    from ctrlmgr.cli.output import change_lines, failure_lines, trees
    from ctrlmgr.inspection import causes, scheduling_decision
    from ctrlmgr.inspection.audited_requests import requests_if_kept
    from ctrlmgr.inspection.failing_reconciles import as_json, failures, failures_of

    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
        revision = causes.newest_event(database, named.resource, key, until=arguments.moment(database, at))
        if effects:
            tree = causes.effects(database, revision, depth=depth)
        else:
            with requests_if_kept(loaded.settings.data_path) as requests:
                tree = causes.why(database, revision, depth=depth, requests=requests)
        failing = failures_of(failures(database), named, key) if at is None and not effects else []
        placed, waits = None, ""
        if named.resource == PODS and not effects and output == "tree":
            placed = scheduling_decision.of(database, key, until=revision)
            waits = scheduling_decision.waiting(database, key, until=revision) if placed is None else ""
    if output != "tree":
        told = {"failures": as_json(failing)} if failing else {}
        change_lines.write_document({**causes.as_json(tree), **told}, output)
        return
    for line in _fitting([*(trees.effects(tree) if effects else trees.causes(tree, whole=whole))], whole=whole):
        click.echo(line)
    for line in scheduling_decision.lines(placed) if placed is not None else ():
        click.echo(line)
    if waits:
        click.echo(f"the scheduler has not queued the pod: {waits}")
    for failure in failing:
        click.echo(failure_lines.line(failure))


def _fitting(lines: list[str], *, whole: bool) -> list[str]:
    """Return the lines that fit on the terminal's screen, and the number of omitted lines.

    Return all lines if the standard output is not a terminal.
    """
    room = shutil.get_terminal_size().lines - _PROMPT
    if whole or not sys.stdout.isatty() or len(lines) <= room:
        return lines
    kept = max(room - 1, _FEWEST)
    return [*lines[:kept], f"… and {len(lines) - kept} more lines; --all shows them"]

"""`ctrlmgr rollout`: shows a rollout as a timeline."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.settings import Loaded


@click.command(short_help="Show a rollout as a timeline, with the reason for each wait.")
@arguments.takes_object
@takes_log
@arguments.at_option("Show the rollout that was the newest at this moment")
@output_option("text", "json")
def rollout(loaded: Loaded, kind: str, name: str | None, namespace: str | None, at: str | None, output: str) -> None:
    """Show the newest rollout of a Deployment, StatefulSet or DaemonSet, step by step, from the log.

    The timeline begins with the change of the template. Between two steps, the timeline contains the length and the
    reason of each wait: pods that are not ready, not bound, not yet deleted or refused by a quota, or a paused rollout.
    For a Deployment, the timeline also contains the number of ready pods, maxUnavailable and maxSurge.

    \b
    ctrlmgr rollout deployment web -n shop
    ctrlmgr rollout statefulset/db --at 10m -o json
    """
    from ctrlmgr.cli.output import change_lines, rollout_lines
    from ctrlmgr.inspection import rollout_timeline

    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
        found = rollout_timeline.rollout(database, named.resource, key, until=arguments.moment(database, at))
    if output == "json":
        change_lines.write_json(rollout_timeline.as_json(found))
        return
    for line in rollout_lines.lines(found):
        click.echo(line)

"""`ctrlmgr history`: shows the changes of one object."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.errors import NotFound
from ctrlmgr.settings import Loaded


@click.command(short_help="Show every change of an object, with author and time.")
@arguments.takes_object
@takes_log
@arguments.at_option("Show only changes until this moment")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show only the newest N changes.")
@click.option("--show-managed-fields", is_flag=True, help="Also show changes of metadata.managedFields.")
@output_option("text", "json")
def history(
    loaded: Loaded,
    kind: str,
    name: str | None,
    namespace: str | None,
    at: str | None,
    limit: int | None,
    show_managed_fields: bool,
    output: str,
) -> None:
    """Show every change of one object, oldest first: its author, time, reconcile and changed fields.

    In the output, + marks an added field, - a removed field, and ~ a changed field. Items of lists with a merge key are
    identified by that key: status.conditions[type=Ready].

    \b
    ctrlmgr history endpoints web -n shop
    ctrlmgr history pod/web-0 --limit 3 -o json
    """
    from ctrlmgr.cli.output import change_lines
    from ctrlmgr.inspection import historical_state
    from ctrlmgr.inspection.differences import content, differences
    from ctrlmgr.inspection.secret_redaction import masked_sides

    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
        changes = historical_state.history(database, named.resource, key, until=arguments.moment(database, at))
        if not changes:
            raise NotFound(f'{named.resource} "{key}" has no events')
    records = []
    for change in changes[-limit:] if limit else changes:
        before, after = (content(obj, managed_fields=show_managed_fields) for obj in (change.before, change.object))
        sides = masked_sides(named.resource, before, after)
        found = [] if change.before is None else list(differences(*sides))
        if output == "json":
            records.append(change_lines.change_record(change, found))
        else:
            change_lines.write_change(change, found)
    if output == "json":
        change_lines.write_json(records)

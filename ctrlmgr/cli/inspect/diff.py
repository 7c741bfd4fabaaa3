"""`ctrlmgr diff`: shows the differences between two revisions of the log."""

from __future__ import annotations

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.settings import Loaded


@click.command(short_help="Show the differences between two moments.")
@click.argument("kind", required=False, shell_complete=completion.kinds)
@click.argument("name", required=False, shell_complete=completion.object_names)
@takes_log
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Compare the objects of this namespace only; by default, of all namespaces.",
    shell_complete=completion.namespaces,
)
@click.option(
    "--from",
    "first",
    required=True,
    metavar="REV|TIME",
    help="The earlier moment of the comparison.",
    shell_complete=completion.moments,
)
@click.option(
    "--to",
    "last",
    metavar="REV|TIME",
    help="The later moment of the comparison; by default now.",
    shell_complete=completion.moments,
)
@click.option("--show-managed-fields", is_flag=True, help="Also compare metadata.managedFields of the objects.")
@output_option("text", "json")
def diff(
    loaded: Loaded,
    kind: str | None,
    name: str | None,
    namespace: str | None,
    first: str,
    last: str | None,
    show_managed_fields: bool,
    output: str,
) -> None:
    """Show the differences between two points in time: of all objects, of the objects of a KIND, or of one object.

    Changes that were reverted between the two points in time are not shown; `ctrlmgr history` shows them.

    \b
    ctrlmgr diff --from 1200 --to 1300
    ctrlmgr diff endpoints -n shop --from 10m
    """
    from ctrlmgr.cli.output import change_lines
    from ctrlmgr.inspection import historical_state, resource_lookup
    from ctrlmgr.inspection.differences import content, differences
    from ctrlmgr.inspection.secret_redaction import masked_sides

    with arguments.opened(loaded) as database:
        kind, name = arguments.split(kind, name) if kind else (None, None)
        start, end = arguments.moment(database, first), arguments.moment(database, last)
        if start > end:
            raise click.UsageError(f"--from (revision {start}) is after --to (revision {end})")
        resource = resource_lookup.find(database, kind).resource if kind else None
        pairs = historical_state.between(database, start, end, resource=resource, namespace=namespace, name=name)
        if resource is None:
            arguments.note_compacted(database, start)
    records = []
    for pair in pairs:
        before, after = (content(obj, managed_fields=show_managed_fields) for obj in (pair.before, pair.after))
        sides = masked_sides(pair.resource, before, after)
        found = list(differences(*sides)) if before and after else []
        if before == after:
            continue  # only managedFields of the object differ
        if output == "json":
            records.append(change_lines.pair_record(pair, found))
        else:
            change_lines.write_pair(pair, found)
    if output == "json":
        change_lines.write_json(records)

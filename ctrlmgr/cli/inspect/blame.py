"""`ctrlmgr blame`: shows the last author of each field of an object."""

from __future__ import annotations

import click

from ctrlmgr.cli.inspect import arguments
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.errors import NotFound
from ctrlmgr.settings import Loaded


@click.command(short_help="Show the last author of each field of an object.")
@arguments.takes_object
@takes_log
@arguments.at_option("Show the object as it was at this moment")
@click.option("--history", "every", is_flag=True, help="Show every value that each field had, not only the last one.")
@click.option("--show-managed-fields", is_flag=True, help="Also show the fields of metadata.managedFields.")
@output_option("table", "json")
def blame(
    loaded: Loaded,
    kind: str,
    name: str | None,
    namespace: str | None,
    at: str | None,
    every: bool,
    show_managed_fields: bool,
    output: str,
) -> None:
    """Show the revision that set each field of an object, with the author and the reconcile of the change.

    In the output, <=REV means that the field may have been set before REV, because earlier events were compacted.

    \b
    ctrlmgr blame endpoints web -n shop
    ctrlmgr blame pod/web-0 --at 1200 --history
    """
    from ctrlmgr.cli.output import change_lines
    from ctrlmgr.inspection import historical_state
    from ctrlmgr.inspection.field_authors import blame as blamed
    from ctrlmgr.inspection.field_authors import values
    from ctrlmgr.inspection.secret_redaction import HIDDEN, is_secret

    with arguments.opened(loaded) as database:
        named, key = arguments.target(database, kind, name, namespace)
        changes = historical_state.history(database, named.resource, key, until=arguments.moment(database, at))
        fields = blamed(changes, managed_fields=show_managed_fields)
        if not fields:
            raise NotFound(f'{named.resource} "{key}" did not exist at this moment (--at selects another moment)')
    if every:
        fields = [each for of in values(changes, managed_fields=show_managed_fields).values() for each in of]
    fields = [each._replace(value=HIDDEN) if is_secret(named.resource, each.path) else each for each in fields]
    if output == "json":
        change_lines.write_json([change_lines.blame_record(each) for each in fields])
    else:
        change_lines.write_blame(fields)

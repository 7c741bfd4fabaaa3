"""`ctrlmgr get`: shows objects at any revision, in kubectl's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.completion import DEFAULT_NAMESPACE
from ctrlmgr.cli.inspect.arguments import at_option, moment, namespace_option, opened
from ctrlmgr.cli.inspect.arguments import queried_log as asked_log
from ctrlmgr.cli.inspect.get_arguments import RequestedKind, chosen
from ctrlmgr.cli.inspect.remote_log import takes_log
from ctrlmgr.cli.options import output_option
from ctrlmgr.errors import NotFound
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.object import Object
    from ctrlmgr.api.resource import Revision
    from ctrlmgr.engine.tables.table_printer import Printer
    from ctrlmgr.inspection.database import Database
    from ctrlmgr.inspection.historical_custom_kinds import CustomKindsAt
    from ctrlmgr.inspection.resource_lookup import Named


@click.command(short_help="Show objects, now or as they were at any revision.")
@click.argument(
    "wanted",
    nargs=-1,
    required=True,
    metavar="KIND[,KIND]... [NAME]... | KIND/NAME...",
    shell_complete=completion.kinds_and_names,
)
@namespace_option
@takes_log
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the objects of all namespaces.")
@at_option("Show the objects as they were at this moment")
@click.option("--show-managed-fields", is_flag=True, help="Also print metadata.managedFields of each object.")
@output_option("table", "wide", "json", "yaml", "name")
def get(
    loaded: Loaded,
    wanted: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    at: str | None,
    show_managed_fields: bool,
    output: str,
) -> None:
    """Show the objects of a KIND, or only those with a NAME, as they are now or were at an earlier time, from the log.

    The command reads the log, so no server needs to run. KIND is a name that kubectl accepts (pods, po, pod,
    deployments.apps, all), or any resource in the log. The ages in the table are relative to the chosen point in time.

    \b
    ctrlmgr get pods --at 1200
    ctrlmgr get pods,services -n shop
    ctrlmgr get pod/web-0 svc/web -n shop -o name
    ctrlmgr get endpoints web -n shop --at 2026-01-02T03:04:05Z -o yaml
    ctrlmgr get services -A --at 10m -o wide
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import moment_parser
    from ctrlmgr.inspection.historical_custom_kinds import CustomKindsAt

    with opened(loaded) as database:
        revision = moment(database, at) if at else None
        requested = chosen(database, wanted, revision)
        if all_namespaces and any(each.name for each in requested):
            raise click.UsageError("a NAME and --all-namespaces exclude each other; choose a namespace with -n")
        place = None if all_namespaces else namespace or DEFAULT_NAMESPACE
        custom = CustomKindsAt(database, revision)
        found, missing = _look(database, requested, place, revision, custom)
        tables = [_printer(objects[0], custom) for _, objects in found] if output in ("table", "wide") else []
        now = SystemClock().now() if revision is None else moment_parser.recorded_at(database, revision)
        where = "" if found and not missing else asked_log(loaded, database)
    if output in ("json", "yaml"):
        items = [_fields(obj, show_managed_fields) for _, objects in found for obj in objects]
        if items or not missing:
            _write_document(items, output, single=len(requested) == 1 and requested[0].name is not None)
    elif output == "name":
        for named, objects in found:
            for obj in objects:
                click.echo(f"{named.singular}/{obj.name}")
    else:
        several = len({each.named for each in requested}) > 1
        _write_tables(found, tables, now, kinds=several, wide=output == "wide", namespaces=all_namespaces)
        if not found and not missing:
            click.echo(f"{_nothing(requested, place)} in {where}", err=True)
    if missing:
        names = "; ".join(f'{each.named.resource} "{each.name}" not found' for each in missing)
        raise NotFound(f"{names} in {where}; is this the right cluster?")


Found: TypeAlias = "list[tuple[Named, list[Object]]]"
"""The found objects of each kind, in the requested order; kinds without objects are omitted."""


def _look(
    database: Database,
    requested: Sequence[RequestedKind],
    place: str | None,
    revision: Revision | None,
    custom: CustomKindsAt,
) -> tuple[Found, list[RequestedKind]]:
    """Return the objects that were found, and the requested names that do not exist."""
    from ctrlmgr.inspection import historical_state

    found: dict[Named, list[Object]] = {}
    missing = []
    for each in requested:
        named, name = each
        within = place if named.namespaced else None
        objects = historical_state.objects(database, named.resource, namespace=within, name=name, at=revision)
        if named.is_custom:
            objects = [custom.shown(obj) for obj in objects]
        if objects:
            found.setdefault(named, []).extend(objects)
        elif name is not None:
            missing.append(each)
    return list(found.items()), missing


def _nothing(requested: Sequence[RequestedKind], place: str | None) -> str:
    within = place and any(each.named.namespaced for each in requested)
    return f"No resources found in {place} namespace" if within else "No resources found"


def _fields(obj: Object, managed_fields: bool) -> dict[str, Any]:
    fields = obj.to_dict()
    if not managed_fields:
        fields["metadata"].pop("managedFields", None)
    return fields


def _write_document(items: list[dict[str, Any]], output: str, *, single: bool) -> None:
    from ctrlmgr.cli.output import terminal_documents

    document = items[0] if single else {"apiVersion": "v1", "items": items, "kind": "List"}
    if output == "json":
        import json

        click.echo(terminal_documents.json_text(json.dumps(document, indent=4, ensure_ascii=False)))
    else:
        click.echo(terminal_documents.yaml_text(document), nl=False)


def _write_tables(
    found: Found, tables: Sequence[Printer], now: int, *, kinds: bool, wide: bool, namespaces: bool
) -> None:
    """Print one table per kind, separated by empty lines.

    If `kinds` is true, print each name with its kind as a prefix.
    """
    for index, ((named, objects), table) in enumerate(zip(found, tables, strict=True)):
        if index:
            click.echo()
        prefix = f"{named.singular}/" if kinds else ""
        _write_table(objects, now, table, prefix, wide=wide, namespaces=namespaces and named.namespaced)


def _printer(obj: Object, custom: CustomKindsAt) -> Printer:
    """Return the table columns of an object's kind; the columns of a custom kind are those at the chosen revision."""
    from ctrlmgr.engine.kind import GroupVersionKind
    from ctrlmgr.kinds.builtin import builtin_kinds

    fields, builtin = obj.to_dict(), builtin_kinds()
    group, _, version = fields["apiVersion"].rpartition("/")
    gvk = GroupVersionKind(group, version, fields["kind"])
    if builtin.by_gvk(gvk) is None and (kind := custom.kind_of(obj)) is not None:
        return kind.printer
    return builtin.printer_of(gvk)


def _write_table(
    objects: Sequence[Object], now: int, table: Printer, prefix: str, *, wide: bool, namespaces: bool
) -> None:
    from ctrlmgr.cli.output import aligned_columns

    kept = [index for index, column in enumerate(table.columns) if wide or not column.priority]
    header = [table.columns[index].name.upper() for index in kept]
    rows = []
    for obj in objects:
        cells = table.cells(obj, now)
        row = [cells[index] for index in kept]
        row[0] = f"{prefix}{row[0]}"  # the name is always the first column of kubectl
        rows.append([obj.namespace, *row] if namespaces else row)
    for line in aligned_columns.lines(["NAMESPACE", *header] if namespaces else header, rows):
        click.echo(line)

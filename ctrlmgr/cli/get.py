"""`ctrlmgr get`: what existed, at any revision, in kubectl's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ctrlmgr.cli.looking import DEFAULT_NAMESPACE, at_option, moment, opened, split, takes_object
from ctrlmgr.cli.options import DATABASE, output_option, takes_settings
from ctrlmgr.errors import NotFound
from ctrlmgr.settings import Loaded

if TYPE_CHECKING:
    from ctrlmgr.api.object import Object
    from ctrlmgr.inspection.names import Named


@click.command(short_help="Show objects as they were at any revision.")
@takes_object
@takes_settings(*DATABASE)
@click.option("-A", "--all-namespaces", is_flag=True, help="Of every namespace.")
@at_option("As it was then")
@click.option("--show-managed-fields", is_flag=True, help="Leave metadata.managedFields in what is printed.")
@output_option("table", "wide", "json", "yaml", "name")
def get(
    loaded: Loaded,
    kind: str,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    at: str | None,
    show_managed_fields: bool,
    output: str,
) -> None:
    """Show the objects of a KIND, or one NAME of them, now or as they were: read from the log, no server needed.

    KIND is what kubectl takes (pods, po, pod, deployments.apps), or any resource that the log holds; KIND/NAME is
    understood. Ages are those of the moment that is looked at.

    \b
    ctrlmgr get pods --at 1200
    ctrlmgr get endpoints web -n shop --at 2026-01-02T03:04:05Z -o yaml
    ctrlmgr get services -A --at 10m -o wide
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.inspection import moments, names, past

    kind, name = split(kind, name)
    if name and all_namespaces:
        raise click.UsageError("an object is in one namespace: a NAME and --all-namespaces exclude each other")
    with opened(loaded) as database:
        named = names.find(database, kind)
        revision = moment(database, at) if at else None
        place = None if all_namespaces or not named.namespaced else namespace or DEFAULT_NAMESPACE
        found = past.objects(database, named.resource, namespace=place, name=name, at=revision)
        now = SystemClock().now() if revision is None else moments.recorded_at(database, revision)
    if name and not found:
        raise NotFound(f'{named.resource} "{name}" not found')
    if output in ("json", "yaml"):
        _write_document([_fields(obj, show_managed_fields) for obj in found], output, single=bool(name))
    elif output == "name":
        for obj in found:
            click.echo(f"{named.singular}/{obj.name}")
    elif found:
        _write_table(found, now, wide=output == "wide", namespaces=all_namespaces and named.namespaced)
    else:
        click.echo(_nothing(named, place), err=True)


def _nothing(named: Named, place: str | None) -> str:
    return f"No resources found in {place} namespace." if named.namespaced and place else "No resources found"


def _fields(obj: Object, managed_fields: bool) -> dict[str, Any]:
    fields = obj.to_dict()
    if not managed_fields:
        fields["metadata"].pop("managedFields", None)
    return fields


def _write_document(items: list[dict[str, Any]], output: str, *, single: bool) -> None:
    document = items[0] if single else {"apiVersion": "v1", "items": items, "kind": "List"}
    if output == "json":
        import json

        click.echo(json.dumps(document, indent=4, ensure_ascii=False))
    else:
        import yaml

        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096), nl=False)


def _write_table(objects: Sequence[Object], now: int, *, wide: bool, namespaces: bool) -> None:
    from ctrlmgr.cli import columns
    from ctrlmgr.resources.kind import GroupVersionKind
    from ctrlmgr.server.tables import table_for

    first = objects[0].to_dict()
    group, _, version = first["apiVersion"].rpartition("/")
    table = table_for(GroupVersionKind(group, version, first["kind"]))
    kept = [index for index, column in enumerate(table.columns) if wide or not column.priority]
    header = [table.columns[index].name.upper() for index in kept]
    rows = []
    for obj in objects:
        cells = table.cells(obj, now)
        row = [cells[index] for index in kept]
        rows.append([obj.namespace, *row] if namespaces else row)
    for line in columns.lines(["NAMESPACE", *header] if namespaces else header, rows):
        click.echo(line)

"""Prints changes of objects, as lines for users and as plain JSON values for programs.

Guarantees: the output is coloured only on a terminal. Control characters in stored values are printed as escape
sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.cli.output import aligned_columns, terminal_documents
from ctrlmgr.clock import format_time
from ctrlmgr.inspection.differences import ABSENT, Difference
from ctrlmgr.inspection.field_authors import FieldAuthor
from ctrlmgr.inspection.historical_state import Author, Change, Pair
from ctrlmgr.logging import escape

_HEADER = ("REVISION", "TIME", "ACTOR", "RECONCILE", "FIELD", "VALUE")


def write_json(document: Any) -> None:
    """Print a document of plain JSON values."""
    click.echo(terminal_documents.json_text(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()))


def write_document(document: Any, output: str) -> None:
    """Print a document of plain JSON values in the format `output`: json or yaml."""
    if output == "json":
        write_json(document)
        return
    click.echo(terminal_documents.yaml_text(document), nl=False)


def subject(resource: Resource, key: Key) -> str:
    """Return the name of an object for output: `pods shop/web-0`."""
    return click.style(f"{escape(str(resource))} {escape(str(key))}", bold=True)


def difference_line(difference: Difference, *, widest: int | None = None) -> str:
    """Return a difference as a line: `+` for an added field, `-` for a removed field, `~` for a changed field.

    Values with more than `widest` characters are truncated.
    """
    path = escape(difference.path)
    before, after = (_cut(shown(value), widest) for value in (difference.before, difference.after))
    if difference.before is ABSENT:
        return click.style(f"+ {path}: {after}", fg="green")
    if difference.after is ABSENT:
        return click.style(f"- {path}: {before}", fg="red")
    return f"{click.style('~', fg='yellow')} {path}: {click.style(before, fg='red')} → {click.style(after, fg='green')}"


def _cut(text: str, widest: int | None) -> str:
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"


def shown(value: Any) -> str:
    """Return a JSON value as a string; an absent value becomes an empty string."""
    return "" if value is ABSENT else escape(msgspec.json.encode(value).decode())


def plain(difference: Difference) -> dict[str, Any]:
    """Return a difference as plain JSON values; `from` or `to` is omitted if the field is absent on that side."""
    sides = {"from": difference.before, "to": difference.after}
    return {"path": difference.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def written_by(author: Author) -> str:
    """Return the name of an author for output: `alice (kubectl/v1.36)`."""
    actor = escape(author.actor) or "an unknown user"
    return f"{actor} ({escape(author.user_agent)})" if author.user_agent else actor


def reconcile_of(author: Author) -> str:
    """Return the name of an author's reconcile, `shop/web by endpoint-controller`.

    Return an empty string if no reconcile wrote the change.
    """
    if not author.controller:
        return ""
    parts = [f"{escape(author.key)} by {escape(author.controller)}"]
    parts += [f"attempt {author.attempt}"] if author.attempt > 1 else []
    parts += [f"term {author.term}"] if author.term else []
    return ", ".join(parts)


def who(author: Author) -> dict[str, Any]:
    """Return an author as plain JSON values."""
    fields: dict[str, Any] = {"actor": author.actor, "userAgent": author.user_agent, "term": author.term}
    if author.controller:
        fields["reconcile"] = {"controller": author.controller, "key": author.key, "attempt": author.attempt}
    return fields


def write_change(change: Change, found: Sequence[Difference]) -> None:
    """Print one change of an object: its author, time, reconcile and differences."""
    head = f"{change.revision}  {format_time(change.recorded_at)}  {change.type.name}"
    click.echo(f"{click.style(head, bold=True)}  {written_by(change.author)}")
    if reconcile := reconcile_of(change.author):
        click.echo(f"    reconcile {reconcile}")
    if change.before is None and change.type.name != "ADDED":
        click.echo("(the earlier state was compacted)")
    for difference in found:
        click.echo(f"    {difference_line(difference)}")


def change_record(change: Change, found: Sequence[Difference]) -> dict[str, Any]:
    """Return one change of an object as plain JSON values."""
    return {
        "revision": change.revision,
        "type": change.type.name,
        "recordedAt": format_time(change.recorded_at),
        **who(change.author),
        "changes": [plain(difference) for difference in found],
    }


def _verdict(pair: Pair) -> str:
    return "ADDED" if pair.before is None else "DELETED" if pair.after is None else "MODIFIED"


def write_pair(pair: Pair, found: Sequence[Difference]) -> None:
    """Print the difference of an object between two points in time."""
    mark, colour = {"ADDED": ("+", "green"), "DELETED": ("-", "red"), "MODIFIED": ("~", "yellow")}[_verdict(pair)]
    revisions = " → ".join(str(obj.revision) for obj in (pair.before, pair.after) if obj)
    click.echo(f"{click.style(mark, fg=colour)} {subject(pair.resource, pair.key)}  {revisions}")
    for difference in found:
        click.echo(f"    {difference_line(difference)}")


def pair_record(pair: Pair, found: Sequence[Difference]) -> dict[str, Any]:
    """Return the difference of an object between two points in time as plain JSON values."""
    return {
        "resource": str(pair.resource),
        "namespace": pair.key.namespace,
        "name": pair.key.name,
        "verdict": _verdict(pair),
        "from": pair.before and pair.before.revision,
        "to": pair.after and pair.after.revision,
        "changes": [plain(difference) for difference in found],
    }


def write_blame(fields: Sequence[FieldAuthor]) -> None:
    """Print the fields of an object, each with its last change, as a table."""
    for line in aligned_columns.lines(_HEADER, _rows(fields)):
        click.echo(line)


def _rows(fields: Sequence[FieldAuthor]) -> list[tuple[str, ...]]:
    return [
        (
            f"{'' if each.certain else '<='}{each.change.revision}",
            format_time(each.change.recorded_at),
            each.change.author.actor or "-",
            reconcile_of(each.change.author) or "-",
            each.path,
            shown(each.value) or "(removed)",
        )
        for each in fields
    ]


def blame_record(each: FieldAuthor) -> dict[str, Any]:
    """Return a field with its last change as plain JSON values."""
    from ctrlmgr.clock import format_time

    value = {} if each.value is ABSENT else {"value": each.value}
    change = each.change
    moment = {"revision": change.revision, "recordedAt": format_time(change.recorded_at), "certain": each.certain}
    return {"path": each.path, **value, **moment, **who(change.author)}

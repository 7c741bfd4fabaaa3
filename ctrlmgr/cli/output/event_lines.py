"""Prints the output of `ctrlmgr events`: as columns for users, and as JSON for programs.

Guarantees: each event is printed as soon as it is read. Control characters in names and actors are printed as escape
sequences. Lines in the format `jsonl` have all fields of a recording, and some additional fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click
import msgspec

from ctrlmgr.cli.output import terminal_documents
from ctrlmgr.clock import format_time
from ctrlmgr.eventlog import Event, EventLog, Reconcile
from ctrlmgr.logging import escape

_COLUMNS = {"REVISION": 8, "TIME": 27, "TYPE": 8, "RESOURCE": 10, "KEY": 30, "ACTOR": 1}
_WIDE = {**_COLUMNS, "ACTOR": 38, "PREVIOUS": 8, "TERM": 4, "ATTEMPT": 7, "TRIGGERS": 1}

Lookup = Callable[[int], Reconcile | None]


def write(events: Iterable[Event], log: EventLog, output: str) -> None:
    """Print `events` in the format `output`; the reconciles that wrote the events are read from `log`."""

    @functools.lru_cache(maxsize=1000)
    def reconcile(id: int) -> Reconcile | None:
        return log.reconcile(id) if id else None

    for line in _lines(events, reconcile, output):
        click.echo(line)


def _lines(events: Iterable[Event], reconcile: Lookup, output: str) -> Iterator[str]:
    if output == "jsonl":
        return (_encode(_fields(event, reconcile)) for event in events)
    if output == "json":
        return _document(events, reconcile)
    return _table(events, reconcile, _WIDE if output == "wide" else _COLUMNS)


def _table(events: Iterable[Event], reconcile: Lookup, columns: dict[str, int]) -> Iterator[str]:
    """Yield one line for each event, with aligned columns.

    When a wider value arrives, its column becomes wider. Therefore no line has to wait for later lines.
    """
    widths = dict(columns)
    yield _row(dict(zip(widths, widths, strict=True)), widths)
    for event in events:
        cells = _cells(event, reconcile if "TRIGGERS" in columns else _unknown)
        yield _row({column: cells[column] for column in columns}, widths)


def _unknown(reconcile: int) -> None:
    return None


def _row(cells: dict[str, str], widths: dict[str, int]) -> str:
    for column, cell in cells.items():
        widths[column] = max(widths[column], len(cell))
    return "  ".join(cell.ljust(widths[column]) for column, cell in cells.items()).rstrip()


def _cells(event: Event, reconcile: Lookup) -> dict[str, str]:
    known = reconcile(event.reconcile)
    return {
        "REVISION": str(event.revision),
        "TIME": format_time(event.recorded_at),
        "TYPE": event.type.name,
        "RESOURCE": escape(str(event.resource)),
        "KEY": escape(str(event.key)),
        "ACTOR": escape(event.actor) or "-",
        "PREVIOUS": str(event.previous or "-"),
        "TERM": str(event.term or "-"),
        "ATTEMPT": str(known.cause.attempt) if known else "-",
        "TRIGGERS": ",".join(map(str, known.cause.triggers)) if known else "-",
    }


def _document(events: Iterable[Event], reconcile: Lookup) -> Iterator[str]:
    yield '{"kind": "EventList", "items": ['
    separator = ""
    for event in events:
        yield separator + _encode(_fields(event, reconcile))
        separator = ","
    yield "]}"


def _encode(fields: dict[str, Any]) -> str:
    return terminal_documents.json_text(msgspec.json.encode(fields).decode())


def _fields(event: Event, reconcile: Lookup) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": event.type.name,
        "object": _shown(event),
        "recordedAt": format_time(event.recorded_at),
        "revision": event.revision,
        "previous": event.previous,
        "actor": event.actor,
        "userAgent": event.user_agent,
        "term": event.term,
        "hash": event.hash.hex(),
    }
    if known := reconcile(event.reconcile):
        fields["reconcile"] = _reconcile_fields(known)
    return fields


def _reconcile_fields(known: Reconcile) -> dict[str, Any]:
    cause, outcome = known.cause, known.outcome
    fields: dict[str, Any] = {
        "controller": cause.controller,
        "key": cause.key,
        "attempt": cause.attempt,
        "startedAt": format_time(cause.started_at),
        "triggers": list(cause.triggers),
    }
    if outcome:
        fields |= {"duration": outcome.duration / 1_000_000, "result": outcome.result, "message": outcome.message}
    return fields


def _shown(event: Event) -> Any:
    """Return the object of an event, without the values of Secrets."""
    from ctrlmgr.inspection.secret_redaction import masked

    raw = msgspec.Raw(event.object.wire())
    return masked(event.resource, msgspec.json.decode(raw)) if event.resource.plural == "secrets" else raw

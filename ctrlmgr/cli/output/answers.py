"""Prints results of `ctrlmgr sql`: a table for users, JSON or CSV for programs.

Guarantees: on a terminal, long values are wrapped so that a table fits the width of the terminal. No value is
truncated, neither on a terminal nor in a pipe. If the columns of a table would be too narrow, each row is printed as a
list of values. A column that contains JSON is printed by `-o json` as JSON, not as a string.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any

import click

from ctrlmgr.cli.output import aligned_columns, terminal_documents
from ctrlmgr.inspection.database import Rows
from ctrlmgr.logging import escape

FORMATS = ("table", "json", "csv")
_BETWEEN = 2
"""The characters that separate the columns of a table."""
_LINES = 6
"""The maximum number of lines of a value in a table column."""

_JSON = frozenset({"body", "changes", "labels", "ports", "triggers"})


def write(answer: Rows, output: str) -> None:
    """Print a query result in the format `output`."""
    if output == "json":
        click.echo(terminal_documents.json_text(json.dumps(_records(answer), indent=2, ensure_ascii=False)))
    elif output == "csv":
        click.echo(_csv(answer), nl=False)
    elif sys.stdout.isatty():
        _write_pretty(answer)
    else:
        for line in aligned_columns.lines(answer.columns, answer.rows):
            click.echo(line)


def _records(answer: Rows) -> list[dict[str, Any]]:
    return [{name: _plain(name, value) for name, value in zip(answer.columns, row, strict=True)} for row in answer.rows]


def _plain(name: str, value: Any) -> Any:
    """Return a database value as a JSON value, because databases have types that JSON lacks."""
    if isinstance(value, str) and name in _JSON and value[:1] in ("{", "["):
        return json.loads(value)
    if value is None or isinstance(value, str | int | float | list | dict):
        return value
    try:
        return float(value)  # PostgreSQL's numeric
    except (TypeError, ValueError):
        return aligned_columns.cell(value)


def _csv(answer: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([aligned_columns.cell(value) for value in row] for row in answer.rows)
    return text.getvalue()


def _write_pretty(answer: Rows) -> None:
    cells = [[escape(aligned_columns.cell(value)) for value in row] for row in answer.rows]
    numbers = [_is_number(row[index] for row in answer.rows) for index in range(len(answer.columns))]
    widths = shared(answer.columns, cells, numbers, get_terminal_size().columns - _BETWEEN * len(answer.columns))
    pairs = (pair for row in cells for pair in zip(row, widths, strict=True))
    if len(widths) > 1 and any(len(text) > _LINES * width for text, width in pairs):
        _write_records(answer, cells)
    else:
        _write_table(answer, cells, widths, numbers)
    click.echo(f"{len(answer.rows):,} rows" if len(answer.rows) != 1 else "1 row")


def _write_table(answer: Rows, cells: Sequence[Sequence[str]], widths: Sequence[int], numbers: Sequence[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for name, width, number in zip(answer.columns, widths, numbers, strict=True):
        table.add_column(heading(name, width), justify="right" if number else "left", width=width, overflow="fold")
    for row in cells:
        table.add_row(*(Text(text, overflow="fold") for text in row))
    Console(width=get_terminal_size().columns).print(table)


def _write_records(answer: Rows, cells: Sequence[Sequence[str]]) -> None:
    """Print a row as a list: each value on its own line, in full length."""
    width = max(map(len, answer.columns))
    for number, row in enumerate(cells, 1):
        click.echo(f"row {number}")
        for name, text in zip(answer.columns, row, strict=True):
            click.echo(f"  {name.ljust(width)}  {text}".rstrip())


def _is_number(values: Iterable[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) for value in known)


def heading(name: str, width: int) -> str:
    """Return the name of a column, broken between words into lines of at most this width."""
    lines = [""]
    for word in name.replace("_", "_\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def shared(names: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool], room: int) -> list[int]:
    """Return column widths whose sum fits into `room` characters.

    To make columns narrower, the function first breaks headings, and then narrows text columns, beginning with the
    longest. Columns with numbers keep their width when a table is narrowed.
    """
    from rich.cells import cell_len

    inner = [max(map(cell_len, column), default=1) for column in zip(*cells, strict=True)] or [1] * len(names)
    whole = [max(width, len(name)) for width, name in zip(inner, names, strict=True)]
    if sum(whole) <= room:
        return whole
    broken = [max(width, *map(len, name.replace("_", "_ ").split())) for width, name in zip(inner, names, strict=True)]
    if sum(broken) <= room:
        return _widened(broken, whole, room - sum(broken))
    left = room - sum(width for width, number in zip(broken, numbers, strict=True) if number)
    texts = iter(fitted([width for width, number in zip(broken, numbers, strict=True) if not number], max(left, 1)))
    return [width if number else next(texts) for width, number in zip(broken, numbers, strict=True)]


def _widened(widths: list[int], wanted: list[int], left: int) -> list[int]:
    """Distribute the remaining room to columns that need more, beginning with the first column.

    Return the new widths of the table's columns in characters.
    """
    given = []
    for width, want in zip(widths, wanted, strict=True):
        more = min(left, want - width)
        left -= more
        given.append(width + more)
    return given


def fitted(widths: list[int], room: int) -> list[int]:
    """Return column widths whose sum fits into `room`, by narrowing the widest columns evenly."""
    given = dict.fromkeys(range(len(widths)), 1)
    for left, index in enumerate(sorted(given, key=lambda each: widths[each])):
        share = room // (len(widths) - left)
        given[index] = max(1, min(widths[index], share))
        room -= given[index]
    return [given[index] for index in range(len(widths))]

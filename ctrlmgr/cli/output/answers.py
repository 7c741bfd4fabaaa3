"""How `ctrlmgr sql` prints an answer: a table for people, JSON or CSV for machines.

Guarantees: on a terminal a table fits its width, with what is too long cut; in a pipe nothing is cut. JSON that
stands in a column comes out of `-o json` as JSON, not as text that holds JSON.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

import click

from ctrlmgr.cli.output import columns
from ctrlmgr.inspection.database import Rows
from ctrlmgr.logging import escape

FORMATS = ("table", "json", "csv")
_BETWEEN = 3
"""Characters that a table needs beside each column."""

_JSON = frozenset({"body", "changes", "labels", "ports", "triggers"})


def write(answer: Rows, output: str) -> None:
    """Print an answer as `output` says."""
    if output == "json":
        click.echo(json.dumps(_records(answer), indent=2, ensure_ascii=False))
    elif output == "csv":
        click.echo(_csv(answer), nl=False)
    elif sys.stdout.isatty():
        _write_pretty(answer)
    else:
        for line in columns.lines(answer.columns, answer.rows):
            click.echo(line)


def _records(answer: Rows) -> list[dict[str, Any]]:
    return [{name: _plain(name, value) for name, value in zip(answer.columns, row, strict=True)} for row in answer.rows]


def _plain(name: str, value: Any) -> Any:
    """Return a value as JSON has it; the databases know more types than JSON."""
    if isinstance(value, str) and name in _JSON and value[:1] in ("{", "["):
        return json.loads(value)
    if value is None or isinstance(value, str | int | float | list | dict):
        return value
    try:
        return float(value)  # PostgreSQL's numeric
    except (TypeError, ValueError):
        return columns.cell(value)


def _csv(answer: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([columns.cell(value) for value in row] for row in answer.rows)
    return text.getvalue()


def _write_pretty(answer: Rows) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    cells = [[escape(columns.cell(value)) for value in row] for row in answer.rows]
    widths = [max(map(cell_len, column)) for column in zip(answer.columns, *cells, strict=True)]
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for index, width in enumerate(fitted(widths, console.width - _BETWEEN * len(widths))):
        number = bool(answer.rows) and isinstance(answer.rows[0][index], int | float)
        table.add_column(
            answer.columns[index],
            justify="right" if number else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=width,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)
    click.echo(f"{len(answer.rows):,} rows" if len(answer.rows) != 1 else "1 row")


def fitted(widths: list[int], room: int) -> list[int]:
    """Return the widths that columns get where there is `room` for all together: the widest give way, evenly."""
    given = dict.fromkeys(range(len(widths)), 1)
    for left, index in enumerate(sorted(given, key=lambda each: widths[each])):
        share = room // (len(widths) - left)
        given[index] = max(1, min(widths[index], share))
        room -= given[index]
    return [given[index] for index in range(len(widths))]

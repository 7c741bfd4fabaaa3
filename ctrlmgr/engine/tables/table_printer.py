"""The columns of a kind's table, and the functions that compute the cells, as data.

Guarantees: an object is decoded once for each row. A missing field of an object is printed as in Kubernetes, and never
causes an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages, ages_at

NONE = "<none>"
UNSET = "<unset>"

Fields = Mapping[str, Any]
Row = Callable[[Fields, Ages], Iterable[Any]]
"""A function that returns the cells of an object."""


class RowCondition(msgspec.Struct, frozen=True):
    """A condition of a row (meta/v1 TableRowCondition): a client may, for example, hide `Completed` rows."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class Column(msgspec.Struct, frozen=True):
    """One column (meta/v1 TableColumnDefinition), its fields in Go's order."""

    name: str
    type: str = "string"
    """The type of the column's values: `string`, `integer`, `number`, `boolean` or `date`."""
    format: str = ""
    """The format of the values: `name` for the column with the object's name."""
    description: str = ""
    priority: int = 0
    """The priority of the column: a column with priority 0 is always shown, and columns with greater values only in
    wide output.
    """


class TableDefinition(Protocol):
    """The columns of a kind, and the function that computes the cells of these columns."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the table, from left to right."""

    def cells(self, obj: Object, now: int) -> Sequence[Any]:
        """Return the cells of `obj` at a time (microseconds since 1970); the cells are JSON values, mostly strings."""

    @property
    def conditions(self) -> Callable[[Object], Sequence[RowCondition]] | None:
        """A function that returns the conditions of a row; None if rows have no conditions."""


class Printer(NamedTuple):
    """A table definition as data."""

    columns: Sequence[Column]
    row: Row
    named: bool = True
    """Whether the name of the object is placed before the cells of `row`."""
    conditions: Callable[[Object], Sequence[RowCondition]] | None = None

    def cells(self, obj: Object, now: int) -> Sequence[Any]:
        """Return an object's cells at `now` (microseconds since 1970)."""
        cells = self.row(obj.to_dict(), ages_at(now))
        return [obj.name, *cells] if self.named else [*cells]


_NAME = Column("Name", "string", "name")


def printer(text: str, row: Row) -> Printer:
    """Return the printer of a kind whose first column is the name; `columns` describes the further columns."""
    return Printer([_NAME, *columns(text)], row)


def columns(text: str) -> list[Column]:
    """Parse columns such as `Data|Desired:integer|+IP`, where `+` marks a column that only wide output shows."""
    return [_column(each) for each in text.split("|")]


def _column(text: str) -> Column:
    name, _, type_ = text.removeprefix("+").partition(":")
    return Column(name, type_ or "string", "name" if name == "Name" else "", priority=int(text.startswith("+")))


CREATED_AT = printer("Created At:date", lambda fields, ages: [at(fields, "metadata", "creationTimestamp")])
"""The columns of a kind that defines no columns (`rest.NewDefaultTableConvertor`)."""


def age(fields: Fields, ages: Ages) -> str:
    """Return an object's age."""
    return ages.since(at(fields, "metadata", "creationTimestamp"))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Format labels as kubectl does (apimachinery `labels.FormatLabels`)."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if labels else NONE


def selector_text(selector: Any) -> str:
    """Format a label selector (apimachinery `metav1.FormatLabelSelector`)."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        values = f"({','.join(sorted(expression.get('values') or ()))})"
        words = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in {values}", "NotIn": f"{key} notin {values}"}
        parts.append(words.get(operator, key))
    return ",".join(sorted(parts)) or NONE


def joined(values: Iterable[Any] | None, nothing: str = NONE) -> str:
    """Return strings joined with commas, or `nothing` if there is no string."""
    return ",".join(str(value) for value in values or ()) or nothing


def shown(values: Sequence[str], limit: int = 3, nothing: str = NONE) -> str:
    """Return the first `limit` strings joined with commas, and the number of further strings."""
    if len(values) <= limit:
        return joined(values, nothing)
    return f"{','.join(values[:limit])} + {len(values) - limit} more..."


def containers(spec: Any) -> tuple[str, str]:
    """Return the names and the images of a pod template's containers."""
    listed = at(spec, "containers") or []
    return joined((each.get("name", "") for each in listed), ""), joined((each.get("image", "") for each in listed), "")

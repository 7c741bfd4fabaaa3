"""Printer columns: the headers of a version's table and the cells of its objects.

Source: apiextensions-apiserver `pkg/registry/customresource/tableconvertor/tableconvertor.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.timestamp import canonical_time
from ctrlmgr.extensions.paths.json_path import JSONPath, JSONPathError, text_of
from ctrlmgr.extensions.structural import Raw

_MOST_INT64 = 2**63 - 1
_CREATION = ".metadata.creationTimestamp"
_CREATED = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed"
    " to be set in happens-before order across separate operations. Clients may not set this value. It is represented"
    " in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info:"
    " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
"""The description of the metadata field in Kubernetes' documentation."""

Age = Callable[[str], str]
"""The type of a function that formats the age of a timestamp, such as `5d`."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    """The description of the column; if it is empty, Kubernetes' documentation of the metadata field is used."""
    priority: int = 0
    path: JSONPath | None = None
    """The path of the column's value; None for the column with the object's name."""


AGE = Column("Age", "date", "", _CREATED, path=JSONPath(_CREATION))
"""The only column of a version that declares no columns."""


def parse_columns(raw: Sequence[Raw]) -> tuple[Column, ...]:
    """Return the columns of a version, without the column for the name.

    The list ends before the first column with an invalid path.
    """
    if not raw:
        return (AGE,)
    columns: list[Column] = []
    for each in raw:
        path = each.get("jsonPath") or ""
        try:
            parsed = JSONPath(path)
        except JSONPathError:
            break
        description = each.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        name, type_, form = (each.get(key) or "" for key in ("name", "type", "format"))
        columns.append(Column(name, type_, form, description, each.get("priority") or 0, parsed))
    return tuple(columns)


def cells(columns: Sequence[Column], value: Any, age: Age) -> list[Any]:
    """Return the cells of an object; None if a value is missing or has another type than the column."""
    return [None if column.path is None else _cell(column.type, column.path, value, age) for column in columns]


def _cell(type_: str, path: JSONPath, value: Any, age: Age) -> Any:
    try:
        found = path.find(value)
    except JSONPathError:
        return None
    if not found:
        return None
    return text_of(found[0]) if type_ == "string" else _typed(type_, found[0], age)


def _typed(type_: str, value: Any, age: Age) -> Any:
    kind = type(value)
    if type_ == "integer" and kind in (int, float):
        return int(value) if abs(value) <= _MOST_INT64 else -(2**63)
    if type_ == "number" and kind in (int, float):
        return float(value)
    if type_ == "boolean" and kind is bool:
        return value
    return _age(value, age) if type_ == "date" and kind is str else None


def _age(text: str, age: Age) -> str:
    if not text or text == "null":
        return "<unknown>"
    try:
        moment = canonical_time(text)
    except ValueError:
        return "<invalid>"
    return "<unknown>" if moment is None else age(moment)

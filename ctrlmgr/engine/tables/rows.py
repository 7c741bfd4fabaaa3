"""Functions that compute rows and cells of tables, which several kinds use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Fields, Row, age


def aged(*cells: Callable[[Fields], Any]) -> Row:
    """Return a row of the given cells, with the object's age as the last cell."""

    def row(fields: Fields, ages: Ages) -> list[Any]:
        return [*(cell(fields) for cell in cells), age(fields, ages)]

    return row


def text(*path: str | int, nothing: Any = "") -> Callable[[Fields], Any]:
    """Return a function that computes a cell, which shows the value at a path, or `nothing` if the value is missing."""

    def cell(fields: Fields) -> Any:
        value = at(fields, *path)
        return nothing if value is None or value == "" else value

    return cell


def length(name: str) -> Callable[[Fields], int]:
    """Return a function that computes a cell, which shows the length of the list at a dotted path."""
    return lambda fields: len(at(fields, *name.split(".")) or ())


def flag(*path: str, default: bool = False) -> Callable[[Fields], bool]:
    """Return a function that computes a cell, which shows the boolean at a path, or `default` if it is missing."""

    def cell(fields: Fields) -> bool:
        value = at(fields, *path)
        return default if value is None else bool(value)

    return cell


def replicas(fields: Fields) -> int:
    """Return the number of desired replicas in an object's spec."""
    return int(at(fields, "spec", "replicas") or 0)


def status_count(fields: Fields, name: str) -> int:
    """Return a number in the status of an object; 0 if the number is missing."""
    return int(at(fields, "status", name) or 0)


def counted(name: str, *more: str) -> Row:
    """Return a row with the total length of some lists or maps, and with the object's age."""

    def row(fields: Fields, ages: Ages) -> list[Any]:
        return [sum(len(fields.get(each) or ()) for each in (name, *more)), age(fields, ages)]

    return row

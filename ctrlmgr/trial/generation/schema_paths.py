"""Lists the properties of an object that a scenario can change: paths, with the schema of each property.

Guarantees: the fields that a user does not write (`status`, `metadata`, `kind`, `apiVersion`) are left out. The paths
are sorted as in the schema, and each parent precedes its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.extensions.structural import META, RULES, Raw, single_items
from ctrlmgr.trial.generation.rule_literals import literals_of

_NOT_WRITTEN: Final = META | {"status"}
_DEEPEST: Final = 8


class Place(NamedTuple):
    """A property that a scenario can change."""

    path: tuple[str | int, ...]
    raw: Raw
    hints: tuple[Any, ...]
    """The constants of the rules at the property and above it.

    If the parent of the property has rules, the values of the neighbouring fields are included, too.
    """

    def __str__(self) -> str:
        return dotted(self.path)


def dotted(path: tuple[str | int, ...]) -> str:
    """Return a path as field errors show it: `spec.ports[0].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def places(raw: Raw, value: Any) -> Iterator[Place]:
    """Yield the properties of an object; of lists and maps that `value` contains, the first item."""
    yield from _below((), raw, value, tuple(literals_of(raw)))


def _below(path: tuple[str | int, ...], raw: Raw, value: Any, literals: tuple[Any, ...]) -> Iterator[Place]:
    for step, schema in _fields(path, raw, value):
        known = literals + tuple(literals_of(schema))
        below = value.get(step) if isinstance(value, dict) and isinstance(step, str) else None
        if isinstance(step, int) and isinstance(value, list):
            below = value[step] if len(value) > step else None
        yield Place((*path, step), schema, known + (_neighbours(value, step) if raw.get(RULES) else ()))
        if len(path) < _DEEPEST:
            yield from _below((*path, step), schema, below, known)


def _fields(path: tuple[str | int, ...], raw: Raw, value: Any) -> Iterator[tuple[str | int, Raw]]:
    for name, schema in (raw.get("properties") or {}).items():
        if path or name not in _NOT_WRITTEN:
            yield name, schema
    if (items := single_items(raw)) is not None:
        yield 0, items
    values = raw.get("additionalProperties")
    if isinstance(values, Mapping):
        yield next(iter(value), "key-0") if isinstance(value, dict) else "key-0", values


def _neighbours(value: Any, step: str | int) -> tuple[Any, ...]:
    if not isinstance(value, dict):
        return ()
    return tuple(each for name, each in value.items() if name != step and isinstance(each, int | float | str))

"""Renders an object as lines of YAML, each with the path of its field.

Guarantees: all lines together are a YAML document that parses to the object. The paths have the form of
`inspection.differences`, so that each line can be assigned to the change that set it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.inspection.differences import field_path, item_paths

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*\Z")
"""Matches strings that every version of YAML reads as plain strings, and never as a number, a date, or syntax."""

_TAKEN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_BREAKS = re.compile("[^\\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\ufeff]")
"""Characters that a block scalar cannot contain: white space except spaces and newlines, and control characters."""

_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
"""Characters that JSON allows in a string, but YAML does not."""


class Line(NamedTuple):
    """One line of YAML; `depth` is its indentation in steps of two spaces."""

    depth: int
    text: str
    path: str
    """The path of the field whose value the line shows; empty if the line shows no value."""


def lines(value: dict[str, Any]) -> Iterator[Line]:
    """Yield the YAML lines of an object."""
    yield from _mapping(value, 0, "", "")


def _mapping(value: dict[str, Any], depth: int, path: str, lead: str) -> Iterator[Line]:
    """Yield the YAML lines of a mapping; `lead` precedes the first line, for example `- ` in a list."""
    for name, inner in value.items():
        yield from _entry(f"{lead}{scalar(name)}:", inner, depth - (1 if lead else 0), field_path(path, name), depth)
        lead = ""


def _entry(label: str, value: Any, at: int, path: str, depth: int) -> Iterator[Line]:
    if isinstance(value, dict) and value:
        yield Line(at, label, "")
        yield from _mapping(value, depth + 1, path, "")
    elif isinstance(value, list) and value:
        yield Line(at, label, "")
        yield from _items(value, depth, path)
    else:
        yield from _value(label, value, at, path, depth)


def _items(items: list[Any], depth: int, path: str) -> Iterator[Line]:
    for inner, item in zip(item_paths(path, items), items, strict=True):
        if isinstance(item, dict) and item:
            yield from _mapping(item, depth + 1, inner, "- ")
        elif isinstance(item, list) and item:
            yield Line(depth, "-", "")
            yield from _items(item, depth + 1, inner)
        else:
            yield from _value("-", item, depth, inner, depth)


def _value(label: str, value: Any, at: int, path: str, depth: int) -> Iterator[Line]:
    if not (isinstance(value, str) and "\n" in value.rstrip("\n")) or value[0] in " \n" or _BREAKS.search(value):
        yield Line(at, f"{label} {scalar(value)}", path)
        return
    ends = len(value) - len(value.rstrip("\n"))
    yield Line(at, f"{label} |{'-' if ends == 0 else '' if ends == 1 else '+'}", path)
    for line in value.removesuffix("\n").split("\n"):
        yield Line(depth + 1, line, path)


def scalar(value: Any) -> str:
    """Return a scalar on one YAML line: unquoted if the unquoted form is unambiguous, otherwise quoted."""
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _TAKEN:
        return value
    return msgspec.json.encode(value).decode().translate(_ESCAPES)

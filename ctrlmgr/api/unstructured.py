"""The mutable form of an object, for code that changes one: plain dicts and lists as JSON decodes to.

`api.object.Object` is what is stored and shared, and never changes; an `Unstructured` is private to one request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

Unstructured: TypeAlias = dict[str, Any]
"""A decoded API object: str keys; values are str, int, float, bool, None, list and dict."""

_written: Final = msgspec.json.Encoder(order="deterministic").encode


def metadata_of(fields: Unstructured) -> dict[str, Any]:
    """Return the `metadata` of `fields`, made if it is missing, so that it can be written to."""
    metadata: dict[str, Any] = fields.setdefault("metadata", {})
    return metadata


def generation_of(fields: Unstructured) -> int:
    """Return the generation of an object, 0 if it has none."""
    generation: int = (fields.get("metadata") or {}).get("generation") or 0
    return generation


def at(fields: Any, *path: str | int) -> Any:
    """Return what is at a path of fields and indexes, None when something on the way is missing."""
    for step in path:
        if isinstance(step, int):
            fields = fields[step] if isinstance(fields, list) and len(fields) > step else None
        else:
            fields = fields.get(step) if isinstance(fields, dict) else None
        if fields is None:
            return None
    return fields


def repeated(values: Iterable[Any]) -> frozenset[int]:
    """Return where a list has what it had before, in time that is linear in what it holds.

    The values are of one type, as a schema has made them: texts or numbers, or all of them objects.
    """
    seen: set[Any] = set()
    places: list[int] = []
    for index, value in enumerate(values):
        key = _written(value) if isinstance(value, dict | list) else value
        if key in seen:
            places.append(index)
        seen.add(key)
    return frozenset(places)

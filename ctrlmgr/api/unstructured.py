"""The mutable form of an object: dicts and lists of decoded JSON.

`api.object.Object` is immutable, stored and shared; an `Unstructured` belongs to one request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

Unstructured: TypeAlias = dict[str, Any]
"""A decoded API object: a dict with string keys, whose values are str, int, float, bool, None, list and dict."""

_written: Final = msgspec.json.Encoder(order="deterministic").encode


def metadata_of(fields: Unstructured) -> dict[str, Any]:
    """Return the `metadata` of `fields` for modification; if `metadata` is missing, create it."""
    metadata: dict[str, Any] = fields.setdefault("metadata", {})
    return metadata


def generation_of(fields: Unstructured) -> int:
    """Return the generation of an object, or 0 if the object has none."""
    generation: int = (fields.get("metadata") or {}).get("generation") or 0
    return generation


def at(fields: Any, *path: str | int) -> Any:
    """Return the value at a path of fields and indexes, or None if a part of the path is missing."""
    for step in path:
        if isinstance(step, int):
            fields = fields[step] if isinstance(fields, list) and len(fields) > step else None
        else:
            fields = fields.get(step) if isinstance(fields, dict) else None
        if fields is None:
            return None
    return fields


def repeated(values: Iterable[Any]) -> frozenset[int]:
    """Return the indexes of values that occur earlier in the list, in linear time.

    All values of the list must have the same type, which can be strings, numbers or objects. A list that a schema has
    decoded satisfies this condition.
    """
    seen: set[Any] = set()
    places: list[int] = []
    for index, value in enumerate(values):
        key = _written(value) if isinstance(value, dict | list) else value
        if key in seen:
            places.append(index)
        seen.add(key)
    return frozenset(places)

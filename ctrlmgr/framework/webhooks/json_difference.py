"""Computes the JSON patch (RFC 6902) between two objects.

Guarantees: applying the patch to the first object gives the second. Objects are compared field by field; a list that
differs is replaced as a whole. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Operation: TypeAlias = dict[str, Any]


def difference(before: Any, after: Any, path: str = "") -> Iterator[Operation]:
    """Yield the patch operations that change the value at `path` from `before` to `after`.

    If the values are equal, yield nothing.
    """
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before != after:
            yield {"op": "replace", "path": path, "value": after}
        return
    for name in before.keys() - after.keys():
        yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in after.items():
        inner = f"{path}/{_escaped(name)}"
        if name not in before:
            yield {"op": "add", "path": inner, "value": value}
        else:
            yield from difference(before[name], value, inner)


def _escaped(name: str) -> str:
    """Return a field's name, escaped as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")

"""Says how two specs differ, for refusals of changes that may not be made.

Kubernetes prints what Go's `cmp.Diff` makes of its structs there, which is not stable even between two runs of it;
this is shorter, has the fields' own names, and is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ctrlmgr.api.field import ROOT, Path


def difference(type_: str, old: Any, new: Any) -> str:
    """Return a line for each value that is gone (`-`) or new (`+`), as within a Go struct of type `type_`."""
    lines = [
        f"{sign} \t{path}: {msgspec.json.encode(value).decode()}," for sign, path, value in _changes(old, new, ROOT)
    ]
    return "\n".join((f"  {type_}{{", *lines, "  }", ""))


def _changes(old: Any, new: Any, path: Path) -> Iterator[tuple[str, Path, Any]]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _changes(old.get(key), new.get(key), path.child(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _changes(*pair, path.at(index))
    else:
        yield from (each for each in (("-", path, old), ("+", path, new)) if each[2] is not None)

"""Removes the fields of disabled feature gates from a written object.

Guarantees: a field is kept if the stored object already uses the feature of the field. The stored object is not
changed, even where the new object shares parts with it.

Rules come from Kubernetes' `pkg/api/pod/util.go`(`DropDisabledPodFields`) and the corresponding functions of other
kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.features.guards import EACH, GUARDS, PLACES, Guard, Steps


def drop_disabled(group: str, kind: str, new: Unstructured, old: Mapping[str, Any] | None) -> None:
    """Remove the fields of disabled gates from `new`, in place.

    `old` is the stored object; None if the object is created.
    """
    for place, owner in PLACES.get((group, kind), ()):
        part = _at(new, place)
        if not part:
            continue
        for guard in GUARDS[owner]:
            if not is_on(guard.gate):
                _drop(guard, part, _at(old or {}, place))


def _at(fields: Mapping[str, Any], place: Steps) -> Any:
    found: Any = fields
    for name in place:
        found = (found or {}).get(name)
    return found


def _drop(guard: Guard, new: Any, old: Any) -> None:
    if guard.only_with and not _is_used(new, guard.only_with, guard.kept):
        return
    if any(_is_used(old, steps, guard.kept) for steps in guard.used):
        return
    for steps in guard.fields:
        for owner in [*_owners(new, steps)]:
            if guard.kept != owner[steps[-1]] and owner.pop(steps[-1]) is not None and not owner and guard.prunes:
                _prune(new, steps[:-1])


def _is_used(owner: Any, steps: Steps, kept: str) -> bool:
    return any(each[steps[-1]] and each[steps[-1]] != kept for each in _owners(owner, steps))


def _owners(fields: Any, steps: Steps) -> Iterator[dict[str, Any]]:
    """Yield the structs that contain the last field of a path."""
    if not fields:
        return
    step, *rest = steps
    if step == EACH:
        values = fields.values() if isinstance(fields, dict) else fields
        if len(rest) == 1:  # the most frequent case, handled without a generator for each struct
            yield from (each for each in values if each and rest[0] in each)
            return
        for each in values:
            yield from _owners(each, tuple(rest))
    elif rest:
        yield from _owners(fields.get(step), tuple(rest))
    elif step in fields:
        yield fields


def _prune(fields: Any, steps: Steps) -> None:
    for owner in [*_owners(fields, steps)]:
        if not owner[steps[-1]]:
            del owner[steps[-1]]

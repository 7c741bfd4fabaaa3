"""The fields that a request cannot change, so that the manager of the request does not own these fields.

A write to an object does not change its status, and a write to `/status` does not change the spec. Kinds declare
further fields that requests cannot change (`Kind.resets`). Source: the `GetResetFields` of kubernetes
`pkg/registry/*/*/strategy.go`; apiserver `pkg/endpoints/installer.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from ctrlmgr.engine.managedfields.field_set import (
    FieldSet,
    difference_with_children,
    matching,
    of_paths,
)

Filter: TypeAlias = Callable[[FieldSet], FieldSet]
"""The type of a filter that removes, from a set, the fields which the manager cannot own."""


def all_but(*paths: tuple[str, ...]) -> Filter:
    """Return a filter that removes the given paths and all paths below them."""
    return partial(difference_with_children, other=of_paths(*paths))


def only(*paths: tuple[str, ...]) -> Filter:
    """Return a filter that keeps only the given paths and all paths below them."""
    return partial(matching, pattern=of_paths(*paths))


METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The fields that `metav1.ResetObjectMetaForStatus` resets, except those that no update can change."""
STATUS = ("status",)
"""The path of an object's status."""
_SPEC = ("spec",)

USUAL: Mapping[str, Filter] = {"": all_but(STATUS), "status": all_but(_SPEC)}
"""The default filters of a kind with a status, by subresource, where an empty name stands for the object itself."""


def keeping(metadata: Sequence[str]) -> Mapping[str, Filter]:
    """Return the default filters; in addition, a write to `/status` cannot change the given metadata fields."""
    if not metadata:
        return USUAL
    kept = [("metadata",)] if tuple(metadata) == METADATA else [("metadata", field) for field in metadata]
    return {"": all_but(STATUS), "status": all_but(_SPEC, *kept)}

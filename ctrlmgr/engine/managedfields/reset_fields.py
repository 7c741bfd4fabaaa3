"""The fields that a request cannot change, so that its manager does not own these fields.

A write to an object does not change its status, and a write to `/status` does not change the spec. Kinds declare
further fields of this sort (`Kind.resets`). Source: the `GetResetFields` of kubernetes `pkg/registry/*/*/strategy.go`;
apiserver `pkg/endpoints/installer.go`.
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
"""A filter that removes the fields which the manager cannot own from a set."""


def all_but(*paths: tuple[str, ...]) -> Filter:
    """Return a filter that removes these paths and all paths below these."""
    return partial(difference_with_children, other=of_paths(*paths))


def only(*paths: tuple[str, ...]) -> Filter:
    """Return a filter that keeps only these paths and all paths below these."""
    return partial(matching, pattern=of_paths(*paths))


METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The fields that `metav1.ResetObjectMetaForStatus` resets, except those that no update can change."""
STATUS = ("status",)
"""The path of an object's status."""
_SPEC = ("spec",)

USUAL: Mapping[str, Filter] = {"": all_but(STATUS), "status": all_but(_SPEC)}
"""The default filters of a kind with a status, by subresource (empty for the object itself)."""


def keeping(metadata: Sequence[str]) -> Mapping[str, Filter]:
    """Return the default filters; in addition, a write to `/status` cannot change these metadata fields."""
    if not metadata:
        return USUAL
    kept = [("metadata",)] if tuple(metadata) == METADATA else [("metadata", field) for field in metadata]
    return {"": all_but(STATUS), "status": all_but(_SPEC, *kept)}

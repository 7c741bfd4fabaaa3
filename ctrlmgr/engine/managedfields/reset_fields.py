"""The fields that a request cannot change however it names them, and that its manager therefore does not get to own.

A write to an object leaves its status alone, one to `/status` leaves the spec alone; what a kind has
to say beyond that is declared with it (`Kind.resets`).
Source: the `GetResetFields` of kubernetes `pkg/registry/*/*/strategy.go`; apiserver `pkg/endpoints/installer.go`.
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
"""Takes from a set what cannot be owned."""


def all_but(*paths: tuple[str, ...]) -> Filter:
    """Return what takes these paths, and what is below them, out of a set."""
    return partial(difference_with_children, other=of_paths(*paths))


def only(*paths: tuple[str, ...]) -> Filter:
    """Return what takes everything but these paths, and what is below them, out of a set."""
    return partial(matching, pattern=of_paths(*paths))


METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The fields that `metav1.ResetObjectMetaForStatus` resets, without those that no update changes."""
STATUS = ("status",)
"""The path of an object's status."""
_SPEC = ("spec",)

USUAL: Mapping[str, Filter] = {"": all_but(STATUS), "status": all_but(_SPEC)}
"""What a write to a kind with a status cannot change, by subresource (empty for the object itself)."""


def keeping(metadata: Sequence[str]) -> Mapping[str, Filter]:
    """Return the same where a write to `/status` does not change these fields of metadata either."""
    if not metadata:
        return USUAL
    kept = [("metadata",)] if tuple(metadata) == METADATA else [("metadata", field) for field in metadata]
    return {"": all_but(STATUS), "status": all_but(_SPEC, *kept)}

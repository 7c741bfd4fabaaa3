"""Leases: durations and transitions are counts; a holder must have read one to write it.

Rules come from Kubernetes' `pkg/registry/coordination/lease` and `pkg/apis/coordination/validation`. Coordinated
leader election (KEP-4355) is off, as it is by default, so its two fields are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.rules import nonnegative

_SPEC = Path("spec")
_COORDINATION = ("strategy", "preferredHolder")


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease."""

    allow_create_on_update = True
    allow_unconditional_update = False
    revalidates = False
    any_finalizer = True

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Drop what belongs to coordinated leader election."""
        _drop(obj, {})

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Drop what belongs to coordinated leader election, unless it is there already."""
        _drop(new, old.get("spec") or {})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the counts."""
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid(_SPEC.child("leaseDurationSeconds"), duration, "must be greater than 0"))
        return errors + nonnegative(spec.get("leaseTransitions"), _SPEC.child("leaseTransitions"))


def _drop(obj: Unstructured, kept: Mapping[str, Any]) -> None:
    spec = obj.get("spec") or {}
    if any(each in spec and each not in kept for each in _COORDINATION):
        obj["spec"] = {key: value for key, value in spec.items() if key not in _COORDINATION or key in kept}

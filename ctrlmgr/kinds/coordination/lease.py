"""The strategy of Leases: validates durations and transitions, and requires a resourceVersion in updates.

Source: Kubernetes' `pkg/registry/coordination/lease` and `pkg/apis/coordination/validation`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.common_rules import nonnegative

_SPEC = Path("spec")


class LeaseStrategy(Strategy):
    """The strategy of the kind coordination.k8s.io/v1 Lease."""

    allow_create_on_update = True
    allow_unconditional_update = False
    revalidates = 0
    any_finalizer = True

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the duration of a Lease and its number of transitions."""
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid(_SPEC.child("leaseDurationSeconds"), duration, "must be greater than 0"))
        return errors + nonnegative(spec.get("leaseTransitions"), _SPEC.child("leaseTransitions"))

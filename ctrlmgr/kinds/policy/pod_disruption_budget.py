"""The strategy of PodDisruptionBudgets, which limit how many pods may be evicted at a time.

Source: Kubernetes `pkg/apis/policy/validation/validation.go` and `pkg/registry/policy/poddisruptionbudget/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, tentatively
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.apps.templates import SPEC, shown_selector
from ctrlmgr.kinds.common_rules import at_most_all, int_or_percent, nonnegative_fields

_AMOUNTS = ("minAvailable", "maxUnavailable")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class PodDisruptionBudgetStrategy(Strategy):
    """The strategy of the kind policy/v1 PodDisruptionBudget."""

    allow_unconditional_update = False
    has_generation = True
    revalidates = 0
    name_check = staticmethod(name_formats.path_segment_name)
    checks_metadata = False
    compares_metadata = False

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource:
            return []
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        if all(spec.get(field) is not None for field in _AMOUNTS):
            errors.append(invalid(SPEC, _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
        for field in _AMOUNTS:
            if (amount := spec.get(field)) is not None:
                errors += int_or_percent(amount, SPEC.child(field)) + at_most_all(amount, SPEC.child(field))
        before = ((ctx.old or {}).get("spec") or {}).get("selector")
        lenient = bool(tentatively(lambda: validate_label_selector(before, Path())))
        path = SPEC.child("selector")
        errors += validate_label_selector(spec.get("selector"), path, invalid_values_allowed=lenient)
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            errors.append(not_supported(SPEC.child("unhealthyPodEvictionPolicy"), policy, _POLICIES))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the `status` of the object."""
        if not ctx.subresource:
            return []
        status = new.get("status") or {}
        errors = validate_conditions(status.get("conditions") or (), STATUS.child("conditions"))
        return errors + nonnegative_fields(status, _COUNTS, STATUS)


def _shown(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Format the spec of a PodDisruptionBudget for error messages, in the format in which Go prints its struct."""
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }

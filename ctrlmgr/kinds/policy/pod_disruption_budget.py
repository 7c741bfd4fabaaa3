"""PodDisruptionBudgets: how many pods may be taken away at a time.

Rules come from Kubernetes' `pkg/apis/policy/validation/validation.go`,
`pkg/registry/policy/poddisruptionbudget/strategy.go` and apimachinery's `pkg/apis/meta/v1/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, tentatively, too_long
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import names
from ctrlmgr.engine.validation.labels import validate_label_name, validate_label_selector
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.apps.templates import SPEC, shown_selector
from ctrlmgr.kinds.rules import at_most_all, int_or_percent, nonnegative_fields

_AMOUNTS = ("minAvailable", "maxUnavailable")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_STATUSES = ("False", "True", "Unknown")
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASONS = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


class PodDisruptionBudgetStrategy(Strategy):
    """policy/v1 PodDisruptionBudget."""

    allow_unconditional_update = False
    has_generation = True
    revalidates = False
    name_check = staticmethod(names.path_segment_name)
    checks_metadata = False
    compares_metadata = False

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check the spec."""
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
        """Check the status."""
        if not ctx.subresource:
            return []
        status = new.get("status") or {}
        errors = _validate_conditions(status.get("conditions") or (), STATUS.child("conditions"))
        return errors + nonnegative_fields(status, _COUNTS, STATUS)


def _shown(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as Go shows its struct in messages."""
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def _validate_conditions(conditions: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Check meta/v1 Conditions."""
    types = [each.get("type") or "" for each in conditions]
    again = repeated(types)
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        if index in again:
            errors.append(duplicate(path.at(index).child("type"), types[index]))
        errors += _validate_condition(condition, path.at(index))
    return errors


def _validate_condition(condition: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = validate_label_name(condition.get("type") or "", path.child("type"))
    status, generation = condition.get("status") or "", condition.get("observedGeneration") or 0
    if status not in _STATUSES:
        errors.append(not_supported(path.child("status"), status, _STATUSES))
    if generation < 0:
        errors.append(invalid(path.child("observedGeneration"), generation, "must be greater than or equal to zero"))
    if condition.get("lastTransitionTime") is None:
        errors.append(required(path.child("lastTransitionTime"), "must be set"))
    reason, below = condition.get("reason") or "", path.child("reason")
    if not reason:
        errors.append(required(below, "must be set"))
    elif not re.fullmatch(_REASON, reason):
        errors.append(invalid(below, reason, names.mismatch(_REASON_WORDS, _REASON, *_REASONS)))
    if names.length(reason) > _LONGEST_REASON:
        errors.append(too_long(below, _LONGEST_REASON))
    if names.length(condition.get("message") or "") > _LONGEST_MESSAGE:
        errors.append(too_long(path.child("message"), _LONGEST_MESSAGE))
    return errors

"""Validates the conditions in a status (meta/v1 Condition).

Rules come from apimachinery's `pkg/apis/meta/v1/validation/validation.go`, `ValidateConditions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, too_long
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_name

_STATUSES = ("False", "True", "Unknown")
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASONS = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


def validate_conditions(conditions: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate meta/v1 Conditions."""
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
        errors.append(required(path.child("lastTransitionTime")))
    reason, below = condition.get("reason") or "", path.child("reason")
    if not reason:
        errors.append(required(below))
    elif not re.fullmatch(_REASON, reason):
        errors.append(invalid(below, reason, name_formats.mismatch(_REASON_WORDS, _REASON, *_REASONS)))
    if name_formats.length(reason) > _LONGEST_REASON:
        errors.append(too_long(below, _LONGEST_REASON))
    if name_formats.length(condition.get("message") or "") > _LONGEST_MESSAGE:
        errors.append(too_long(path.child("message"), _LONGEST_MESSAGE))
    return errors

"""Validates labels and label selectors (apimachinery `pkg/apis/meta/v1/validation`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required
from ctrlmgr.engine.validation import name_formats


def validate_labels(labels: Mapping[str, str], path: Path) -> list[FieldError]:
    """Validate the keys and values of labels.

    As in Kubernetes, errors contain the path of the map, not of the entry.
    """
    errors: list[FieldError] = []
    for key, value in labels.items():
        if problems := name_formats.qualified_name(key):
            errors += [invalid(path, key, each) for each in problems]
        if problems := name_formats.label_value(value):
            errors += [invalid(path, value, each) for each in problems]
    return errors


def validate_label_name(key: str, path: Path) -> list[FieldError]:
    """Validate one label key."""
    return [invalid(path, key, each) for each in name_formats.qualified_name(key)]


def validate_label_selector(
    selector: Mapping[str, Any] | None, path: Path, *, invalid_values_allowed: bool = False
) -> list[FieldError]:
    """Validate a meta/v1 LabelSelector; None is valid and selects nothing.

    The argument `invalid_values_allowed` skips the validation of values in expressions, for objects that already had
    invalid values.
    """
    if not selector:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"))
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        below = path.child("matchExpressions").at(index)
        errors += validate_requirement(requirement, below, invalid_values_allowed=invalid_values_allowed)
    return errors


def validate_requirement(
    requirement: Mapping[str, Any],
    path: Path,
    *,
    invalid_values_allowed: bool = False,
    unknown_operator_allowed: bool = False,
) -> list[FieldError]:
    """Validate one requirement of a label selector.

    If `unknown_operator_allowed` is set, unknown operators are valid.
    """
    errors: list[FieldError] = []
    operator = requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(path.child("values"), detail))
    elif not unknown_operator_allowed:
        errors.append(invalid(path.child("operator"), operator, "not a valid selector operator"))
    errors += validate_label_name(requirement.get("key", ""), path.child("key"))
    if not invalid_values_allowed:
        errors += [
            invalid(path.child("values").at(index), value, each)
            for index, value in enumerate(values)
            for each in name_formats.label_value(value)
        ]
    return errors

"""Validates the status of FlowSchemas and PriorityLevelConfigurations, whose conditions must have unique types."""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, duplicate, required
from ctrlmgr.api.unstructured import Unstructured


def validate_conditions(obj: Unstructured) -> list[FieldError]:
    """Validate that the conditions of an object have unique types."""
    errors: list[FieldError] = []
    known: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        type_, path = condition.get("type") or "", Path("status.conditions").at(index).child("type")
        if type_ in known:
            errors.append(duplicate(path, type_))
        known.add(type_)
        if not type_:
            errors.append(required(path))
    return errors

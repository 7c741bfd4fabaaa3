"""The status of FlowSchemas and PriorityLevelConfigurations: conditions with unique types."""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, duplicate, required
from ctrlmgr.api.unstructured import Unstructured


def validate_conditions(obj: Unstructured) -> list[FieldError]:
    """Validate the types of an object's conditions."""
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

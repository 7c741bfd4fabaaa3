"""The validation rules that apply to PodGroups and to the templates of PodGroups in Workloads.

Source: Kubernetes `pkg/apis/scheduling/v1alpha2/zz_generated.validations.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.scheduling.priority_class import HIGHEST_USER_PRIORITY

Fields = Mapping[str, Any]
MOST_CLAIMS: Final = 4
"""The maximum number of resource claims of a PodGroup."""
_MODES: Final = ("Pod", "PodGroup")


def validate_group(spec: Fields, path: Path) -> list[FieldError]:
    """Validate the fields that a PodGroup copies from its template."""
    policy, at = spec.get("schedulingPolicy") or {}, path.child("schedulingPolicy")
    errors = one_of(policy, ("basic", "gang"), at)
    if (gang := policy.get("gang")) is not None:
        errors += _positive(gang.get("minCount") or 0, at.child("gang").child("minCount"))
    if (constraints := spec.get("schedulingConstraints")) is not None:
        errors += _validate_topology(constraints.get("topology") or (), path.child("schedulingConstraints", "topology"))
    errors += validate_named(spec.get("resourceClaims") or (), _validate_claim, path.child("resourceClaims"))
    if (mode := spec.get("disruptionMode")) is not None and mode not in _MODES:
        errors.append(not_supported(path.child("disruptionMode"), mode, _MODES))
    return errors + _validate_priority(spec, path)


def one_of(owner: Fields, names: Sequence[str], path: Path) -> list[FieldError]:
    """Validate that exactly one of the given fields is set (a union)."""
    found = [name for name in names if owner.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in names)
    if len(found) > 1:
        return [invalid(path, f"{{{', '.join(found)}}}", f"must specify exactly one of: {listed}")]
    return [] if found else [invalid(path, "", f"must specify one of: {listed}")]


def required_name(check: Callable[[str], list[str]], value: str, path: Path) -> list[FieldError]:
    """Validate a name that must not be empty."""
    return each_problem(check, value, path) if value else [required(path)]


def validate_named(
    entries: Sequence[Fields], check: Callable[[Fields, Path], list[FieldError]], path: Path, most: int = MOST_CLAIMS
) -> list[FieldError]:
    """Validate a list whose entries must have different names.

    If the list is too long, no further errors are returned.
    """
    if len(entries) > most:
        return [too_many(path, len(entries), most)]
    names = [each.get("name") or "" for each in entries]
    errors = [
        duplicate(path.at(index), dict(each)) for index, each in enumerate(entries) if names[index] in names[:index]
    ]
    return errors + [error for index, each in enumerate(entries) for error in check(each, path.at(index))]


def _positive(value: int, path: Path) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [invalid(path, value, "must be greater than or equal to 1")] if value < 1 else []


def _validate_topology(topology: Sequence[Fields], path: Path) -> list[FieldError]:
    if len(topology) > 1:
        return [too_many(path, len(topology), 1)]
    return [
        error
        for index, each in enumerate(topology)
        for error in required_name(name_formats.qualified_name, each.get("key") or "", path.at(index).child("key"))
    ]


def _validate_claim(claim: Fields, path: Path) -> list[FieldError]:
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    errors = one_of(claim, fields, path)
    errors += required_name(name_formats.dns1123_label, claim.get("name") or "", path.child("name"))
    for field in fields:
        if (name := claim.get(field)) is not None:
            errors += each_problem(name_formats.dns1123_subdomain, name, path.child(field))
    return errors


def _validate_priority(spec: Fields, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if name := spec.get("priorityClassName"):
        errors += each_problem(name_formats.dns1123_subdomain, name, path.child("priorityClassName"))
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_USER_PRIORITY:
        words = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
        errors.append(invalid(path.child("priority"), priority, words))
    return errors

"""The strategy of StorageVersionMigrations; each requests that all objects of a resource are stored again.

Source: Kubernetes `pkg/apis/storagemigration/validation/validation.go` and
`pkg/registry/storagemigration/storagemigration/strategy.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.common_rules import immutable
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

SUCCEEDED, FAILED = "Succeeded", "Failed"
"""The types of the conditions that end a migration."""

_RESOURCE = Path("spec").child("resource")
_STATUS = Path("status")
_is_revision = re.compile(r"[1-9][0-9]*").fullmatch


class StorageVersionMigrationStrategy(GuardedStrategy):
    """The strategy of the kind storagemigration.k8s.io/v1beta1 StorageVersionMigration."""

    status_keeps = METADATA

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the group and the resource to migrate."""
        if ctx.subresource:
            return []
        group, resource = (_resource_of(obj)[name] for name in ("group", "resource"))
        if not resource:
            errors = [required(_RESOURCE.child("resource"), "resource is required to be set")]
        else:
            errors = _problems(name_formats.dns1035_label(resource), resource, _RESOURCE.child("resource"))
        return errors + (
            _problems(name_formats.dns1123_subdomain(group), group, _RESOURCE.child("group")) if group else []
        )

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec is unchanged; in a write to `/status`, validate the status instead."""
        if ctx.subresource == "status":
            return _validate_status(new.get("status") or {}, old.get("status") or {})
        new_resource, old_resource = _resource_of(new), _resource_of(old)
        return immutable({"Resource": new_resource}, {"Resource": old_resource}, Path("spec"))


def condition_is_true(status: Mapping[str, Any], type_: str) -> bool:
    """Return whether the first condition of a given type in a migration's status is true."""
    found = [each.get("status") for each in status.get("conditions") or () if each.get("type") == type_]
    return found[:1] == ["True"]


def _resource_of(obj: Unstructured) -> dict[str, str]:
    resource = (obj.get("spec") or {}).get("resource") or {}
    return {name: resource.get(name) or "" for name in ("group", "resource")}


def _problems(problems: list[str], value: str, path: Path) -> list[FieldError]:
    return [invalid(path, value, ",".join(problems))] if problems else []


def _validate_status(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    path, conditions = _STATUS.child("conditions"), new.get("conditions") or []
    errors = _validate_revision(new.get("resourceVersion") or "")
    errors += validate_conditions(conditions, path)
    if old.get("resourceVersion") and old["resourceVersion"] != new.get("resourceVersion"):
        errors.append(invalid(_STATUS.child("resourceVersion"), new.get("resourceVersion") or "", IMMUTABLE))
    if condition_is_true(new, SUCCEEDED) and condition_is_true(new, FAILED):
        words = "Both success and failed conditions cannot be true at the same time"
        errors.append(invalid(path, conditions, words))
    for type_, name in ((SUCCEEDED, "Success"), (FAILED, "Failed")):
        if condition_is_true(old, type_) and not condition_is_true(new, type_):
            errors.append(invalid(path, conditions, f"{name} condition cannot be set to false once it is true"))
    return errors


def _validate_revision(revision: str) -> list[FieldError]:
    """Validate a resourceVersion, which must be a positive decimal number without leading zeros."""
    if not revision or _is_revision(revision):
        return []
    words = f"resource version is not well formed: {revision}"
    return [invalid(_STATUS.child("resourceVersion"), revision, words)]

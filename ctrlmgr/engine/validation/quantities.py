"""Validates the names and amounts of resources such as cpu and memory.

Rules come from `pkg/apis/core/helper/helpers.go` and the resource functions of `pkg/apis/core/validation`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.api import quantity
from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.engine.validation import name_formats

_COMPUTE = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_QUOTA = (
    _COMPUTE
    | {f"requests.{each}" for each in (*_COMPUTE, "storage")}
    | {f"limits.{each}" for each in _COMPUTE}
    | _COUNTED
)
_STANDARD = _QUOTA | {"storage"}
HUGE_PAGES = "hugepages-"
"""The prefix of resource names for huge pages; the page size follows the prefix."""


def is_huge_pages(name: str) -> bool:
    """Return whether a resource is memory in huge pages of some size, such as `hugepages-2Mi`."""
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Return whether a resource's name has no domain or one of Kubernetes' domains."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource, such as `example.com/gpu`, that a quota can name."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not name_formats.qualified_name(f"requests.{name}")


def is_overcommittable(name: str) -> bool:
    """Return whether limits of a resource may exceed the requests."""
    return is_native(name) and not is_huge_pages(name)


def is_standard_for_quota(name: str) -> bool:
    """Return whether a resource name without a domain is allowed in a ResourceQuota."""
    return name in _QUOTA or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def _is_counted(name: str) -> bool:
    return name in _COUNTED or is_extended(name)


def validate_resource_name(name: str, path: Path) -> list[FieldError]:
    """Validate a resource's name, which must be qualified and, if it has no domain, one of Kubernetes' names."""
    errors = [invalid(path, name, each) for each in name_formats.qualified_name(name)]
    if not errors and "/" not in name and name not in _STANDARD and not is_standard_for_quota(name):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def validate_container_resource_name(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a resource that a container requests."""
    errors = validate_resource_name(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge_pages(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_quota_resource_name(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a resource that a ResourceQuota limits."""
    errors = validate_resource_name(name, path)
    if "/" not in name and not is_standard_for_quota(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def validate_amount(name: str, amount: str, path: Path) -> list[FieldError]:
    """Validate an amount of a resource, which must not be negative, and must be an integer if the resource is counted.

    The argument `amount` is a quantity (`ValidateResourceQuantityValue`).
    """
    billionths = quantity.parse(amount)
    errors = [invalid(path, amount, "must be greater than or equal to 0")] if billionths < 0 else []
    if billionths % quantity.WHOLE and _is_counted(name):
        errors.append(invalid(path, amount, "must be an integer"))
    return errors


def validate_amounts(amounts: Mapping[str, str] | None, path: Path) -> list[FieldError]:
    """Validate the amounts of a node's resources.

    The paths of errors are those of fields, such as `status.capacity.cpu`.
    """
    return [error for name, each in (amounts or {}).items() for error in validate_amount(name, each, path.child(name))]

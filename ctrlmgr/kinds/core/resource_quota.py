"""The strategy of ResourceQuotas: validates the limited resources, and the scopes, which cannot change.

Source: Kubernetes `pkg/registry/core/resourcequota`, `pkg/apis/core/validation`, `ValidateResourceQuota`, and the
scopes of `pkg/apis/core/helper/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import MOST_ERRORS, FieldError, Path, invalid, required
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.engine.validation.quantities import (
    is_standard_for_quota,
    validate_amount,
    validate_quota_resource_name,
)

_SPEC = Path("spec")
_STATUS = Path("status")
_COMPUTE = frozenset(
    ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"),
)
_SCOPES = {
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "NotBestEffort": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""The resources that a ResourceQuota with a given scope can limit, keyed by the scope."""
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_WITHOUT_VALUES = frozenset(
    ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
)
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class ResourceQuotaStrategy(Strategy):
    """The strategy of the kind v1 ResourceQuota."""

    returns_deleted = True
    revalidates = 0

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the names of the resources, the amounts and the scopes of a ResourceQuota."""
        if ctx.subresource:
            return []
        spec = obj.get("spec") or {}
        hard = spec.get("hard") or {}
        errors = _validate_amounts(hard, _SPEC.child("hard"))
        errors += _validate_scopes(spec.get("scopes") or (), hard, _SPEC.child("scopes"))
        return errors + _validate_selector(spec, hard)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about a new ResourceQuota in which requests may exceed the limits."""
        return [] if old is not None else _limit_warnings((obj.get("spec") or {}).get("hard") or {})

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the scopes are unchanged; in a write to `/status`, validate the status instead."""
        if ctx.subresource == "status":
            status = new.get("status") or {}
            errors = _validate_amounts(status.get("hard") or {}, _STATUS.child("hard"))
            return errors + _validate_amounts(status.get("used") or {}, _STATUS.child("used"))
        scopes, before = ((each.get("spec") or {}).get("scopes") or [] for each in (new, old))
        return [] if set(scopes) == set(before) else [invalid(_SPEC.child("scopes"), scopes or None, IMMUTABLE)]


def _limit_warnings(hard: Mapping[str, str]) -> list[str]:
    """Warn about requests in a ResourceQuota that may exceed its limits."""
    found: list[str] = []
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request in hard and limit in hard and parse(hard[request]) > parse(hard[limit]):
            found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
    return found


def _validate_amounts(amounts: Mapping[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        errors += validate_quota_resource_name(name, path.key(name))
        errors += validate_amount(name, amount, path.key(name))
    return errors


def _validate_scopes(scopes: Sequence[str], hard: Iterable[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    misfits = {scope: _misfits(scope, hard) for scope in set(scopes)}
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        if count := misfits[scope]:
            errors += [invalid(path, scopes, "unsupported scope applied to resource")] * count
    return errors + _validate_opposites(scopes, scopes, path)


def _misfits(scope: str, hard: Iterable[str]) -> int:
    """Count the resources that a scope cannot limit, but at most as many as a response may contain errors."""
    if scope not in _SCOPES:  # as in Kubernetes, an unknown scope accepts every resource
        return 0
    fitting = _SCOPES[scope]
    return min(sum(is_standard_for_quota(each) and each not in fitting for each in hard), MOST_ERRORS)


def _validate_opposites(scopes: Iterable[str], shown: Any, path: Path) -> list[FieldError]:
    named = set(scopes)
    return [invalid(path, shown or None, "conflicting scopes") for pair in _OPPOSITES if named.issuperset(pair)]


def _validate_selector(spec: Mapping[str, Any], hard: Iterable[str]) -> list[FieldError]:
    selector = spec.get("scopeSelector")
    if selector is None:
        return []
    path = _SPEC.child("scopeSelector", "matchExpressions")
    requirements = selector.get("matchExpressions") or ()
    errors: list[FieldError] = []
    shown = {"MatchExpressions": [_shown(each) for each in requirements]}
    misfits = {scope: _misfits(scope, hard) for scope in {each.get("scopeName", "") for each in requirements}}
    for each in requirements:
        scope = each.get("scopeName", "")
        if scope not in _SCOPES:
            errors.append(invalid(path.child("scopeName"), scope, "unsupported scope"))
        if count := misfits[scope]:
            errors += [invalid(path, shown, "unsupported scope applied to resource")] * count
        errors += _validate_requirement(each, path)
    scopes = [each.get("scopeName", "") for each in requirements]
    return errors + _validate_opposites(scopes, spec.get("scopes"), path)


def _shown(requirement: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"ScopeName": "scopeName", "Operator": "operator"}
    values = {"Values": requirement.get("values") or None}
    return {name: requirement.get(field, "") for name, field in fields.items()} | values


def _validate_requirement(requirement: Mapping[str, Any], path: Path) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    errors: list[FieldError] = []
    if requirement.get("scopeName") in _WITHOUT_VALUES and operator != "Exists":
        errors.append(invalid(path.child("operator"), operator, _ONLY_EXISTS))
    if operator in ("In", "NotIn"):
        if not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(path.child("values"), words))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(path.child("values"), values, words))
    else:
        errors.append(invalid(path.child("operator"), operator, "not a valid selector operator"))
    return errors

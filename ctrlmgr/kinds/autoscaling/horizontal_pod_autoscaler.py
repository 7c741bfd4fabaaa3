"""The strategy of HorizontalPodAutoscalers: defaults and validation.

Source: Kubernetes' `pkg/apis/autoscaling/v2/defaults.go`, `pkg/apis/autoscaling/validation/validation.go` and
`pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import validate_container_resource_name
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.apps.templates import SPEC, fill
from ctrlmgr.kinds.common_rules import NEGATIVE, each_problem, nonnegative

_Check: TypeAlias = Callable[[Mapping[str, Any], Path], list[FieldError]]

_CPU_UTILIZATION = 80
_LONGEST_PERIOD, _LONGEST_WINDOW = 1800, 3600
_METRICS = ("ContainerResource", "External", "Object", "Pods", "Resource")
_POLICIES = ("Percent", "Pods")
_SELECTIONS = ("Disabled", "Max", "Min")
_TARGETS = ("Utilization", "Value", "AverageValue")
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_RULES: Mapping[str, Mapping[str, Any]] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": ({"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT),
    },
    "scaleDown": {"selectPolicy": "Max", "policies": (_PERCENT,)},
}


_FROM_ELSEWHERE = ("Object", "External")
_NOTHING_TO_SCALE_BY = "must specify at least one Object or External metric to support scaling to zero replicas"


class HorizontalPodAutoscalerStrategy(Strategy):
    """The strategy of the kind autoscaling/v2 HorizontalPodAutoscaler."""

    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the defaults: a minimum of one pod, a CPU target, and the fields of scaling rules."""
        spec = obj.setdefault("spec", {})
        fill(spec, {"minReplicas": 1})
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if (behavior := spec.get("behavior")) is not None:
            for direction, rules in _RULES.items():
                own = behavior[direction] = behavior.get(direction) or {}
                fill(own, rules)
                own["policies"] = [dict(each) for each in own["policies"]]

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object.

        If the old reference to the scale target had no API group, the new reference also needs no API group.
        """
        if ctx.subresource:
            return []
        spec, before = obj.get("spec") or {}, ((ctx.old or {}).get("spec") or {}).get("scaleTargetRef") or {}
        errors = _validate_bounds(spec)
        target = spec.get("scaleTargetRef") or {}
        errors += _validate_reference(target, SPEC.child("scaleTargetRef"))
        errors += _validate_group(target, before if ctx.old else None, SPEC.child("scaleTargetRef", "apiVersion"))
        for index, metric in enumerate(spec.get("metrics") or ()):
            errors += _validate_metric(metric, SPEC.child("metrics").at(index))
        if spec.get("minReplicas") == 0 and not any(each.get("type") in _FROM_ELSEWHERE for each in spec["metrics"]):
            errors.append(forbidden(SPEC.child("metrics"), _NOTHING_TO_SCALE_BY))
        for direction in _RULES:
            if (rules := (spec.get("behavior") or {}).get(direction)) is not None:
                errors += _validate_rules(rules, SPEC.child("behavior", direction))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the `status` of the object."""
        if not ctx.subresource:
            return []
        status = new.get("status") or {}
        errors = nonnegative(status.get("currentReplicas"), STATUS.child("currentReplicas"))
        return errors + nonnegative(status.get("desiredReplicas"), STATUS.child("desiredReplicas"))


def _validate_bounds(spec: Mapping[str, Any]) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    path = SPEC.child("maxReplicas")
    errors: list[FieldError] = []
    if least is not None and least < 1:
        errors.append(invalid(SPEC.child("minReplicas"), least, "must be greater than or equal to 1"))
    if not most:
        errors.append(required(path, "must be set and greater than 0"))
    elif most < 1:
        errors.append(invalid(path, most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid(path, most, "must be greater than or equal to `minReplicas`"))
    return errors


def _validate_reference(reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        errors += each_problem(name_formats.path_segment_name, value, path.child(field))
        if not value:
            errors.append(required(path.child(field)))
    return errors


def _group_problem(reference: Mapping[str, Any], *, needed: bool) -> str:
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    group = version.rpartition("/")[0]
    return "" if group or not needed else "apiVersion must specify API group"


def _validate_group(reference: Mapping[str, Any], before: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    """Return an error if a target reference has no API group.

    References to ReplicationControllers, and references whose old version also had no group, are allowed.
    """
    needed = reference.get("kind") != "ReplicationController"
    problem = _group_problem(reference, needed=needed)
    if not problem or (before is not None and _group_problem(before, needed=True)):
        return []
    return [invalid(path, reference.get("apiVersion") or "", problem)]


def _validate_metric(metric: Mapping[str, Any], path: Path) -> list[FieldError]:
    type_, below = metric.get("type") or "", path.child("type")
    given = [field for field in _SOURCES if metric.get(field) is not None]
    errors = [] if type_ else [required(below, "must specify a metric source type")]
    if type_ not in _METRICS:
        errors.append(not_supported(below, type_, _METRICS))
    for field in given[:1]:
        errors += _SOURCES[field](metric[field], path.child(field))
    expected = f"{type_[:1].lower()}{type_[1:]}"
    if type_ not in _METRICS:
        errors.append(not_supported(below, type_, _METRICS))
    elif expected not in given:
        errors.append(required(path.child(expected), "must populate information for the given metric source"))
    others = sorted(each for each in given if each != expected) if len(given) != 1 else ()
    return errors + [forbidden(path.child(each), "must populate the given metric source only") for each in others]


def _object(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    described, below = source.get("describedObject") or {}, path.child("describedObject")
    errors = _validate_reference(described, below)
    if problem := _group_problem(described, needed=False):
        errors.append(invalid(below.child("apiVersion"), described["apiVersion"], problem))
    errors += _validate_identifier(source, path) + _validate_target(source, path)
    target = source.get("target") or {}
    if target.get("value") is None and target.get("averageValue") is None:
        errors.append(required(path.child("target", "averageValue"), "must set either a target value or averageValue"))
    return errors


def _external(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_identifier(source, path) + _validate_target(source, path)
    target, below = source.get("target") or {}, path.child("target")
    given = [target.get(field) is not None for field in ("value", "averageValue")]
    if not any(given):
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(below.child("averageValue"), detail))
    if all(given):
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(below.child("value"), detail))
    return errors


def _pods(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_identifier(source, path) + _validate_target(source, path)
    if (source.get("target") or {}).get("averageValue") is None:
        detail = "must specify a positive target averageValue"
        errors.append(required(path.child("target", "averageValue"), detail))
    return errors


def _resource(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = [] if source.get("name") else [required(path.child("name"), "must specify a resource name")]
    return errors + _validate_resource_target(source, path)


def _container_resource(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    name, at = source.get("name") or "", path.child("name")
    errors = validate_container_resource_name(name, at) if name else [required(at, "must specify a resource name")]
    container, below = source.get("container") or "", path.child("container")
    if container:
        errors += each_problem(name_formats.dns1123_label, container, below)
    else:
        errors.append(required(below, "must specify a container"))
    return errors + _validate_resource_target(source, path)


_SOURCES: Mapping[str, _Check] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _validate_resource_target(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_target(source, path)
    target, below = source.get("target") or {}, path.child("target")
    given = [target.get(field) is not None for field in ("averageUtilization", "averageValue")]
    if not any(given):
        detail = "must set either a target raw value or a target utilization"
        errors.append(required(below.child("averageUtilization"), detail))
    if all(given):
        detail = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(below.child("averageValue"), detail))
    return errors


def _validate_identifier(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    name, below = (source.get("metric") or {}).get("name") or "", path.child("metric", "name")
    return (
        each_problem(name_formats.path_segment_name, name, below)
        if name
        else [required(below, "must specify a metric name")]
    )


def _validate_target(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    target, below = source.get("target") or {}, path.child("target")
    type_ = target.get("type") or ""
    errors = [] if type_ else [required(below.child("type"), "must specify a metric target type")]
    if type_ not in _TARGETS:
        detail = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid(below.child("type"), type_, detail))
    amounts = {field: target[field] for field in ("value", "averageValue") if field in target}
    errors += [
        invalid(below.child(field), each, "must be positive") for field, each in amounts.items() if parse(each) <= 0
    ]
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(invalid(below.child("averageUtilization"), utilization, "must be greater than 0"))
    return errors


def _validate_rules(rules: Mapping[str, Any], path: Path) -> list[FieldError]:
    window, selection = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    policies, below = rules.get("policies") or (), path.child("policies")
    errors = _validate_seconds(window, 0, _LONGEST_WINDOW, path.child("stabilizationWindowSeconds"))
    if selection not in _SELECTIONS:
        errors.append(not_supported(path.child("selectPolicy"), selection, _SELECTIONS))
    if not policies:
        errors.append(required(below, "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        errors += _validate_policy(policy, below.at(index))
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse(tolerance) < 0:
        errors.append(invalid(path.child("tolerance"), tolerance, NEGATIVE))
    return errors


def _validate_policy(policy: Mapping[str, Any], path: Path) -> list[FieldError]:
    type_, value = policy.get("type") or "", policy.get("value") or 0
    errors = [] if type_ in _POLICIES else [not_supported(path.child("type"), type_, _POLICIES)]
    if value <= 0:
        errors.append(invalid(path.child("value"), value, "must be greater than zero"))
    return errors + _validate_seconds(policy.get("periodSeconds") or 0, 1, _LONGEST_PERIOD, path.child("periodSeconds"))


def _validate_seconds(seconds: int | None, least: int, most: int, path: Path) -> list[FieldError]:
    if seconds is None or least <= seconds <= most:
        return []
    if seconds > most:
        return [invalid(path, seconds, f"must be less than or equal to {most}")]
    return [invalid(path, seconds, "must be greater than zero" if least else "must be greater than or equal to zero")]

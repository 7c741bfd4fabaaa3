"""Converts HorizontalPodAutoscalers between autoscaling/v1 and autoscaling/v2.

Guarantees: if a value has no field in autoscaling/v1, an annotation contains the value as JSON, so that a round trip
loses nothing. In autoscaling/v2, a HorizontalPodAutoscaler never has the annotations of the conversion. Malformed
annotations are ignored.

Source: Kubernetes' `pkg/apis/autoscaling/v1/conversion.go`, `annotations.go` and `helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.golang.go_text import escape_html
from ctrlmgr.schema import strict_json
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema_pruning import prune
from ctrlmgr.schema.structs import read_value

_ANNOTATION = "autoscaling.alpha.kubernetes.io/"
_METRICS = f"{_ANNOTATION}metrics"
_CURRENT_METRICS = f"{_ANNOTATION}current-metrics"
_CONDITIONS = f"{_ANNOTATION}conditions"
_BEHAVIOR = f"{_ANNOTATION}behavior"
_ROUND_TRIP = (
    _METRICS,
    _CURRENT_METRICS,
    _CONDITIONS,
    _BEHAVIOR,
    f"{_ANNOTATION}scale-down-tolerance",
    f"{_ANNOTATION}scale-up-tolerance",
)
_DEFAULT_UTILIZATION = 80
_DEFINITION = "io.k8s.api.autoscaling.v2."

_encode = msgspec.json.Encoder().encode


class _Field(NamedTuple):
    """A field of a metric in autoscaling/v1, and the path of the corresponding value in autoscaling/v2."""

    name: str
    path: tuple[str, ...]
    zero: str | None = None
    """The value of a quantity that is not set; a quantity is never absent, because it is not a pointer in Go."""


def _resource(values: str, zero: str | None) -> tuple[_Field, ...]:
    return (
        _Field("name", ("name",)),
        _Field(f"{values}AverageUtilization", (values, "averageUtilization")),
        _Field(f"{values}AverageValue", (values, "averageValue"), zero),
    )


def _layout(values: str, zero: str | None) -> Mapping[str, tuple[_Field, ...]]:
    """Return the autoscaling/v1 fields of each type of metric.

    In autoscaling/v2, the values are in `target` in a spec, and in `current` in a status.
    """
    name, selector = _Field("metricName", ("metric", "name")), ("metric", "selector")
    value, average_value = (values, "value"), (values, "averageValue")
    return {
        "object": (
            _Field("target", ("describedObject",)),
            name,
            _Field(f"{values}Value", value, "0"),
            _Field("selector", selector),
            _Field("averageValue", average_value),
        ),
        "pods": (name, _Field(f"{values}AverageValue", average_value, "0"), _Field("selector", selector)),
        "resource": _resource(values, zero),
        "containerResource": (*_resource(values, zero), _Field("container", ("container",))),
        "external": (
            name,
            _Field("metricSelector", selector),
            _Field(f"{values}Value", value, zero),
            _Field(f"{values}AverageValue", average_value),
        ),
    }


_SPECS = _layout("target", None)
_STATUSES = _layout("current", "0")

_TARGET_TYPES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "object": lambda target: "AverageValue" if "averageValue" in target else "Value",
    "pods": lambda target: "AverageValue",
    "resource": lambda target: "Utilization" if "averageUtilization" in target else "AverageValue",
    "containerResource": lambda target: "Utilization" if "averageUtilization" in target else "AverageValue",
    "external": lambda target: "Value" if "value" in target else "AverageValue",
}
"""The type of the target in autoscaling/v2 for each type of metric. In autoscaling/v1, there is no field for the type
of the target.
"""


def to_v2(fields: Unstructured) -> Unstructured:
    """Return a HorizontalPodAutoscaler of autoscaling/v1, converted to autoscaling/v2."""
    annotations = fields.get("metadata", {}).get("annotations", {})
    spec, status = dict(fields.get("spec", {})), dict(fields.get("status", {}))
    cpu = _cpu(spec.pop("targetCPUUtilizationPercentage", None), "target", type="Utilization")
    metrics = _read_list(annotations, _METRICS, "MetricSpec", _spec_to_v2)
    spec["metrics"] = [*(metrics or []), *cpu] or _cpu(_DEFAULT_UTILIZATION, "target", type="Utilization")
    behavior = _read(annotations, _BEHAVIOR, _behavior_to_v2, f"{_DEFINITION}HorizontalPodAutoscalerBehavior")
    if behavior:
        spec["behavior"] = behavior
    current = _cpu(status.pop("currentCPUUtilizationPercentage", None), "current")
    recorded = _read_list(annotations, _CURRENT_METRICS, "MetricStatus", lambda each: _to_v2(each, _STATUSES))
    status["currentMetrics"] = (current if recorded is None else recorded) or None
    conditions = _read_list(annotations, _CONDITIONS, "HorizontalPodAutoscalerCondition", lambda each: each)
    if conditions:
        status["conditions"] = conditions
    return _with(fields, "autoscaling/v2", spec, status, {})


def to_v1(fields: Unstructured) -> Unstructured:
    """Return a HorizontalPodAutoscaler of autoscaling/v2, converted to autoscaling/v1."""
    spec, status = dict(fields.get("spec", {})), dict(fields.get("status", {}))
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None)
    utilizations = [each["resource"]["target"].get("averageUtilization") for each in metrics if _is_cpu(each)]
    if utilizations and utilizations[0] is not None:
        spec["targetCPUUtilizationPercentage"] = utilizations[0]
    for each in filter(_is_cpu, current):
        if "averageUtilization" in each["resource"]["current"]:
            status["currentCPUUtilizationPercentage"] = each["resource"]["current"]["averageUtilization"]
    others = [each for each in metrics if not (_is_cpu(each) and "averageUtilization" in each["resource"]["target"])]
    saved = {
        _METRICS: [_to_v1(each, _SPECS) for each in others],
        _CURRENT_METRICS: [_to_v1(each, _STATUSES) for each in current],
        _CONDITIONS: conditions,
        _BEHAVIOR: behavior and _behavior_to_internal(behavior),
    }
    return _with(fields, "autoscaling/v1", spec, status, {name: _json(each) for name, each in saved.items() if each})


def _with(fields: Unstructured, api_version: str, spec: Any, status: Any, saved: Mapping[str, str]) -> Unstructured:
    """Return the fields of a HorizontalPodAutoscaler in another version.

    The annotations in `saved` replace the annotations that an earlier conversion has written.
    """
    converted = {**fields, "apiVersion": api_version, "spec": spec, "status": status}
    metadata = converted["metadata"] = dict(metadata_of(fields))
    annotations = {
        key: text for key, text in (metadata.pop("annotations", None) or {}).items() if key not in _ROUND_TRIP
    }
    if annotations or saved:
        metadata["annotations"] = {**annotations, **saved}
    return converted


def _cpu(utilization: int | None, values: str, **more: str) -> list[dict[str, Any]]:
    """Return the CPU percentage of autoscaling/v1 as a list with one metric; empty if there is no percentage."""
    if utilization is None:
        return []
    return [{"type": "Resource", "resource": {"name": "cpu", values: {**more, "averageUtilization": utilization}}}]


def _is_cpu(metric: Mapping[str, Any]) -> bool:
    return bool(metric["type"] == "Resource" and metric.get("resource", {}).get("name") == "cpu")


def _to_v1(metric: Mapping[str, Any], layout: Mapping[str, tuple[_Field, ...]]) -> dict[str, Any]:
    converted: dict[str, Any] = {"type": metric["type"]}
    for source in filter(metric.__contains__, layout):
        values = {field.name: _at(metric[source], field) for field in layout[source]}
        converted[source] = {name: value for name, value in values.items() if value is not None}
    return converted


def _at(source: Any, field: _Field) -> Any:
    for step in field.path:
        source = source.get(step)
        if source is None:
            return field.zero
    return source


def _to_v2(metric: Mapping[str, Any], layout: Mapping[str, tuple[_Field, ...]]) -> dict[str, Any]:
    converted: dict[str, Any] = {"type": metric["type"]}
    for source in filter(metric.__contains__, layout):
        converted[source] = {}
        for field in layout[source]:
            value = metric[source].get(field.name, field.zero)
            if value is not None:
                *way, last = field.path
                below = converted[source].setdefault(way[0], {}) if way else converted[source]
                below[last] = value
    return converted


def _spec_to_v2(metric: Mapping[str, Any]) -> dict[str, Any]:
    converted = _to_v2(metric, _SPECS)
    for source in filter(converted.__contains__, _TARGET_TYPES):
        target = converted[source].setdefault("target", {})
        target["type"] = _TARGET_TYPES[source](target)
    return converted


_RULES = {
    "stabilizationWindowSeconds": "StabilizationWindowSeconds",
    "selectPolicy": "SelectPolicy",
    "policies": "Policies",
    "tolerance": "Tolerance",
}
"""A Go struct as JSON with Go's field names.

The annotation contains Kubernetes' internal type, whose Go struct has no JSON names.
"""


def _behavior_to_internal(behavior: Mapping[str, Any]) -> dict[str, Any]:
    return {each[0].upper() + each[1:]: _rules_to_internal(behavior.get(each)) for each in ("scaleUp", "scaleDown")}


def _rules_to_internal(rules: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    internal = {go: rules.get(name) for name, go in _RULES.items()}
    internal["Policies"] = rules.get("policies") and [
        {"Type": each["type"], "Value": each["value"], "PeriodSeconds": each["periodSeconds"]}
        for each in rules["policies"]
    ]
    return internal


def _behavior_to_v2(value: Any) -> Any:
    """Rename all fields from Go's names to JSON names, which begin with a lower-case letter.

    Nulls, which are nil pointers in Go, are dropped.
    """
    if isinstance(value, list):
        return [_behavior_to_v2(each) for each in value]
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _behavior_to_v2(each) for key, each in value.items() if each is not None}
    return value


def _read_list(
    annotations: Mapping[str, str], name: str, definition: str, convert: Callable[[Mapping[str, Any]], Any]
) -> list[Any] | None:
    value: list[Any] | None = _read(
        annotations, name, lambda values: [convert(each) for each in values], f"{_DEFINITION}{definition}", is_list=True
    )
    return value


def _read(
    annotations: Mapping[str, str],
    name: str,
    convert: Callable[[Any], Any],
    definition: str,
    *,
    is_list: bool = False,
) -> Any:
    """Return the value of an annotation in its autoscaling/v2 form, validated by its schema.

    The result is None if the annotation is absent or malformed.
    """
    if name not in annotations:
        return None
    try:
        converted = convert(strict_json.decode(annotations[name].encode()))
        return [_shaped(each, definition) for each in converted] if is_list else _shaped(converted, definition)
    # Any of the three error types means that the annotation is malformed.
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _shaped(value: Any, definition: str) -> Any:
    """Return a value in the form of a schema definition.

    Raises ValueError if the value does not match the definition.
    """
    definitions = Definitions.builtin()
    pruned, problems = prune(definitions.schema(definition), value)
    if problems:
        raise ValueError(", ".join(problems))
    return msgspec.to_builtins(msgspec.convert(pruned, definitions.struct(definition), dec_hook=read_value))


def _json(value: Any) -> str:
    return escape_html(_encode(value)).decode()

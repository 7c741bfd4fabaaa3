"""The `kubectl get` columns of the group autoscaling (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import UNKNOWN, Ages
from ctrlmgr.engine.tables.rows import status_count
from ctrlmgr.engine.tables.table_printer import NONE, UNSET, Fields, age, printer

_MOST_METRICS = 2


def _autoscaler(fields: Fields, ages: Ages) -> list[Any]:
    spec = at(fields, "spec") or {}
    target = spec.get("scaleTargetRef") or {}
    lowest = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], at(fields, "status", "currentMetrics") or []),
        UNSET if lowest is None else str(lowest),
        spec.get("maxReplicas", 0),
        status_count(fields, "currentReplicas"),
        age(fields, ages),
    ]


def _metrics(metrics: list[Any], current: list[Any]) -> str:
    texts = [_metric(metric, current[index] if index < len(current) else {}) for index, metric in enumerate(metrics)]
    if len(texts) > _MOST_METRICS:
        return f"{', '.join(texts[:_MOST_METRICS])} + {len(texts) - _MOST_METRICS} more..."
    return ", ".join(texts) or NONE


def _metric(metric: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    source = metric.get("type", "")
    key = source[:1].lower() + source[1:]
    target, seen = at(metric, key, "target") or {}, at(current, key, "current") or {}
    label = f"{at(metric, key, 'name')}: " if source in ("Resource", "ContainerResource") else ""
    if target.get("averageUtilization") is not None:
        now = seen.get("averageUtilization")
        return f"{label}{UNKNOWN if now is None else f'{now}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        suffix = "" if label else " (avg)"
        return f"{label}{seen.get('averageValue') or UNKNOWN}/{target['averageValue']}{suffix}"
    return f"{label}{seen.get('value') or UNKNOWN}/{target.get('value', '')}"


def _scale(fields: Fields, ages: Ages) -> list[Any]:
    return [at(fields, "spec", "replicas") or 0, status_count(fields, "replicas"), age(fields, ages)]


SCALE = printer("Desired:integer|Available:integer|Age", _scale)
HORIZONTAL_POD_AUTOSCALER = printer("Reference|Targets|MinPods|MaxPods|Replicas|Age", _autoscaler)

"""The rows of what runs pods: apps, batch, autoscaling, policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ctrlmgr.server.describe.tables.ages import UNKNOWN, Ages, human_duration
from ctrlmgr.server.describe.tables.printer import (
    NONE,
    UNSET,
    Fields,
    Printer,
    age,
    at,
    containers,
    labels_text,
    printer,
    selector_text,
)

_MOST_METRICS = 2


def _replicas(fields: Fields) -> int:
    return int(at(fields, "spec", "replicas") or 0)


def _status(fields: Fields, name: str) -> int:
    return int(at(fields, "status", name) or 0)


def _template(fields: Fields) -> tuple[str, str]:
    return containers(at(fields, "spec", "template", "spec"))


def _deployment(fields: Fields, ages: Ages) -> list[Any]:
    return [
        f"{_status(fields, 'readyReplicas')}/{_replicas(fields)}",
        _status(fields, "updatedReplicas"),
        _status(fields, "availableReplicas"),
        age(fields, ages),
        *_template(fields),
        selector_text(at(fields, "spec", "selector")),
    ]


def _replica_set(fields: Fields, ages: Ages) -> list[Any]:
    selector = at(fields, "spec", "selector")
    return [*_replica_counts(fields, ages), *_template(fields), selector_text(selector)]


def _replication_controller(fields: Fields, ages: Ages) -> list[Any]:
    return [*_replica_counts(fields, ages), *_template(fields), labels_text(at(fields, "spec", "selector"))]


def _replica_counts(fields: Fields, ages: Ages) -> list[Any]:
    return [_replicas(fields), _status(fields, "replicas"), _status(fields, "readyReplicas"), age(fields, ages)]


def _stateful_set(fields: Fields, ages: Ages) -> list[Any]:
    return [f"{_status(fields, 'readyReplicas')}/{_replicas(fields)}", age(fields, ages), *_template(fields)]


def _daemon_set(fields: Fields, ages: Ages) -> list[Any]:
    return [
        _status(fields, "desiredNumberScheduled"),
        _status(fields, "currentNumberScheduled"),
        _status(fields, "numberReady"),
        _status(fields, "updatedNumberScheduled"),
        _status(fields, "numberAvailable"),
        labels_text(at(fields, "spec", "template", "spec", "nodeSelector")),
        age(fields, ages),
        *_template(fields),
        selector_text(at(fields, "spec", "selector")),
    ]


def _revision(fields: Fields, ages: Ages) -> list[Any]:
    owners = at(fields, "metadata", "ownerReferences") or []
    controller = next((each for each in owners if each.get("controller")), None)
    name = NONE
    if controller:
        group, slash, _ = controller.get("apiVersion", "").partition("/")
        kind = controller.get("kind", "").lower()
        name = f"{kind}.{group if slash else ''}/{controller.get('name', '')}".replace("./", "/")
    return [name, fields.get("revision", 0), age(fields, ages)]


def _job(fields: Fields, ages: Ages) -> list[Any]:
    names, images = _template(fields)
    selector = selector_text(at(fields, "spec", "selector"))
    return [
        _job_status(fields),
        _completions(fields),
        _job_duration(fields, ages),
        age(fields, ages),
        names,
        images,
        selector,
    ]


def _job_status(job: Fields) -> str:
    met = {each.get("type") for each in at(job, "status", "conditions") or () if each.get("status") == "True"}
    if "Complete" in met:
        return "Complete"
    if "Failed" in met:
        return "Failed"
    if at(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((type_ for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if type_ in met), "Running")


def _completions(job: Fields) -> str:
    succeeded, completions = _status(job, "succeeded"), at(job, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = at(job, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Fields, ages: Ages) -> str:
    started, completed = at(job, "status", "startTime"), at(job, "status", "completionTime")
    if not started:
        return ""
    if not completed:
        return ages.since(started)
    return human_duration(datetime.fromisoformat(completed) - datetime.fromisoformat(started))


def _cron_job(fields: Fields, ages: Ages) -> list[Any]:
    spec = at(fields, "spec") or {}
    scheduled = at(fields, "status", "lastScheduleTime")
    template = at(spec, "jobTemplate", "spec") or {}
    return [
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(at(fields, "status", "active") or ()),
        ages.since(scheduled) if scheduled else NONE,
        age(fields, ages),
        *containers(at(template, "template", "spec")),
        selector_text(template.get("selector")),
    ]


def _autoscaler(fields: Fields, ages: Ages) -> list[Any]:
    spec = at(fields, "spec") or {}
    target = spec.get("scaleTargetRef") or {}
    lowest = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], at(fields, "status", "currentMetrics") or []),
        UNSET if lowest is None else str(lowest),
        spec.get("maxReplicas", 0),
        _status(fields, "currentReplicas"),
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
    wanted, seen = at(metric, key, "target") or {}, at(current, key, "current") or {}
    label = f"{at(metric, key, 'name')}: " if source in ("Resource", "ContainerResource") else ""
    if wanted.get("averageUtilization") is not None:
        now = seen.get("averageUtilization")
        return f"{label}{UNKNOWN if now is None else f'{now}%'}/{wanted['averageUtilization']}%"
    if wanted.get("averageValue") is not None:
        suffix = "" if label else " (avg)"
        return f"{label}{seen.get('averageValue') or UNKNOWN}/{wanted['averageValue']}{suffix}"
    return f"{label}{seen.get('value') or UNKNOWN}/{wanted.get('value', '')}"


def _disruption_budget(fields: Fields, ages: Ages) -> list[Any]:
    spec = at(fields, "spec") or {}
    bounds = [str(spec[name]) if spec.get(name) is not None else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, _status(fields, "disruptionsAllowed"), age(fields, ages)]


def _scale(fields: Fields, ages: Ages) -> list[Any]:
    return [at(fields, "spec", "replicas") or 0, _status(fields, "replicas"), age(fields, ages)]


_REPLICAS = "Desired:integer|Current:integer|Ready:integer|Age|+Containers|+Images|+Selector"

PRINTERS: dict[str, Printer] = {
    "apps/v1/Deployment": printer("Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector", _deployment),
    "apps/v1/ReplicaSet": printer(_REPLICAS, _replica_set),
    "v1/ReplicationController": printer(_REPLICAS, _replication_controller),
    "apps/v1/StatefulSet": printer("Ready|Age|+Containers|+Images", _stateful_set),
    "apps/v1/DaemonSet": printer(
        "Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age"
        "|+Containers|+Images|+Selector",
        _daemon_set,
    ),
    "apps/v1/ControllerRevision": printer("Controller|Revision|Age", _revision),
    "batch/v1/Job": printer("Status|Completions|Duration|Age|+Containers|+Images|+Selector", _job),
    "batch/v1/CronJob": printer(
        "Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|+Containers|+Images|+Selector", _cron_job
    ),
    "autoscaling/v1/Scale": printer("Desired:integer|Available:integer|Age", _scale),
    "autoscaling/v2/HorizontalPodAutoscaler": printer("Reference|Targets|MinPods|MaxPods|Replicas|Age", _autoscaler),
    "policy/v1/PodDisruptionBudget": printer(
        "Min Available|Max Unavailable|Allowed Disruptions:integer|Age", _disruption_budget
    ),
}

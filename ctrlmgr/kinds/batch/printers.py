"""The `kubectl get` columns of the group batch (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages, human_duration
from ctrlmgr.engine.tables.rows import status_count
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, containers, printer, selector_text


def _template(fields: Fields) -> tuple[str, str]:
    return containers(at(fields, "spec", "template", "spec"))


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
    succeeded, completions = status_count(job, "succeeded"), at(job, "spec", "completions")
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


JOB = printer("Status|Completions|Duration|Age|+Containers|+Images|+Selector", _job)
CRON_JOB = printer(
    "Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|+Containers|+Images|+Selector", _cron_job
)

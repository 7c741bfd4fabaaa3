"""The `kubectl get` columns of scheduling.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, printer

PRIORITY_CLASS = printer(
    "Value|Global-Default|Age|PreemptionPolicy",
    lambda fields, ages: [
        fields.get("value", 0),
        bool(fields.get("globalDefault")),
        age(fields, ages),
        fields.get("preemptionPolicy") or "PreemptLowerPriority",
    ],
)
WORKLOAD = printer("Age", lambda fields, ages: [age(fields, ages)])


def _group(fields: Fields, ages: Ages) -> list[Any]:
    policy = "Basic" if at(fields, "spec", "schedulingPolicy", "gang") is None else "Gang"
    workload = at(fields, "spec", "podGroupTemplateRef", "workload", "workloadName")
    return [policy, workload or NONE, _state(fields), age(fields, ages)]


def _state(fields: Fields) -> str:
    conditions = {each.get("type"): each for each in at(fields, "status", "conditions") or ()}
    if (disrupted := conditions.get("DisruptionTarget")) is not None:
        return str(disrupted.get("reason") or "")
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


POD_GROUP = printer("Policy|Workload|Status|Age", _group)

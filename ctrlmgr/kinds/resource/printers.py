"""The `kubectl get` columns of resource.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import UNSET, Fields, age, joined, printer


def _claim_state(fields: Fields) -> str:
    states = ["allocated"] if at(fields, "status", "allocation") else []
    states += ["reserved"] if at(fields, "status", "reservedFor") else []
    states = ["deleted", *states] if at(fields, "metadata", "deletionTimestamp") else states
    return joined(states, "pending")


def _taint_rule(fields: Fields, ages: Ages) -> list[Any]:
    taint = at(fields, "spec", "taint") or {}
    added = taint.get("timeAdded")
    texts = [taint.get(name) or "" for name in ("key", "value", "effect")]
    return [*texts, ages.since(added) if added else "", age(fields, ages)]


AGE = printer("Age", aged())
RESOURCE_CLAIM = printer("State|Age", aged(_claim_state))
RESOURCE_SLICE = printer(
    "Node|Driver|Pool|Age",
    aged(text("spec", "nodeName", nothing=UNSET), text("spec", "driver"), text("spec", "pool", "name", nothing="")),
)
DEVICE_TAINT_RULE = printer("Key|Value|Effect|TimeAdded|Age", _taint_rule)

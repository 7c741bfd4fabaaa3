"""The `kubectl get` columns of resource.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import UNSET, Fields, joined, printer


def _claim_state(fields: Fields) -> str:
    states = ["allocated"] if at(fields, "status", "allocation") else []
    states += ["reserved"] if at(fields, "status", "reservedFor") else []
    states = ["deleted", *states] if at(fields, "metadata", "deletionTimestamp") else states
    return joined(states, "pending")


AGE = printer("Age", aged())
RESOURCE_CLAIM = printer("State|Age", aged(_claim_state))
RESOURCE_SLICE = printer(
    "Node|Driver|Pool|Age",
    aged(text("spec", "nodeName", nothing=UNSET), text("spec", "driver"), text("spec", "pool", "name", nothing="")),
)

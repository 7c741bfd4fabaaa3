"""The `kubectl get` columns of resource.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import NONE, UNSET, Fields, age, joined, printer


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


_DEVICES = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")


def _pool_request(fields: Fields, ages: Ages) -> list[Any]:
    driver, status = at(fields, "spec", "driver") or "", fields.get("status")
    if status is None:
        return [driver, *["-"] * 5, 0, "Pending", NONE]
    pools, count = status.get("pools") or (), status.get("poolCount") or 0
    finished = _finished(status)
    shown, completed = finished.get("type") or "Pending", NONE
    if shown == "Complete":
        completed = ages.since(finished.get("lastTransitionTime"))
        shown = f"Complete ({len(pools)}/{count} pools)" if count > len(pools) else shown
    sums = [str(sum(each.get(name) or 0 for each in pools)) for name in _DEVICES]
    sums.append(str(sum(each.get("validationError") is not None for each in pools)))
    return [driver, *(["-"] * 5 if shown == "Failed" else sums), count, shown, completed]


def _finished(status: Fields) -> Fields:
    """Return the condition that says how a request ended; empty if it did not end."""
    conditions = (each for each in status.get("conditions") or () if each.get("status") == "True")
    return next((each for each in conditions if each.get("type") in ("Complete", "Failed")), {})


AGE = printer("Age", aged())
RESOURCE_CLAIM = printer("State|Age", aged(_claim_state))
RESOURCE_SLICE = printer(
    "Node|Driver|Pool|Age",
    aged(text("spec", "nodeName", nothing=UNSET), text("spec", "driver"), text("spec", "pool", "name", nothing="")),
)
DEVICE_TAINT_RULE = printer("Key|Value|Effect|TimeAdded|Age", _taint_rule)
RESOURCE_POOL_STATUS_REQUEST = printer(
    "Driver|Total|Available|Allocated|Unavailable|Errors|Pools:integer|Status|Completed", _pool_request
)

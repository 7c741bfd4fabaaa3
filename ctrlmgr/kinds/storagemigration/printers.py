"""The `kubectl get` columns of storagemigration.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Column, Fields, Printer, columns

_STATES = ("Running", "Failed", "Succeeded")


def _migration(fields: Fields, ages: Ages) -> list[Any]:
    group, resource = (at(fields, "spec", "resource", name) or "" for name in ("group", "resource"))
    conditions = at(fields, "status", "conditions") or ()
    states = [each["type"] for each in conditions if each.get("status") == "True" and each.get("type") in _STATES]
    return [f"{resource}.{group}" if group else resource, states[-1] if states else "Unknown"]


STORAGE_VERSION_MIGRATION = Printer([Column("Name"), *columns("Resource|Status")], _migration)

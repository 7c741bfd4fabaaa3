"""The `kubectl get` columns of the group policy (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import status_count
from ctrlmgr.engine.tables.table_printer import Fields, age, printer


def _disruption_budget(fields: Fields, ages: Ages) -> list[Any]:
    spec = at(fields, "spec") or {}
    bounds = [str(spec[name]) if spec.get(name) is not None else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, status_count(fields, "disruptionsAllowed"), age(fields, ages)]


POD_DISRUPTION_BUDGET = printer("Min Available|Max Unavailable|Allowed Disruptions:integer|Age", _disruption_budget)

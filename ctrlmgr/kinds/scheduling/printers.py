"""The `kubectl get` columns of scheduling.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from ctrlmgr.engine.tables.table_printer import age, printer

PRIORITY_CLASS = printer(
    "Value|Global-Default|Age|PreemptionPolicy",
    lambda fields, ages: [
        fields.get("value", 0),
        bool(fields.get("globalDefault")),
        age(fields, ages),
        fields.get("preemptionPolicy") or "PreemptLowerPriority",
    ],
)

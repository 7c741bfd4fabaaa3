"""The `kubectl get` columns of coordination.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Fields, age, printer


def _lease(lease: Fields, ages: Ages) -> list[Any]:
    return [at(lease, "spec", "holderIdentity") or "", age(lease, ages)]


LEASE = printer("Holder|Age", _lease)

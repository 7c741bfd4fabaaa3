"""The `kubectl get` columns of node.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import printer

RUNTIME_CLASS = printer("Handler|Age", aged(text("handler")))

"""The tables of every built-in kind: the columns that `kubectl get` shows, as Kubernetes 1.36 fills them.

Guarantees: a kind without columns of its own has a name and the time at which it was created, as in Kubernetes.
The rules are those of `pkg/printers/internalversion/printers.go` and, for the rest, of `rest.NewDefaultTableConvertor`.
"""

from __future__ import annotations

from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.server.describe.tables import cluster, core, workloads
from ctrlmgr.server.describe.tables.pods import PODS
from ctrlmgr.server.describe.tables.printer import Printer, at, printer
from ctrlmgr.server.presenting.tabular import TableDefinition

_DEFAULT = printer("Created At:date", lambda fields, ages: [at(fields, "metadata", "creationTimestamp")])

_PRINTERS: dict[str, Printer] = {"v1/Pod": PODS, **core.PRINTERS, **workloads.PRINTERS, **cluster.PRINTERS}


def table_for(kind: GroupVersionKind) -> TableDefinition:
    """Return the columns of a kind and what fills them."""
    return _PRINTERS.get(f"{kind.api_version}/{kind.kind}", _DEFAULT)

"""The declarations of the kinds of `scheduling.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.scheduling import printers
from ctrlmgr.kinds.scheduling.priority_class import PriorityClassStrategy

KINDS = (
    Declaration(
        "scheduling.k8s.io/v1", "PriorityClass", strategy=PriorityClassStrategy(), printer=printers.PRIORITY_CLASS
    ),
)

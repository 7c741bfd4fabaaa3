"""The declarations of the kinds of `scheduling.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.immutable_classes import PriorityClassStrategy
from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.scheduling import printers

KINDS = (
    Declaration(
        "scheduling.k8s.io/v1", "PriorityClass", strategy=PriorityClassStrategy(), printer=printers.PRIORITY_CLASS
    ),
)

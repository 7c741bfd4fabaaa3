"""The declarations of the kinds of `scheduling.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.scheduling import printers
from ctrlmgr.kinds.scheduling.priority_class import PriorityClassStrategy
from ctrlmgr.kinds.scheduling.workload_kinds import PodGroupStrategy, WorkloadStrategy

_ALPHA, _GATE = "scheduling.k8s.io/v1alpha2", "GenericWorkload"

KINDS = (
    Declaration(
        "scheduling.k8s.io/v1", "PriorityClass", strategy=PriorityClassStrategy(), printer=printers.PRIORITY_CLASS
    ),
    Declaration(_ALPHA, "Workload", strategy=WorkloadStrategy(), printer=printers.WORKLOAD, feature_gate=_GATE),
    Declaration(_ALPHA, "PodGroup", strategy=PodGroupStrategy(), printer=printers.POD_GROUP, feature_gate=_GATE),
)

"""The declarations of the kinds of `flowcontrol.apiserver.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.flowcontrol import printers
from ctrlmgr.kinds.flowcontrol.flow_schemas import FlowSchemaStrategy
from ctrlmgr.kinds.flowcontrol.priority_levels import PriorityLevelStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

_V1 = "flowcontrol.apiserver.k8s.io/v1"

KINDS = (
    Declaration(
        _V1,
        "FlowSchema",
        strategy=FlowSchemaStrategy(),
        printer=printers.FLOW_SCHEMA,
    ),
    Declaration(
        _V1,
        "PriorityLevelConfiguration",
        strategy=PriorityLevelStrategy(),
        printer=printers.PRIORITY_LEVEL_CONFIGURATION,
    ),
)

"""What the project knows of each kind of `flowcontrol.apiserver.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.reset_fields import NO_METADATA
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.declaration import Declaration
from ctrlmgr.kinds.flowcontrol import printers


class FlowControlStrategy(Strategy):
    """All of them (Kubernetes `pkg/registry/flowcontrol`)."""

    allow_unconditional_update = False
    has_generation = True


_V1 = "flowcontrol.apiserver.k8s.io/v1"

KINDS = (
    Declaration(_V1, "FlowSchema", strategy=FlowControlStrategy(), printer=printers.FLOW_SCHEMA, resets=NO_METADATA),
    Declaration(
        _V1,
        "PriorityLevelConfiguration",
        strategy=FlowControlStrategy(),
        printer=printers.PRIORITY_LEVEL_CONFIGURATION,
        resets=NO_METADATA,
    ),
)

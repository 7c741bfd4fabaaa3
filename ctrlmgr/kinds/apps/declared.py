"""The declarations of the kinds of `apps`."""

from __future__ import annotations

from ctrlmgr.kinds.apps import printers
from ctrlmgr.kinds.apps.daemon_set import DaemonSetStrategy
from ctrlmgr.kinds.apps.deployment import DeploymentStrategy
from ctrlmgr.kinds.apps.replica_set import ReplicaSetStrategy
from ctrlmgr.kinds.apps.stateful_set import ControllerRevisionStrategy, StatefulSetStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

_V1 = "apps/v1"

KINDS = (
    Declaration(_V1, "ControllerRevision", strategy=ControllerRevisionStrategy(), printer=printers.CONTROLLER_REVISION),
    Declaration(_V1, "DaemonSet", strategy=DaemonSetStrategy(), printer=printers.DAEMON_SET),
    Declaration(
        _V1,
        "Deployment",
        strategy=DeploymentStrategy(),
        printer=printers.DEPLOYMENT,
    ),
    Declaration(_V1, "ReplicaSet", strategy=ReplicaSetStrategy(), printer=printers.REPLICA_SET),
    Declaration(_V1, "StatefulSet", strategy=StatefulSetStrategy(), printer=printers.STATEFUL_SET),
)

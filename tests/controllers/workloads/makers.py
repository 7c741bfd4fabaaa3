"""How a stage's controllers are made."""

from __future__ import annotations

from ctrlmgr.controllers.daemonset.controller import new_daemon_set_controller
from ctrlmgr.controllers.deployment.controller import new_deployment_controller
from ctrlmgr.controllers.replicaset.controller import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    Flavour,
    new_replica_set_controller,
)
from ctrlmgr.controllers.statefulset.controller import new_stateful_set_controller
from ctrlmgr.manager import Controller
from tests.controllers.workloads.stage import Maker, WorkloadStage


def _sets(flavour: Flavour) -> Maker:
    def make(stage: WorkloadStage) -> Controller:
        client = stage.client(flavour.name)
        return new_replica_set_controller(
            flavour, stage.informers, client, stage.log, stage.told, clock=stage.clock, random=stage.random
        )

    return make


replica_sets = _sets(REPLICA_SET)
replication_controllers = _sets(REPLICATION_CONTROLLER)


def deployments(stage: WorkloadStage) -> Controller:
    client = stage.client("deployment-controller")
    return new_deployment_controller(
        stage.informers, client, stage.log, stage.told, clock=stage.clock, random=stage.random
    )


def stateful_sets(stage: WorkloadStage) -> Controller:
    client = stage.client("statefulset-controller")
    return new_stateful_set_controller(
        stage.informers, client, stage.log, stage.told, clock=stage.clock, random=stage.random
    )


def daemon_sets(stage: WorkloadStage) -> Controller:
    client = stage.client("daemon-set-controller")
    return new_daemon_set_controller(
        stage.informers, client, stage.log, stage.told, clock=stage.clock, random=stage.random
    )

"""Functions that create controllers for a cluster; controllers that create many pods create them one by one, in a
reproducible order.
"""

from __future__ import annotations

from ctrlmgr.controllers import daemonset, deployment, job, replicaset, replicationcontroller, statefulset
from ctrlmgr.controllers.daemonset import controller as daemonset_controller
from ctrlmgr.controllers.deployment import controller as deployment_controller
from ctrlmgr.controllers.job import controller as job_controller
from ctrlmgr.controllers.replicaset import controller as replicaset_controller
from ctrlmgr.controllers.statefulset import controller as statefulset_controller
from ctrlmgr.manager import Controller
from tests.controllers.workloads.stage import WorkloadStage


def replica_sets(stage: WorkloadStage) -> Controller:
    return replicaset_controller.build(stage.context, replicaset.Options())


def replication_controllers(stage: WorkloadStage) -> Controller:
    options = replicationcontroller.Options()
    return replicaset_controller.build_for_replication_controllers(stage.context, options)


def deployments(stage: WorkloadStage) -> Controller:
    return deployment_controller.build(stage.context, deployment.Options())


def stateful_sets(stage: WorkloadStage) -> Controller:
    return statefulset_controller.build(stage.context, statefulset.Options())


def daemon_sets(stage: WorkloadStage) -> Controller:
    return daemonset_controller.build(stage.context, daemonset.Options())


def jobs(stage: WorkloadStage) -> Controller:
    return job_controller.build(stage.context, job.Options())

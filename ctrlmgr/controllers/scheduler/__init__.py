"""The scheduler: binds each pod without a node to the most suitable node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, SERVICES, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import TEXT, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the scheduler."""

    scheduler_name: Annotated[
        str,
        TEXT,
        Setting("The `schedulerName` of the pods that the scheduler binds; it ignores other pods."),
    ] = "default-scheduler"
    scheduler_config: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the configuration of the scheduler (YAML or JSON, KubeSchedulerConfiguration of "
            "kubescheduler.config.k8s.io/v1). Its profiles replace `--scheduler-name`.",
            flag="--scheduler-config",
            metavar="FILE",
        ),
    ] = ""
    simulated_seed: Annotated[
        int,
        whole(0),
        Setting(
            "The seed for the random choice between nodes with equal scores, which makes runs reproducible. 0: a "
            "random seed.",
            flag="--simulated-seed",
            metavar="NUMBER",
        ),
    ] = 0


DESCRIPTOR = ControllerDescriptor(
    name="kube-scheduler",
    aliases=("scheduler",),
    component="default-scheduler",
    acts_as="system:kube-scheduler",
    tells_in_series=True,
    does="binds pods to nodes as kube-scheduler's default profile does",
    watches=(
        PODS,
        NODES,
        NAMESPACES,
        SERVICES,
        Resource("policy", "poddisruptionbudgets"),
        Resource("", "persistentvolumeclaims"),
        Resource("", "persistentvolumes"),
        Resource("storage.k8s.io", "storageclasses"),
        Resource("storage.k8s.io", "csinodes"),
        Resource("storage.k8s.io", "volumeattachments"),
        Resource("resource.k8s.io", "resourceclaims"),
        Resource("resource.k8s.io", "deviceclasses"),
        Resource("resource.k8s.io", "resourceslices"),
        Resource("resource.k8s.io", "devicetaintrules"),
    ),
    builder="ctrlmgr.controllers.scheduler.controller:build",
    options=Options,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

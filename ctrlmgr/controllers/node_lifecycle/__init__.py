"""The node lifecycle controller: detects silent kubelets, and sets taints for node conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import LEASES, NODES, PODS
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import DURATION, decimal, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the node lifecycle controller; durations in seconds, rates in nodes per second."""

    node_monitor_period: Annotated[
        float,
        DURATION,
        Setting("How often the health of nodes is looked at.", flag="--node-monitor-period", metavar="DURATION"),
    ] = 5.0
    node_monitor_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "How long a node may be silent until it counts as unhealthy; several times as long as a kubelet takes "
            "between two signs of life.",
            flag="--node-monitor-grace-period",
            metavar="DURATION",
        ),
    ] = 50.0
    node_startup_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "How long a node that has never said anything may be silent until it counts as unhealthy.",
            flag="--node-startup-grace-period",
            metavar="DURATION",
        ),
    ] = 60.0
    node_eviction_rate: Annotated[
        float,
        decimal(0),
        Setting(
            "How many unhealthy nodes a second are given up, so that their pods go, in a zone that is healthy.",
            flag="--node-eviction-rate",
            metavar="RATE",
        ),
    ] = 0.1
    secondary_node_eviction_rate: Annotated[
        float,
        decimal(0),
        Setting(
            "The same in a zone that is not healthy, if it has more than large_cluster_size_threshold nodes.",
            flag="--secondary-node-eviction-rate",
            metavar="RATE",
        ),
    ] = 0.01
    unhealthy_zone_threshold: Annotated[
        float,
        decimal(0),
        Setting(
            "The part of a zone's nodes, at least three, that must be unhealthy for the zone to be so.",
            flag="--unhealthy-zone-threshold",
            metavar="PART",
        ),
    ] = 0.55
    large_cluster_size_threshold: Annotated[
        int,
        whole(0),
        Setting(
            "Up to how many nodes an unhealthy zone is too small to give up any.",
            flag="--large-cluster-size-threshold",
            metavar="COUNT",
        ),
    ] = 50


DESCRIPTOR = ControllerDescriptor(
    name="node-lifecycle-controller",
    aliases=("nodelifecycle",),
    component="node-controller",
    account="node-controller",
    does=(
        "nodes whose kubelet is silent: their conditions become Unknown, their pods not ready, and they are tainted, "
        "so many a second in each zone; taints for what conditions say; the labels of operating system and architecture"
    ),
    watches=(NODES, PODS, LEASES),
    builder="ctrlmgr.controllers.node_lifecycle.controller:build",
    options=Options,
)
"""The declaration of this controller."""

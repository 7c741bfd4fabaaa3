"""The node lifecycle controller: detects kubelets that stop reporting, and sets taints for node conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import LEASES, NODES, PODS
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, decimal, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the node lifecycle controller; durations are in seconds, and rates are in nodes per second."""

    node_monitor_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which the health of nodes is checked.", flag="--node-monitor-period", metavar="DURATION"
        ),
    ] = 5.0
    node_monitor_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "The time without a report after which a node is unhealthy; use several times the reporting interval "
            "of kubelets.",
            flag="--node-monitor-grace-period",
            metavar="DURATION",
        ),
    ] = 50.0
    node_startup_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "The time without any report after which a new node is unhealthy.",
            flag="--node-startup-grace-period",
            metavar="DURATION",
        ),
    ] = 60.0
    node_eviction_rate: Annotated[
        float,
        decimal(0),
        Setting(
            "The number of unhealthy nodes per second that are tainted, which evicts their pods, in a healthy zone.",
            flag="--node-eviction-rate",
            metavar="RATE",
        ),
    ] = 0.1
    secondary_node_eviction_rate: Annotated[
        float,
        decimal(0),
        Setting(
            "The number of unhealthy nodes per second that are tainted in an unhealthy zone, if it has more than "
            "large_cluster_size_threshold nodes.",
            flag="--secondary-node-eviction-rate",
            metavar="RATE",
        ),
    ] = 0.01
    unhealthy_zone_threshold: Annotated[
        float,
        decimal(0),
        Setting(
            "The fraction of a zone's nodes that must be unhealthy (at least three nodes) so that the zone counts "
            "as unhealthy.",
            flag="--unhealthy-zone-threshold",
            metavar="PART",
        ),
    ] = 0.55
    large_cluster_size_threshold: Annotated[
        int,
        whole(0),
        Setting(
            "The number of nodes up to which no pods are evicted from an unhealthy zone.",
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
        "marks nodes whose kubelet does not report, and their pods, as not ready, and taints these nodes at a limited "
        "rate per zone; writes taints for node conditions, and the labels of operating system and architecture"
    ),
    watches=(NODES, PODS, LEASES),
    builder="ctrlmgr.controllers.node_lifecycle.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""

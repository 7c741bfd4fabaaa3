"""Adapts the settings of the process for simulated nodes.

A process without simulated nodes does not import the simulation's packages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.controllers import (
    node_ipam,
    scheduler,
    simulated_csi_attacher,
    simulated_csi_provisioner,
    simulated_csi_resizer,
    simulated_csi_snapshotter,
    simulated_load_balancer,
    simulated_nodes,
)
from ctrlmgr.server.connect_subresources import Runtime
from ctrlmgr.settings import Settings

_ADDED: Final = (
    scheduler,
    simulated_nodes,
    simulated_load_balancer,
    simulated_csi_provisioner,
    simulated_csi_attacher,
    simulated_csi_resizer,
    simulated_csi_snapshotter,
)
SIMULATED: Final = tuple(each.DESCRIPTOR.name for each in _ADDED)
"""The additional controllers of a process with simulated nodes."""


_NODES_OF_A_SMALL_RANGE: Final = 200
_LARGE_RANGE: Final = "10.128.0.0/9"
"""The default pod CIDR of a cluster of more than 256 nodes, for which the usual pod CIDR is too small."""


def with_nodes(settings: Settings) -> Settings:
    """Return the settings; if the settings contain simulated nodes, add all settings that simulated nodes need.

    A controller that the settings exclude by name stays disabled. Raises `SettingsError` if the file with the simulated
    nodes is invalid.
    """
    declared = settings.of(simulated_nodes.Options).nodes
    if not declared:
        return settings
    from ctrlmgr.simulation.nodes import templates

    nodes = templates(declared)
    if not nodes:
        return settings
    ranges = replace(settings.of(node_ipam.Options), allocate_node_cidrs=True)
    if not ranges.cluster_cidr and len(nodes) > _NODES_OF_A_SMALL_RANGE:
        ranges = replace(ranges, cluster_cidr=_LARGE_RANGE)
    desired = (*settings.controllers.enabled, *SIMULATED)
    return replace(
        settings,
        controllers=replace(settings.controllers, enabled=desired),
        declared={**settings.declared, node_ipam.Options: ranges},
    )


def simulated_runtime(settings: Settings, *, clock: Clock) -> Runtime | None:
    """Return the container runtime of pods on simulated nodes; None if there are no simulated nodes.

    Raises `SettingsError` if the file with the simulated nodes is invalid.
    """
    options = settings.of(simulated_nodes.Options)
    if not options.nodes:
        return None
    from ctrlmgr.controllers.simulated_nodes.behaviour_rules import read_behaviour
    from ctrlmgr.controllers.simulated_nodes.runtime import SimulatedRuntime

    return SimulatedRuntime(read_behaviour(options), options.simulated_speed, clock=clock)

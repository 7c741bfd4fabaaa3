"""What `serve` does where nodes are simulated; where there are none, none of the simulation is even imported."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.controllers import node_ipam, scheduler, simulated_load_balancer, simulated_nodes
from ctrlmgr.server.connecting import Runtime
from ctrlmgr.settings import Settings

SIMULATED: Final = (scheduler.DESCRIPTOR.name, simulated_nodes.DESCRIPTOR.name, simulated_load_balancer.DESCRIPTOR.name)
"""The controllers that run where there are simulated nodes."""


_NODES_OF_A_SMALL_RANGE: Final = 200
_LARGE_RANGE: Final = "10.128.0.0/9"
"""Where pods' addresses come from in a large cluster, if nothing is said; the usual range has room for 256 nodes."""


def with_nodes(settings: Settings) -> Settings:
    """Return settings in which simulated nodes, if there are to be any, have all that they need.

    A controller that the settings leave out by its name stays out. Raises `SettingsError` for a file with errors.
    """
    said = settings.of(simulated_nodes.Options).nodes
    if not said:
        return settings
    from ctrlmgr.simulation.nodes import templates

    nodes = templates(said)
    if not nodes:
        return settings
    ranges = replace(settings.of(node_ipam.Options), allocate_node_cidrs=True)
    if not ranges.cluster_cidr and len(nodes) > _NODES_OF_A_SMALL_RANGE:
        ranges = replace(ranges, cluster_cidr=_LARGE_RANGE)
    wanted = (*settings.controllers.enabled, *SIMULATED)
    return replace(
        settings,
        controllers=replace(settings.controllers, enabled=wanted),
        declared={**settings.declared, node_ipam.Options: ranges},
    )


def simulated_runtime(settings: Settings, *, clock: Clock) -> Runtime | None:
    """Return what speaks for pods on simulated nodes, None where there are none; raises `SettingsError`."""
    options = settings.of(simulated_nodes.Options)
    if not options.nodes:
        return None
    from ctrlmgr.controllers.simulated_nodes.rules import read_behaviour
    from ctrlmgr.controllers.simulated_nodes.runtime import SimulatedRuntime

    return SimulatedRuntime(read_behaviour(options), options.simulated_speed, clock=clock)

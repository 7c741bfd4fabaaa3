"""The controller of simulated nodes: plays kubelets that run no containers, but report how pods would run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINT_SLICES, LEASES, NODES, PODS, SERVICES, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import SWITCH, TEXT, decimal

_SLICES = Resource("resource.k8s.io", "resourceslices")
_CSI_NODES = Resource("storage.k8s.io", "csinodes")
_STORAGE = (
    Resource("", "persistentvolumeclaims"),
    Resource("", "persistentvolumes"),
    Resource("storage.k8s.io", "csidrivers"),
    Resource("storage.k8s.io", "volumeattachments"),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the simulation; `simulated_speed` is the number of simulated seconds per real second."""

    nodes: Annotated[
        str,
        TEXT,
        Setting(
            "Simulated nodes: their number, or a file that describes them. With simulated nodes, a scheduler runs, "
            "nodes get pod CIDRs, and Services of type LoadBalancer get addresses. No container is executed.",
            flag="--nodes",
            metavar="COUNT|FILE",
        ),
    ] = ""
    simulated_behaviour: Annotated[
        str,
        TEXT,
        Setting(
            "A file with rules (YAML) or a function (Python) for the behaviour of containers on simulated nodes.",
            flag="--simulated-behaviour",
            metavar="FILE",
        ),
    ] = ""
    simulated_tasks: Annotated[
        str,
        TEXT,
        Setting(
            "The behaviour of unknown commands, and of unknown images without a command, in containers that are "
            "expected to exit: `exit CODE after TIME`, or `run` (never exits). Containers that are expected "
            "to exit are init containers, and the containers of pods with restartPolicy Never or OnFailure.",
            flag="--simulated-tasks",
            metavar="PHRASE",
        ),
    ] = "exit 0 after 1s"
    simulated_servers: Annotated[
        str,
        TEXT,
        Setting(
            "The behaviour of unknown commands, and of unknown images without a command, in containers that are "
            "expected to run forever: `run`, or `exit CODE after TIME`.",
            flag="--simulated-servers",
            metavar="PHRASE",
        ),
    ] = "run"
    simulated_speed: Annotated[
        float,
        decimal(0),
        Setting(
            "The factor by which containers on simulated nodes run faster than real time.",
            flag="--simulated-speed",
            metavar="FACTOR",
        ),
    ] = 1.0
    simulated_metrics: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server serves metrics of simulated nodes: the usage of pods and nodes, for `kubectl top` "
            "and autoscalers.",
            flag="--simulated-metrics",
            metavar="BOOL",
        ),
    ] = True


DESCRIPTOR = ControllerDescriptor(
    name="simulated-nodes-controller",
    aliases=("simulated-nodes",),
    component="kubelet",
    # This controller writes nodes and pods in the name of the simulated nodes.
    rules=(PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),),
    does="runs simulated nodes and the pods on them, with `--nodes`",
    watches=(NODES, PODS, LEASES, SERVICES, ENDPOINT_SLICES, _SLICES, _CSI_NODES, *_STORAGE),
    owns=(NODES, LEASES, _SLICES, _CSI_NODES),
    builder="ctrlmgr.controllers.simulated_nodes.controller:build",
    options=Options,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

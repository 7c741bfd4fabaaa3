"""Simulated nodes: kubelets that execute nothing, and report how pods would run on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINT_SLICES, LEASES, NODES, PODS, SERVICES
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import TEXT, decimal


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the simulation; `simulated_speed` is simulated seconds per real second."""

    nodes: Annotated[
        str,
        TEXT,
        Setting(
            "Simulated nodes: how many, or a file that describes them. With any, a scheduler runs, nodes are given "
            "ranges of pod addresses, and Services of type LoadBalancer addresses. Nothing is ever executed.",
            flag="--nodes",
            metavar="COUNT|FILE",
        ),
    ] = ""
    simulated_behaviour: Annotated[
        str,
        TEXT,
        Setting(
            "A file of rules (YAML), or with a function (Python), that says what containers on simulated nodes do.",
            flag="--simulated-behaviour",
            metavar="FILE",
        ),
    ] = ""
    simulated_tasks: Annotated[
        str,
        TEXT,
        Setting(
            "How unknown commands, and unknown images without a command, behave in containers that are to end: init "
            "containers, and those of pods with restartPolicy Never or OnFailure. `exit CODE after TIME`, or `run`, "
            "which never ends.",
            flag="--simulated-tasks",
            metavar="PHRASE",
        ),
    ] = "exit 0 after 1s"
    simulated_servers: Annotated[
        str,
        TEXT,
        Setting(
            "How they behave in all other containers: `run`, or `exit CODE after TIME`.",
            flag="--simulated-servers",
            metavar="PHRASE",
        ),
    ] = "run"
    simulated_speed: Annotated[
        float,
        decimal(0),
        Setting(
            "How many times as fast containers on simulated nodes live.", flag="--simulated-speed", metavar="FACTOR"
        ),
    ] = 1.0


DESCRIPTOR = ControllerDescriptor(
    name="simulated-nodes-controller",
    aliases=("simulated-nodes",),
    component="kubelet",
    # It writes nodes and pods as the nodes' own users.
    rules=(PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),),
    does="simulated nodes and the pods on them, with `--nodes`",
    watches=(NODES, PODS, LEASES, SERVICES, ENDPOINT_SLICES),
    owns=(NODES, LEASES),
    builder="ctrlmgr.controllers.simulated_nodes.controller:build",
    options=Options,
    enabled_by_default=False,
)
"""The declaration of this controller."""

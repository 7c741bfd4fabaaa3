"""The attacher of the simulated CSI driver: attaches volumes to simulated nodes, with `--nodes`."""

from __future__ import annotations

from ctrlmgr.api.resource import NODES, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.simulation.csi_objects import DRIVER

DESCRIPTOR = ControllerDescriptor(
    name="simulated-csi-attacher-controller",
    aliases=("simulated-csi-attacher",),
    component=DRIVER,
    account="simulated-csi-attacher",
    rules=(
        PolicyRule(("patch",), ("",), ("persistentvolumes",)),
        PolicyRule(("patch", "update"), ("storage.k8s.io",), ("volumeattachments",)),
        PolicyRule(("patch",), ("storage.k8s.io",), ("volumeattachments/status",)),
    ),
    does="attaches volumes of the simulated CSI driver to nodes, with `--nodes`",
    watches=(Resource("storage.k8s.io", "volumeattachments"), Resource("", "persistentvolumes"), NODES),
    builder="ctrlmgr.controllers.simulated_csi_attacher.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

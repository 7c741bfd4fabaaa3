"""The provisioner of the simulated CSI driver: creates and deletes the volumes of claims, with `--nodes`."""

from __future__ import annotations

from ctrlmgr.api.resource import NODES, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CONTENTS, SNAPSHOTS

_VOLUMES = Resource("", "persistentvolumes")

DESCRIPTOR = ControllerDescriptor(
    name="simulated-csi-provisioner-controller",
    aliases=("simulated-csi-provisioner",),
    component=DRIVER,
    account="simulated-csi-provisioner",
    rules=(
        PolicyRule(("create", "delete", "update"), ("",), ("persistentvolumes",)),
        PolicyRule(("patch",), ("",), ("persistentvolumeclaims",)),
        PolicyRule(("create",), ("storage.k8s.io",), ("csidrivers", "storageclasses")),
        PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
    ),
    does="creates and deletes volumes of the StorageClass `simulated`, with `--nodes`",
    watches=(
        Resource("", "persistentvolumeclaims"),
        _VOLUMES,
        Resource("storage.k8s.io", "storageclasses"),
        Resource("storage.k8s.io", "csidrivers"),
        Resource("storage.k8s.io", "volumeattachments"),
        NODES,
        SNAPSHOTS,
        SNAPSHOT_CONTENTS,
    ),
    owns=(_VOLUMES,),
    builder="ctrlmgr.controllers.simulated_csi_provisioner.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

"""The resizer of the simulated CSI driver: expands and modifies volumes, with `--nodes`."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.simulation.csi_objects import DRIVER

DESCRIPTOR = ControllerDescriptor(
    name="simulated-csi-resizer-controller",
    aliases=("simulated-csi-resizer",),
    component=f"external-resizer {DRIVER}",
    account="simulated-csi-resizer",
    rules=(
        PolicyRule(("patch",), ("",), ("persistentvolumes",)),
        PolicyRule(("update",), ("",), ("persistentvolumeclaims/status",)),
        PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
    ),
    does="expands volumes of the simulated CSI driver, and applies VolumeAttributesClasses, with `--nodes`",
    watches=(
        Resource("", "persistentvolumeclaims"),
        Resource("", "persistentvolumes"),
        Resource("storage.k8s.io", "volumeattributesclasses"),
    ),
    builder="ctrlmgr.controllers.simulated_csi_resizer.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

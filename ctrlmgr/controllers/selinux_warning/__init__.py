"""The SELinux warning controller: reports pods that use the same volume with conflicting SELinux labels."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="selinux-warning-controller",
    component="selinux_warning",
    does="reports pods that could not run on one node because they use a volume with different SELinux labels",
    watches=(
        PODS,
        Resource("", "persistentvolumeclaims"),
        Resource("", "persistentvolumes"),
        Resource("storage.k8s.io", "csidrivers"),
    ),
    builder="ctrlmgr.controllers.selinux_warning.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

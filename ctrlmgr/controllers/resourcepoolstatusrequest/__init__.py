"""The controller of ResourcePoolStatusRequests: answers them with the numbers of devices in pools."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="resourcepoolstatusrequest-controller",
    does="writes the numbers of devices in pools into ResourcePoolStatusRequests, and deletes old requests",
    watches=(
        Resource("resource.k8s.io", "resourcepoolstatusrequests"),
        Resource("resource.k8s.io", "resourceslices"),
        Resource("resource.k8s.io", "resourceclaims"),
    ),
    builder="ctrlmgr.controllers.resourcepoolstatusrequest.controller:build",
    options=NoOptions,
    feature_gates=("DRAResourcePoolStatus",),
)
"""The declaration of the controller: its name and the function that builds it."""

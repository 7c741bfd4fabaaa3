"""The PodGroup protection controller: delays the deletion of a PodGroup while pods belong to it."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="podgroup-protection-controller",
    does="delays the deletion of PodGroups while pods that have not ended belong to them",
    watches=(Resource("scheduling.k8s.io", "podgroups"), PODS),
    replays=True,
    shared_kinds=(Resource("scheduling.k8s.io", "podgroups"),),
    replay_needs=(
        Resource("scheduling.k8s.io", "podgroups"),
        PODS,
    ),
    builder="ctrlmgr.controllers.podgroup_protection.controller:build",
    options=NoOptions,
    feature_gates=("GenericWorkload",),
)
"""The declaration of the controller: its name and the function that builds it."""

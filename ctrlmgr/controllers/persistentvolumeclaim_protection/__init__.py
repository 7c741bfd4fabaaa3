"""The PersistentVolumeClaim protection controller: delays the deletion of claims while a pod uses them."""

from __future__ import annotations

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="persistentvolumeclaim-protection-controller",
    aliases=("pvc-protection",),
    does="delays the deletion of PersistentVolumeClaims that pods use",
    account="pvc-protection-controller",
    watches=(Resource("", "persistentvolumeclaims"), PODS),
    replays=True,
    shared_kinds=(Resource("", "persistentvolumeclaims"),),
    replay_needs=(
        Resource("", "persistentvolumeclaims"),
        PODS,
    ),
    builder="ctrlmgr.controllers.persistentvolumeclaim_protection.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

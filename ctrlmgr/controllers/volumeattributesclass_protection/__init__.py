"""The VolumeAttributesClass protection controller: delays the deletion of classes that volumes or claims use."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="volumeattributesclass-protection-controller",
    does="delays the deletion of VolumeAttributesClasses that volumes or claims use",
    watches=(
        Resource("storage.k8s.io", "volumeattributesclasses"),
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
    ),
    replays=True,
    shared_kinds=(Resource("storage.k8s.io", "volumeattributesclasses"),),
    replay_needs=(
        Resource("storage.k8s.io", "volumeattributesclasses"),
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
    ),
    builder="ctrlmgr.controllers.volumeattributesclass_protection.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

"""The PersistentVolume expander: if a claim requests more storage, reports which component expands the volume."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="persistentvolume-expander-controller",
    aliases=("persistentvolume-expander",),
    component="volume_expand",
    account="expand-controller",
    does=(
        "writes an Event, and an annotation for the component that expands volumes, when a bound claim requests more "
        "storage"
    ),
    watches=(Resource("", "persistentvolumeclaims"), Resource("", "persistentvolumes")),
    replays=True,
    shared_kinds=(Resource("", "persistentvolumeclaims"),),
    replay_needs=(
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
    ),
    builder="ctrlmgr.controllers.persistentvolume_expander.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

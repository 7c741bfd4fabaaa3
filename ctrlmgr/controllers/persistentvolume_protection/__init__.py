"""The PersistentVolume protection controller: delays the deletion of volumes while a claim is bound to them."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="persistentvolume-protection-controller",
    aliases=("pv-protection",),
    does="delays the deletion of PersistentVolumes that are bound to claims",
    account="pv-protection-controller",
    watches=(Resource("", "persistentvolumes"),),
    replays=True,
    shared_kinds=(Resource("", "persistentvolumes"),),
    replay_needs=(Resource("", "persistentvolumes"),),
    builder="ctrlmgr.controllers.persistentvolume_protection.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

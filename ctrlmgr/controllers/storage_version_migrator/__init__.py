"""The storage version migrator: stores all objects of a resource again if a StorageVersionMigration requests it."""

from __future__ import annotations

from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="storage-version-migrator-controller",
    aliases=("svm",),
    does="stores all objects of a resource again, as StorageVersionMigrations request",
    watches=(Resource("storagemigration.k8s.io", "storageversionmigrations"), DEFINITIONS),
    builder="ctrlmgr.controllers.storage_version_migrator.controller:build",
    options=NoOptions,
    feature_gates=("StorageVersionMigrator",),
)
"""The declaration of the controller: its name and the function that builds it."""

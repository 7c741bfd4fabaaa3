"""The StorageVersion garbage collector: removes entries of API servers that no longer exist from StorageVersions."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="storageversion-garbage-collector-controller",
    aliases=("storage-version-gc",),
    account="storage-version-garbage-collector",
    does="removes entries of API servers that have no identity Lease from StorageVersions",
    watches=(Resource("internal.apiserver.k8s.io", "storageversions"), Resource("coordination.k8s.io", "leases")),
    owns=(Resource("internal.apiserver.k8s.io", "storageversions"),),
    builder="ctrlmgr.controllers.storage_version_garbage_collector.controller:build",
    options=NoOptions,
    feature_gates=("StorageVersionAPI",),
)
"""The declaration of the controller: its name and the function that builds it."""

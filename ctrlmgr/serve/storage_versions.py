"""Connects the publication of StorageVersions with the filter that refuses writes until the publication is complete."""

from __future__ import annotations

from ctrlmgr.controllers.storage_version_publisher.published_versions import published_versions
from ctrlmgr.controllers.storage_version_publisher.publisher import (
    StorageVersionPublisher,
    new_storage_version_publisher,
)
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.manager import Controller
from ctrlmgr.serve.controllers import Parts
from ctrlmgr.serve.identity.signing_keys import server_identity
from ctrlmgr.server.filters.storage_version_barrier import StorageVersionBarrier

HOOK = "built-in-resources-storage-version-updater"


def storage_version_barrier(kinds: Kinds) -> StorageVersionBarrier | None:
    """Return the filter of writes; None if a feature gate is off or StorageVersions are not served."""
    gates = is_on("StorageVersionAPI") and is_on("APIServerIdentity")
    if not gates or kinds.find("internal.apiserver.k8s.io", "v1alpha1", "storageversions") is None:
        return None
    return StorageVersionBarrier(resource for each in published_versions(kinds) for resource in each.resources)


def storage_version_publisher(parts: Parts, barrier: StorageVersionBarrier) -> Controller:
    """Return the controller that publishes StorageVersions and reports to `barrier`."""
    versions = published_versions(parts.engine.kinds)
    publisher = StorageVersionPublisher(
        server_identity(parts.settings), versions, barrier, parts.event_log, parts.clock
    )
    client = parts.apiserver_client()
    return new_storage_version_publisher(publisher, client, parts.event_log, clock=parts.clock, random=parts.random)

"""The declaration of the kind of `storagemigration.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.storagemigration import printers
from ctrlmgr.kinds.storagemigration.storage_version_migration import StorageVersionMigrationStrategy

KINDS = (
    Declaration(
        "storagemigration.k8s.io/v1beta1",
        "StorageVersionMigration",
        strategy=StorageVersionMigrationStrategy(),
        printer=printers.STORAGE_VERSION_MIGRATION,
        feature_gate="StorageVersionMigrator",
    ),
)

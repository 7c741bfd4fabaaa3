"""The declaration of the kind of `internal.apiserver.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.apiserverinternal import printers
from ctrlmgr.kinds.apiserverinternal.storage_version import StorageVersionStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (
    Declaration(
        "internal.apiserver.k8s.io/v1alpha1",
        "StorageVersion",
        strategy=StorageVersionStrategy(),
        printer=printers.STORAGE_VERSION,
        feature_gate="StorageVersionAPI",
    ),
)

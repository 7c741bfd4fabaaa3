"""The `kubectl get` columns of internal.apiserver.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.rows import aged, text
from ctrlmgr.engine.tables.table_printer import UNSET, Fields, printer, shown


def _servers(fields: Fields) -> str:
    servers = at(fields, "status", "storageVersions") or ()
    return shown(
        [f"{each.get('apiServerID', '')}={each.get('encodingVersion', '')}" for each in servers], nothing=UNSET
    )


STORAGE_VERSION = printer(
    "CommonEncodingVersion|StorageVersions|Age",
    aged(text("status", "commonEncodingVersion", nothing=UNSET), _servers),
)

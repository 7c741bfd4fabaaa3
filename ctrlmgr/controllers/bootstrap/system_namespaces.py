"""Creates those system namespaces that are missing.

Source: Kubernetes' `pkg/controlplane/controller/systemnamespaces`.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.informer import Lister

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
INTERVAL: Final = 60.0
"""The number of seconds between two checks."""


class SystemNamespaces:
    """Reconciles the system namespaces."""

    def __init__(self, namespaces: Lister) -> None:
        """Create a reconciler that reads the existing namespaces from the lister `namespaces`."""
        self._namespaces = namespaces

    def sync(self, client: Client) -> None:
        """Create the missing system namespaces. A namespace that is being deleted counts as existing."""
        for name in SYSTEM_NAMESPACES:
            if self._namespaces.get(Key("", name)) is None:
                try:
                    client.create(
                        Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
                    )
                except AlreadyExists:  # the cache was outdated, or another process was faster
                    continue

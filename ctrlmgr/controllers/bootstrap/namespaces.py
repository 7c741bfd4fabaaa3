"""The namespaces that every cluster has, created when they are missing.

Kubernetes: `pkg/controlplane/controller/systemnamespaces`.
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
"""Seconds between looks."""


class SystemNamespaces:
    """See the module's docstring."""

    def __init__(self, namespaces: Lister) -> None:
        """Look in `namespaces`."""
        self._namespaces = namespaces

    def sync(self, client: Client) -> None:
        """Create those that are missing; one that is being deleted is not."""
        for name in SYSTEM_NAMESPACES:
            if self._namespaces.get(Key("", name)) is None:
                try:
                    client.create(
                        Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
                    )
                except AlreadyExists:  # the cache did not know yet, or another process was quicker
                    continue

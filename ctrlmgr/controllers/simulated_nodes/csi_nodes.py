"""Registers the simulated CSI driver on simulated nodes, with a CSINode for each node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.informer import Change, Lister
from ctrlmgr.simulation.csi_objects import DRIVER, csi_node

CSI_NODES: Final = Resource("storage.k8s.io", "csinodes")


class CsiNodes:
    """Keeps the CSINodes of simulated nodes; if other clients register drivers on a node, these drivers are kept."""

    def __init__(self, csi_nodes: Lister) -> None:
        """Create an instance that reads existing CSINodes from this cache."""
        self._csi_nodes = csi_nodes

    def register(self, node: Object, client: EngineClient) -> None:
        """Create or restore the CSINode of a node; raises the errors of the API if a write fails."""
        desired = csi_node(node.name, node.uid, node.labels)
        found = self._csi_nodes.get(Key("", node.name))
        if found is None:
            # The cache does not contain the newest state yet. The change that the cache lacks will trigger the next
            # reconcile.
            with suppress(AlreadyExists):
                client.create(Object.from_dict(desired))
        elif found.metadata.owner_references != Object.from_dict(desired).metadata.owner_references:
            client.delete(found)  # The CSINode belongs to an earlier node with this name.
        elif all(each["name"] != DRIVER for each in _drivers(found)):
            client.update(found.with_field("spec", {"drivers": [*_drivers(found), *desired["spec"]["drivers"]]}))


def _drivers(csi_node: Object) -> list[dict[str, Any]]:
    return list(csi_node.to_dict()["spec"].get("drivers") or ())


def csi_node_keys(change: Change) -> Iterator[Key]:
    """Yield the key of the node whose CSINode was changed or deleted."""
    if change.old is not None:
        yield Key("", change.object.name)

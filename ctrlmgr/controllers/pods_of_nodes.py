"""The pods of each node, found by an index: shared by the controllers that care for nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.informer import Informer, Lister

_INDEX: Final = "node"


def index_by_node(pods: Informer) -> None:
    """Let `pods_of_node` find pods; asked for before the informer syncs, by any who need it."""
    pods.add_index(_INDEX, _node_of)


def _node_of(pod: Object) -> Iterator[str]:
    name = pod.view(Pod).spec.node_name
    if name:
        yield name


def pods_of_node(pods: Lister, name: str) -> list[Object]:
    """Return the pods that have been given a node, by key."""
    return pods.by_index(_INDEX, name)

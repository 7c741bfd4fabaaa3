"""Indexes pods by node; several controllers of nodes share the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.informer import Informer, Lister

_INDEX: Final = "node"


def index_by_node(pods: Informer) -> None:
    """Add the index that `pods_of_node` reads; the caller must do this before the informer syncs.

    A further call of the function has no effect.
    """
    pods.add_index(_INDEX, _node_of)


def _node_of(pod: Object) -> Iterator[str]:
    name = pod.view(Pod).spec.node_name
    if name:
        yield name


def pods_of_node(pods: Lister, name: str) -> list[Object]:
    """Return the pods that are bound to the node `name`."""
    return pods.by_index(_INDEX, name)

"""The TTL controller: annotates nodes with the seconds for which a kubelet may cache Secrets and ConfigMaps.

Guarantees, which are the same as in Kubernetes' `pkg/controller/ttl`: the TTL grows with the number of nodes. The
ranges of sizes overlap, so that a cluster whose size is near a boundary does not write its nodes repeatedly. A node's
annotation is corrected when the node changes. If the TTL changes, the annotation of a node is not updated until the
node itself changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ctrlmgr.api.resource import NODES, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.ttl import DESCRIPTOR
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class Step(NamedTuple):
    """A range of cluster sizes, from `least` to `most` nodes, and its TTL in seconds."""

    least: int
    most: float
    seconds: int


STEPS: Final = (
    Step(0, 100, 0),
    Step(90, 500, 15),
    Step(450, 1000, 30),
    Step(900, 2000, 60),
    Step(1800, 10000, 300),
    Step(9000, float("inf"), 600),
)


def next_step(step: int, nodes: int) -> int:
    """Return the index of the range of cluster sizes that contains this number of nodes.

    The search starts at the current range.
    """
    while nodes > STEPS[step].most:
        step += 1
    while nodes < STEPS[step].least:
        step -= 1
    return step


class NodeTTL:
    """Reconciles the TTL annotation of a node. The controller has only one worker, so no lock is needed."""

    def __init__(self, nodes: Lister) -> None:
        """Create a reconciler that reads the nodes from `nodes`."""
        self._nodes = nodes
        self._step = 0

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Write the TTL annotation of the node if it differs from the current TTL."""
        self._step = next_step(self._step, len(self._nodes))
        node = self._nodes.get(key)
        desired = str(STEPS[self._step].seconds)
        if node is not None and node.annotations.get(ANNOTATION) != desired:
            client.patch(node, {"metadata": {"uid": node.uid, "annotations": {ANNOTATION: desired}}})


def node_keys(change: Change) -> Iterator[Key]:
    """Yield the key of every new node, and of a node whose TTL annotation has changed."""
    new, old = change.new, change.old
    if new is not None and (old is None or old.annotations.get(ANNOTATION) != new.annotations.get(ANNOTATION)):
        yield new.key


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    nodes = context.informers.informer(NODES)
    return assemble(DESCRIPTOR, context, NodeTTL(nodes.lister), [Watch(nodes, node_keys)])

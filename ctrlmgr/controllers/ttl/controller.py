"""The TTL controller: an annotation says for how many seconds a kubelet may keep secrets and config maps it has read.

Guarantees, those of Kubernetes' `pkg/controller/ttl`: the more nodes, the longer, in steps that overlap, so that a
cluster at a boundary does not have all its nodes rewritten again and again. A node is corrected when it is touched; a
new step alone rewrites none.
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
    """A size of cluster, from `least` to `most` nodes, and its seconds."""

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
    """Return the step after `step` when there are so many nodes now."""
    while nodes > STEPS[step].most:
        step += 1
    while nodes < STEPS[step].least:
        step -= 1
    return step


class NodeTTL:
    """The reconciler of one node. One worker: what it remembers needs no lock."""

    def __init__(self, nodes: Lister) -> None:
        """Read from this cache."""
        self._nodes = nodes
        self._step = 0

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Write the annotation unless it is there."""
        self._step = next_step(self._step, len(self._nodes))
        node = self._nodes.get(key)
        wanted = str(STEPS[self._step].seconds)
        if node is not None and node.annotations.get(ANNOTATION) != wanted:
            client.patch(node, {"metadata": {"uid": node.uid, "annotations": {ANNOTATION: wanted}}})


def node_keys(change: Change) -> Iterator[Key]:
    """Yield every node that comes, and one that changes in its annotations."""
    new, old = change.new, change.old
    if new is not None and (old is None or old.annotations.get(ANNOTATION) != new.annotations.get(ANNOTATION)):
        yield new.key


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build it from what its descriptor declares."""
    nodes = context.informers.informer(NODES)
    return assemble(DESCRIPTOR, context, NodeTTL(nodes.lister), [Watch(nodes, node_keys)])

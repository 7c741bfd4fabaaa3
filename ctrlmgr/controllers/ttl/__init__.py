"""The TTL controller: tells kubelets for how long they may keep what they have read."""

from __future__ import annotations

from ctrlmgr.api.resource import NODES
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="ttl-controller",
    aliases=("ttl",),
    does="the annotation `node.alpha.kubernetes.io/ttl` of nodes, which grows with the cluster",
    watches=(NODES,),
    builder="ctrlmgr.controllers.ttl.controller:build",
    options=NoOptions,
)
"""The declaration of this controller."""

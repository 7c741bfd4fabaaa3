"""The TTL controller: annotates nodes with the time for which kubelets may cache Secrets and ConfigMaps."""

from __future__ import annotations

from ctrlmgr.api.resource import NODES
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="ttl-controller",
    aliases=("ttl",),
    does="writes the annotation `node.alpha.kubernetes.io/ttl` of nodes by the size of the cluster",
    watches=(NODES,),
    builder="ctrlmgr.controllers.ttl.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

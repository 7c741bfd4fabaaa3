"""The bootstrap signer: signs `kube-public/cluster-info` with bootstrap tokens, for nodes that have a token."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="bootstrap-signer-controller",
    aliases=("bootstrapsigner",),
    account="bootstrap-signer",
    does="signs the ConfigMap `kube-public/cluster-info` with bootstrap tokens",
    watches=(
        Resource("", "configmaps"),
        Resource("", "secrets"),
    ),
    builder="ctrlmgr.controllers.bootstrap_signer.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

"""The CSR approving controller: approves kubelets' requests for client certificates."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="certificatesigningrequest-approving-controller",
    aliases=("csrapproving",),
    account="certificate-controller",
    does="approves certificate requests of kubelets that may request client certificates",
    watches=(Resource("certificates.k8s.io", "certificatesigningrequests"),),
    builder="ctrlmgr.controllers.certificatesigningrequest_approving.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

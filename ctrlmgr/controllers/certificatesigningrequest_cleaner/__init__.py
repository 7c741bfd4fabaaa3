"""The CSR cleaner: deletes old certificate signing requests."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="certificatesigningrequest-cleaner-controller",
    aliases=("csrcleaner",),
    account="certificate-controller",
    does="deletes old certificate requests: decided, expired or pending ones",
    watches=(Resource("certificates.k8s.io", "certificatesigningrequests"),),
    builder="ctrlmgr.controllers.certificatesigningrequest_cleaner.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

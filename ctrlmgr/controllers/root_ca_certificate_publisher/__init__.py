"""The root CA certificate publisher: keeps the ConfigMap `kube-root-ca.crt` in every namespace."""

from __future__ import annotations

from ctrlmgr.api.resource import NAMESPACES, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="root-ca-certificate-publisher-controller",
    aliases=("root-ca-cert-publisher",),
    account="root-ca-cert-publisher",
    does="creates the ConfigMap `kube-root-ca.crt` in every namespace",
    watches=(NAMESPACES, Resource("", "configmaps")),
    owns=(Resource("", "configmaps"),),
    builder="ctrlmgr.controllers.root_ca_certificate_publisher.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

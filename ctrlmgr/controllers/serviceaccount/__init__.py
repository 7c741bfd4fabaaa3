"""The ServiceAccount controller: keeps the ServiceAccount `default` in every namespace."""

from __future__ import annotations

from ctrlmgr.api.resource import NAMESPACES, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="serviceaccount-controller",
    aliases=("serviceaccount",),
    account="service-account-controller",
    does="creates the ServiceAccount `default` in every namespace",
    watches=(NAMESPACES, Resource("", "serviceaccounts")),
    owns=(Resource("", "serviceaccounts"),),
    builder="ctrlmgr.controllers.serviceaccount.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

"""The ServiceCIDR controller: keeps the finalizer and the Ready condition of ServiceCIDRs."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="service-cidr-controller",
    account="service-cidrs-controller",
    does="writes the condition Ready of ServiceCIDRs, and delays their deletion while Services need their addresses",
    watches=(Resource("networking.k8s.io", "servicecidrs"), Resource("networking.k8s.io", "ipaddresses")),
    builder="ctrlmgr.controllers.service_cidr.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""

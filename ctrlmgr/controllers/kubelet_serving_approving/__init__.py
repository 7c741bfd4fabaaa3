"""The kubelet serving approving controller: approves kubelets' requests for serving certificates.

This controller is off by default.
"""

from __future__ import annotations

from ctrlmgr.api.resource import NODES, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

_GROUP = "certificates.k8s.io"
_CSRS = "certificatesigningrequests"

DESCRIPTOR = ControllerDescriptor(
    name="kubelet-serving-approving-controller",
    aliases=("kubelet-serving-approving",),
    account="kubelet-serving-approver",
    rules=(
        PolicyRule(("get", "list", "watch"), (_GROUP,), (_CSRS,)),
        PolicyRule(("update",), (_GROUP,), (f"{_CSRS}/approval",)),
        PolicyRule(("approve",), (_GROUP,), ("signers",), ("kubernetes.io/kubelet-serving",)),
        PolicyRule(("get", "list", "watch"), ("",), ("nodes",)),
    ),
    does="approves requests of kubelets for serving certificates with exactly the addresses of their node",
    watches=(Resource(_GROUP, _CSRS), NODES),
    builder="ctrlmgr.controllers.kubelet_serving_approving.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""

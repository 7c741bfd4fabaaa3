"""The kubelet serving approving controller: approves requests that name exactly the addresses of the requesting node.

Guarantees: a request is approved only if it is for the serving certificate of a node, and the requester is this node
and belongs to the group `system:nodes`. The names in the request must be exactly the addresses in the node's status. A
node can set the addresses in its status itself. Therefore an approval proves only that the node claims these addresses.
The controller denies no request. Undecided requests are checked again when their node changes.

Kubernetes has no such controller: administrators approve the requests for serving certificates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.certificatesigningrequest_signing.controller import request_keys
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import CSRS, SigningRequest, with_condition
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.kubelet_serving_approving import DESCRIPTOR
from ctrlmgr.controllers.kubelet_serving_approving.decide import has_names_of, requesting_node
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

_INDEX: Final = "node of serving certificate"
_APPROVED: Final = {
    "type": "Approved",
    "status": "True",
    "reason": "AutoApproved",
    "message": "Auto approving kubelet serving certificate with the addresses of its node.",
}


class ServingApprover:
    """Reconciles a CertificateSigningRequest, whose name is the key."""

    def __init__(self, requests: Lister, nodes: Lister) -> None:
        """Create a reconciler that reads requests and nodes from these caches."""
        self._requests = requests
        self._nodes = nodes

    def reconcile(self, key: Key, client: Client) -> None:
        """Approve the request if the rules for kubelets' serving certificates allow it.

        Raises the errors of `client` if the write fails.
        """
        request = self._requests.get(key)
        name = _node_of(request) if request is not None else ""
        node = self._nodes.get(Key("", name)) if name else None
        if request is None or node is None or not has_names_of(request.view(SigningRequest), node):
            return
        try:
            client.update(with_condition(request, _APPROVED), "approval")
        except NotFound:
            return  # The request was deleted meanwhile.

    def keys_of(self, change: Change) -> Iterable[Key]:
        """Return the keys of the undecided requests that a changed node has sent."""
        return [each.key for each in self._requests.by_index(_INDEX, change.object.name)]


def _node_of(request: Object) -> str:
    """Return the name of the node that sent a request that may be approved.

    If the request may not be approved, return an empty string.
    """
    try:
        return requesting_node(request.view(SigningRequest))
    except ValueError:
        return ""


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests, nodes = context.informers.informer(CSRS), context.informers.informer(NODES)
    requests.add_index(_INDEX, lambda request: [name] if (name := _node_of(request)) else ())
    approver = ServingApprover(requests.lister, nodes.lister)
    watches = [Watch(requests, request_keys, after_sync=True), Watch(nodes, approver.keys_of, after_sync=True)]
    return assemble(DESCRIPTOR, context, approver, watches)

"""The CSR approving controller: approves certificate requests of kubelets that need no administrator's approval.

Guarantees: a request is approved only if it is for a kubelet's client certificate and the requester has the permission.
The required permission is to create `certificatesigningrequests/nodeclient`, or `selfnodeclient` for a node's own
certificate. The controller denies no request. A request that may not be approved is checked again at growing intervals,
because permissions may be granted later.

Source: `pkg/controller/certificates/approver/sarapprove.go`.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.user import User
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.certificatesigningrequest_approving import DESCRIPTOR
from ctrlmgr.controllers.certificatesigningrequest_approving.decide import recognized
from ctrlmgr.controllers.certificatesigningrequest_signing.controller import request_keys
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    CSRS,
    SigningRequest,
    Spec,
    with_condition,
)
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.issuer_dependencies import AccessCheck, IdentityContext
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch

_SOONEST, _LATEST = 0.2, 1000.0
"""The minimum and maximum number of seconds until a request that may not be approved yet is checked again."""


class Approver:
    """Reconciles a CertificateSigningRequest, whose name is the key."""

    def __init__(self, requests: Lister, may_ask: AccessCheck, *, clock: Clock) -> None:
        """Create a reconciler that approves requests whose requester has the permission, according to `may_ask`."""
        self._requests = requests
        self._may_ask = may_ask
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Approve the request if its requester has the permission for it.

        Raises the errors of `client` if the write fails.
        """
        request = self._requests.get(key)
        if request is None:
            return None
        view = request.view(SigningRequest)
        ways = recognized(view)
        for way in ways:
            if self._may_ask(requester(view.spec), way.subresource):
                condition = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": way.message}
                try:
                    client.update(with_condition(request, condition), "approval")
                except NotFound:
                    return None  # The request was deleted meanwhile.
                return None
        return Result(self._patience(request)) if ways else None

    def _patience(self, request: Object) -> float:
        """Return the seconds until the next check of the request: the age of the request, within bounds."""
        waited = (self._clock.now() - parse_time(request.metadata.creation_timestamp or "")) / 1_000_000
        return min(max(waited, _SOONEST), _LATEST)


def requester(spec: Spec) -> User:
    """Return the user that created the certificate request."""
    extra = {name: tuple(values) for name, values in spec.extra.items()}
    return User(spec.username, spec.uid, tuple(spec.groups), extra)


def build(context: IdentityContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    requests = context.informers.informer(CSRS)
    approver = Approver(requests.lister, context.identity.may_ask, clock=context.clock)
    return assemble(DESCRIPTOR, context, approver, [Watch(requests, request_keys, after_sync=True)])

"""The approving controller: approves what kubelets may have without an administrator's word.

Guarantees: a request is approved only if it is one of a kubelet for its client's certificate, and who asks may create
`certificatesigningrequests/nodeclient`, or `selfnodeclient` for a node's own. Nothing is ever denied. One that may not
be approved is looked at again, at growing intervals, as rights may come.

Rules: `pkg/controller/certificates/approver/sarapprove.go`.
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
from ctrlmgr.controllers.certificatesigningrequest_signing.requests import CSRS, SigningRequest, Spec, with_condition
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.identity import IdentityContext, MayAsk
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch

_SOONEST, _LATEST = 0.2, 1000.0
"""Seconds until a request that may not be approved is looked at again."""


class Approver:
    """Sees to the request that is its key."""

    def __init__(self, requests: Lister, may_ask: MayAsk, *, clock: Clock) -> None:
        """Approve what `may_ask` allows."""
        self._requests = requests
        self._may_ask = may_ask
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Approve it if that may be; raises what `client` raises."""
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
                    return None  # it was withdrawn meanwhile
                return None
        return Result(self._patience(request)) if ways else None

    def _patience(self, request: Object) -> float:
        """Return when to look at a request again: after as long as it has been waiting."""
        waited = (self._clock.now() - parse_time(request.metadata.creation_timestamp or "")) / 1_000_000
        return min(max(waited, _SOONEST), _LATEST)


def requester(spec: Spec) -> User:
    """Return who asks."""
    extra = {name: tuple(values) for name, values in spec.extra.items()}
    return User(spec.username, spec.uid, tuple(spec.groups), extra)


def build(context: IdentityContext, options: NoOptions) -> Controller:
    """Build it from what its descriptor declares."""
    requests = context.informers.informer(CSRS)
    approver = Approver(requests.lister, context.identity.may_ask, clock=context.clock)
    return assemble(DESCRIPTOR, context, approver, [Watch(requests, request_keys, after_sync=True)])

"""Decides which requests the controller recognizes, and which permission the approval of each request needs.

Source: `pkg/controller/certificates/approver/sarapprove.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    KUBELET_CLIENT_SIGNER,
    SigningRequest,
    common_name,
    kubelet_client_problem,
    parse_request,
)


class Recognized(NamedTuple):
    """A way in which a certificate request can be approved, and the permission that it needs."""

    subresource: str
    """The subresource of `certificatesigningrequests` that the requester must be allowed to create."""
    message: str


SELF: Final = Recognized("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
NODE: Final = Recognized("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


def recognized(request: SigningRequest) -> Sequence[Recognized]:
    """Return the ways in which a request can be approved, in order.

    The result is empty if the request is already decided or not recognized. Raises ValueError if the request cannot be
    parsed.
    """
    if request.status.certificate or request.is_("Approved") or request.is_("Denied"):
        return ()
    spec = request.spec
    if spec.signer_name != KUBELET_CLIENT_SIGNER:
        return ()
    parsed = parse_request(spec.request)
    if kubelet_client_problem(parsed, spec.usages):
        return ()
    return (SELF, NODE) if spec.username == common_name(parsed) else (NODE,)

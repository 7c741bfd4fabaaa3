"""Decides how a signer handles a CertificateSigningRequest.

Guarantees: a request that is not approved, has failed, already has its certificate, or is for another signer, is
ignored. A request that its signer does not allow gets the condition Failed, with the reason.

Source: `pkg/controller/certificates/signer/signer.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509

from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    CLIENT_SIGNER,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    SigningRequest,
    client_problem,
    kubelet_client_problem,
    kubelet_serving_problem,
    parse_request,
)

SHORTEST = 600
"""The minimum duration of a certificate, in seconds."""


class SigningOrder(NamedTuple):
    """The content of a certificate that will be signed."""

    request: x509.CertificateSigningRequest
    usages: Sequence[str]
    seconds: int


def decide(request: SigningRequest, longest: int) -> SigningOrder | str | None:
    """Return the certificate to sign, or the reason why the request fails; None if the request must be ignored.

    The certificate to sign is valid for at most `longest` seconds. Raises ValueError if the request cannot be parsed.
    """
    if not request.is_("Approved") or request.is_("Denied") or request.is_("Failed") or request.status.certificate:
        return None
    spec = request.spec
    parsed = parse_request(spec.request)
    problem = _problem(spec.signer_name, parsed, spec.usages)
    return problem or SigningOrder(parsed, spec.usages, duration(spec.expiration_seconds, longest))


def duration(requested: int | None, longest: int) -> int:
    """Return the duration, in seconds, for which a requested certificate is valid."""
    return longest if requested is None or requested > longest else max(requested, SHORTEST)


def _problem(signer: str, request: x509.CertificateSigningRequest, usages: Sequence[str]) -> str:
    if signer == KUBELET_SERVING_SIGNER:
        return kubelet_serving_problem(request, usages)
    if signer == KUBELET_CLIENT_SIGNER:
        return kubelet_client_problem(request, usages)
    return client_problem(usages) if signer == CLIENT_SIGNER else ""

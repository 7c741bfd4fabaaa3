"""What becomes of an approved request at one signer.

Guarantees: a request that is not approved, has failed, has its certificate or is for another signer is left alone. One
that asks for what its signer does not give fails, with the reason.

Rules: `pkg/controller/certificates/signer/signer.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509

from ctrlmgr.controllers.certificatesigningrequest_signing.requests import (
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
"""Seconds that any certificate is good for."""


class Order(NamedTuple):
    """A certificate to be signed."""

    request: x509.CertificateSigningRequest
    usages: Sequence[str]
    seconds: int


def decide(request: SigningRequest, longest: int) -> Order | str | None:
    """Return the certificate to sign, or why that cannot be done; None if nothing is to be done.

    It is good for `longest` seconds at most. Raises ValueError for a request that cannot be read.
    """
    if not request.is_("Approved") or request.is_("Denied") or request.is_("Failed") or request.status.certificate:
        return None
    spec = request.spec
    parsed = parse_request(spec.request)
    problem = _problem(spec.signer_name, parsed, spec.usages)
    return problem or Order(parsed, spec.usages, duration(spec.expiration_seconds, longest))


def duration(asked: int | None, longest: int) -> int:
    """Return for how many seconds a certificate is good."""
    return longest if asked is None or asked > longest else max(asked, SHORTEST)


def _problem(signer: str, request: x509.CertificateSigningRequest, usages: Sequence[str]) -> str:
    if signer == KUBELET_SERVING_SIGNER:
        return kubelet_serving_problem(request, usages)
    if signer == KUBELET_CLIENT_SIGNER:
        return kubelet_client_problem(request, usages)
    return client_problem(usages) if signer == CLIENT_SIGNER else ""

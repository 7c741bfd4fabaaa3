"""Certificate requests (PKCS#10) and certificates as Kubernetes reads them: PEM around DER.

A request is to be signed by who asks.

Rules come from Kubernetes' `pkg/apis/certificates/helpers.go` (ParseCSR) and `validation/validation.go`, and from Go's
`encoding/pem` and `crypto/x509`, whose words are given where they do not speak of Go's own insides.
"""

from __future__ import annotations

import re
from base64 import b64decode

from ctrlmgr.api.go_text import quote

_BLOCK = re.compile(
    rb"(?:^|\n)-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<headers>(?:[^\n:]+:[^\n]*\n)*)(?P<data>.*?)\n?"
    rb"-----END (?P=type)-----[ \t\r]*(?:\n|\Z)",
    re.DOTALL,
)
_REQUEST = b"CERTIFICATE REQUEST"
_CERTIFICATE = b"CERTIFICATE"


def problem(request: bytes) -> str:
    """Return what is wrong with a request as it stands in `spec.request`, empty if nothing is."""
    block = _BLOCK.search(request)
    der = _decoded(block["data"]) if block else None
    if block is None or der is None or block["type"] != _REQUEST:
        return "PEM block type must be CERTIFICATE REQUEST"
    return _problem(der)


def certificate_problem(certificates: bytes) -> str:
    """Return what is wrong with the certificates of `status.certificate`, empty if nothing is."""
    at = count = 0
    while block := _BLOCK.search(certificates, at):
        at = block.end("data")  # where the next one's line may begin
        der = _decoded(block["data"])
        if der is None:
            continue  # no block, as Go sees it
        if block["type"] != _CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block['type'].decode(errors='replace'))}"
        if block["headers"]:
            return "no PEM block headers are permitted"
        if words := _certificate_problem(der):
            return words
        count += 1
    return "" if count else "must contain at least one CERTIFICATE PEM block"


def _certificate_problem(der: bytes) -> str:
    from cryptography.x509 import load_der_x509_certificate  # late, as below

    if not der:
        return "found CERTIFICATE PEM block containing 0 certificates"
    try:
        load_der_x509_certificate(der)
    except ValueError:
        return "x509: malformed certificate"
    return ""


def _decoded(text: bytes) -> bytes | None:
    try:
        return b64decode(b"".join(text.split()), validate=True)
    except ValueError:
        return None


def _problem(der: bytes) -> str:
    # Here, since loading them takes longer than all of our own code for this, and few ask for certificates.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509 import load_der_x509_csr

    try:
        request = load_der_x509_csr(der)
        key = request.public_key()
        signed = request.is_signature_valid
    except UnsupportedAlgorithm:
        return "x509: cannot verify signature: algorithm unimplemented"
    except ValueError:
        return "x509: malformed certificate request"
    if signed:
        return ""
    if isinstance(key, RSAPublicKey):
        return "crypto/rsa: verification error"
    return f"x509: {'ECDSA' if isinstance(key, EllipticCurvePublicKey) else 'Ed25519'} verification failure"

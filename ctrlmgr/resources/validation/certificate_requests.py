"""Certificate requests (PKCS#10) as Kubernetes reads them: PEM around DER, signed by who asks.

Rules come from Kubernetes' `pkg/apis/certificates/helpers.go` (ParseCSR) and `validation/validation.go`, and from Go's
`encoding/pem` and `crypto/x509`, whose words are given where they do not speak of Go's own insides.
"""

from __future__ import annotations

import re
from base64 import b64decode

_BLOCK = re.compile(
    rb"(?:^|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*\n(?:[^\n:]+:[^\n]*\n)*(.*?)\n?-----END \1-----[ \t\r]*(?:\n|\Z)",
    re.DOTALL,
)
_TYPE = b"CERTIFICATE REQUEST"


def problem(request: bytes) -> str:
    """Return what is wrong with a request as it stands in `spec.request`, empty if nothing is."""
    block = _BLOCK.search(request)
    der = _decoded(block[2]) if block else None
    if block is None or der is None or block[1] != _TYPE:
        return "PEM block type must be CERTIFICATE REQUEST"
    return _problem(der)


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

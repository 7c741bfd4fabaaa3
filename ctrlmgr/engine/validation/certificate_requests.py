"""Validates certificate requests (PKCS#10) and certificates as Kubernetes does; both are PEM blocks that contain DER.

A certificate request must be signed with the requester's key.

Rules come from Kubernetes' `pkg/apis/certificates/helpers.go` (ParseCSR) and `validation/validation.go`, and from Go's
`encoding/pem` and `crypto/x509`. Error messages are the same as in Go, except for messages that name Go's internals.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import NamedTuple

from ctrlmgr.golang.go_text import quote

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"
_SPACE = b" \t\r"
_REQUEST = b"CERTIFICATE REQUEST"
_CERTIFICATE = b"CERTIFICATE"


class Block(NamedTuple):
    """A PEM block that Go's decoder accepts."""

    type: bytes
    has_headers: bool
    der: bytes


def blocks(text: bytes) -> Iterator[Block]:
    """Yield the PEM blocks of a string, and skip everything else; the time is linear in the length of the string.

    The function checks each line for the end of a block at most once. A block that contains the beginning of another
    block is not decoded.
    """
    at = end = after = 0
    last = b""
    while (begin := _next_line(text, _BEGIN, at)) >= 0:
        line, at = _line(text, begin)
        if not line.endswith(_DASHES) or len(line) < len(_BEGIN) + len(_DASHES):
            continue
        kind = line[len(_BEGIN) : -len(_DASHES)]
        data = _after_headers(text, at)
        has_headers = data > at
        at = data
        if end < at:
            end = _next_line(text, _END, at)
            if end < 0:
                return
            last, after = _line(text, end)
        if last != _END + kind + _DASHES or text.find(_BEGIN, at, end) >= 0:
            continue
        der = _decoded(text[at:end])
        at = after
        if der is not None:
            yield Block(kind, has_headers, der)


def _next_line(text: bytes, prefix: bytes, at: int) -> int:
    """Return the index of the next line with a prefix; -1 if no line has the prefix.

    `at` must be the beginning of a line.
    """
    if text.startswith(prefix, at):
        return at
    found = text.find(b"\n" + prefix, at)
    return found + 1 if found >= 0 else -1


def _line(text: bytes, at: int) -> tuple[bytes, int]:
    """Return a line without trailing white space, and the index of the next line."""
    end = text.find(b"\n", at)
    return (text[at:].rstrip(_SPACE), len(text)) if end < 0 else (text[at:end].rstrip(_SPACE), end + 1)


def _after_headers(text: bytes, at: int) -> int:
    while at < len(text):
        line, following = _line(text, at)
        if b":" not in line:
            break
        at = following
    return at


def problem(request: bytes) -> str:
    """Return the error in a certificate request (`spec.request`); empty if the request is valid."""
    block = next(blocks(request), None)
    if block is None or block.type != _REQUEST:
        return "PEM block type must be CERTIFICATE REQUEST"
    return _problem(block.der)


def certificate_problem(certificates: bytes) -> str:
    """Return the error in the certificates of `status.certificate`; empty if the certificates are valid."""
    count = 0
    for block in blocks(certificates):
        if block.type != _CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type.decode(errors='replace'))}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        if words := _certificate_problem(block.der):
            return words
        count += 1
    return "" if count else "must contain at least one CERTIFICATE PEM block"


def authorities_problem(certificates: bytes) -> str:
    """Return the reason why certificates contain no valid authority.

    The reason is empty if one authority is valid, or if there are no certificates. Source: Go's
    `x509.CertPool.AppendCertsFromPEM` and client-go `transport/transport.go`(`createErrorParsingCAData`).
    """
    if not certificates:
        return ""
    found = list(blocks(certificates))
    problems = [_certificate_problem(each.der) for each in found if each.type == _CERTIFICATE and not each.has_headers]
    if "" in problems:
        return ""
    if problems:
        return f"failed to parse certificate: {problems[0]}"
    return "no valid certificate authority data seen" if found else "unable to parse bytes as PEM block"


def _certificate_problem(der: bytes) -> str:
    from cryptography.x509 import load_der_x509_certificate  # imported late, for the reason given below

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
    # Imported here because these modules load slowly and few clients request certificates.
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

"""Validates the public key of a PodCertificateRequest, and the proof that the kubelet has the private key.

The proof is the signature of a PKCS#10 request, or, in a deprecated form, a signature of the pod's uid.

Source: Kubernetes `pkg/apis/certificates/validation/validation.go`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ctrlmgr.api.field import FieldError, Path, invalid, too_long
from ctrlmgr.kinds.common_rules import malformed

# This import is for type checkers only, because these modules load slowly and few clients request certificates.
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from cryptography.x509 import CertificateSigningRequest

_SPEC: Final = Path("spec")
_REQUEST, _KEY, _PROOF = (_SPEC.child(each) for each in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession"))
_MOST_BYTES: Final = 10 * 1024
_CURVES: Final = {"secp224r1": "P-224", "secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
"""The names that Go gives to the curves that it supports."""
_RSA_BITS: Final = (3072, 4096)
_UNKNOWN: Final = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
_UNPROVEN: Final = "could not verify proof-of-possession signature"


def validate_key(spec: Mapping[str, Any]) -> list[FieldError]:
    """Validate the key of a request, which has exactly one form of proof."""
    request, key, proof = (_bytes(spec, each) for each in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession"))
    if request and not key and not proof:
        return _validate_request(request)
    if not request and key and proof:
        return _validate_pair(key, proof, (spec.get("podUID") or "").encode())
    return [malformed(_SPEC, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")]


def requested_key(spec: Mapping[str, Any]) -> PublicKeyTypes | None:
    """Return the public key of a valid request; None if the key cannot be read."""
    request = _bytes(spec, "stubPKCS10Request")
    if not request:
        return _public_key(_bytes(spec, "pkixPublicKey"))
    found = _parsed(request)
    return None if found is None else found.public_key()


def _bytes(spec: Mapping[str, Any], field: str) -> bytes:
    return b64decode(spec.get(field) or "")


def _validate_request(der: bytes) -> list[FieldError]:
    if len(der) > _MOST_BYTES:
        return [too_long(_REQUEST, _MOST_BYTES)]
    request = _parsed(der)
    if request is None:
        return [malformed(_REQUEST, "must be a valid PKCS#10 CSR")]
    refused = _refusal(request.public_key(), _REQUEST, "P256, P384, or P521")
    if refused is not None:
        return [refused]
    return [] if request.is_signature_valid else [malformed(_REQUEST, "invalid signature")]


def _validate_pair(der: bytes, proof: bytes, uid: bytes) -> list[FieldError]:
    for path, data in ((_KEY, der), (_PROOF, proof)):
        if len(data) > _MOST_BYTES:
            return [too_long(path, _MOST_BYTES)]
    key = _public_key(der)
    if key is None:
        return [invalid(_KEY, der, "must be a valid PKIX-serialized public key")]
    refused = _refusal(key, _KEY, "P256 or P384")
    if refused is not None:
        return [refused]
    return [] if _proves(key, proof, uid) else [malformed(_PROOF, _UNPROVEN)]


def _parsed(der: bytes) -> CertificateSigningRequest | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509 import load_der_x509_csr

    try:
        request = load_der_x509_csr(der)
        return request if _is_known(request.public_key()) else None
    except (UnsupportedAlgorithm, ValueError):
        return None


def _public_key(der: bytes) -> PublicKeyTypes | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(der)
    except (UnsupportedAlgorithm, ValueError):
        return None
    return key if _is_known(key) else None


def _is_known(key: PublicKeyTypes) -> bool:
    """Return whether Go can read a key: it knows only some curves."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    return not isinstance(key, EllipticCurvePublicKey) or key.curve.name in _CURVES


def _refusal(key: PublicKeyTypes, path: Path, curves: str) -> FieldError | None:
    """Return the error of a key with a refused type, curve or length; None if there is none."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, EllipticCurvePublicKey):
        name = _CURVES[key.curve.name]
        return (
            invalid(path, f"curve {name}", f"elliptic public keys must use curve {curves}") if name == "P-224" else None
        )
    if isinstance(key, RSAPublicKey):
        bits = (key.key_size + 7) // 8 * 8
        words = "RSA keys must have modulus size 3072 or 4096"
        return None if bits in _RSA_BITS else invalid(path, f"{bits}-bit modulus", words)
    return None if isinstance(key, Ed25519PublicKey) else malformed(path, _UNKNOWN)


def _proves(key: PublicKeyTypes, proof: bytes, uid: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(proof, uid)
        elif isinstance(key, EllipticCurvePublicKey):
            key.verify(proof, uid, ECDSA(SHA256()))
        elif isinstance(key, RSAPublicKey):
            key.verify(proof, uid, PSS(MGF1(SHA256()), PSS.AUTO), SHA256())
    except InvalidSignature:
        return False
    return True

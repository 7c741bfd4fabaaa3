"""Signed tokens in JWS compact form: parses, verifies and creates them.

Guarantees:
- The key, never the token, decides which algorithms are allowed. An RSA key verifies RS* and PS*, and a key on a curve
  only the ES* of that curve. `none` and algorithms with a shared secret never verify.
- A token with critical extensions (`crit`) never verifies.
- Callers must not trust a token's content before `verifies` returns True.

Rules: RFC 7515, RFC 7518; go-jose, as Kubernetes uses it.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, NamedTuple, TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_SHAPE = re.compile(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
_HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class _Header(msgspec.Struct, frozen=True, gc=False):
    alg: str
    kid: str = ""
    crit: Any = None


class Compact(NamedTuple):
    """A parsed token that is not verified."""

    algorithm: str
    key_id: str
    has_extensions: bool
    payload: bytes
    """The claims, as JSON."""
    signed: bytes
    """The signed bytes."""
    signature: bytes


_decode_header = msgspec.json.Decoder(_Header).decode


def untrusted_payload(token: str) -> bytes | None:
    """Return the unverified claims of a token as JSON; None if it is not in compact form."""
    if not _SHAPE.fullmatch(token):
        return None
    try:
        return decoded(token.split(".")[1])
    except binascii.Error:
        return None


def parse(token: str) -> Compact | None:
    """Parse a token; None if it does not have three parts or its header is invalid."""
    if not _SHAPE.fullmatch(token):
        return None
    header, payload, signature = token.split(".")
    try:
        read = _decode_header(decoded(header))
        return Compact(
            read.alg,
            read.kid,
            read.crit is not None,
            decoded(payload),
            f"{header}.{payload}".encode(),
            decoded(signature),
        )
    except (ValueError, msgspec.MsgspecError, RecursionError):  # invalid base64, UTF-8 or header, or too deep JSON
        return None


def verifies(token: Compact, key: PublicKey) -> bool:
    """Return whether a token was signed with the private key of `key`."""
    if token.has_extensions or token.algorithm[:2] not in ("RS", "PS", "ES"):
        return False
    algorithm = _HASHES.get(token.algorithm[2:])
    if algorithm is None:
        return False
    try:
        if isinstance(key, rsa.RSAPublicKey):
            return _verify_rsa(token, key, algorithm)
        return _verify_curve(token, key, algorithm)
    except InvalidSignature:
        return False


def algorithm_of(key: PublicKey | PrivateKey) -> str:
    """Return the signature algorithm of a key; raises ValueError for an unsupported curve."""
    if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey):
        return "RS256"
    if key.curve.name not in _CURVES:
        raise ValueError(f"the curve {key.curve.name} is none of P-256, P-384 and P-521")
    return _CURVES[key.curve.name]


def sign(claims: bytes, key: PrivateKey, key_id: str) -> str:
    """Return a token with `claims` (JSON), signed with `key`; `key_id` tells verifiers which key to use."""
    algorithm = algorithm_of(key)
    header = msgspec.json.encode({"alg": algorithm, "kid": key_id})
    signed = f"{encoded(header)}.{encoded(claims)}"
    return f"{signed}.{encoded(signature_of(signed.encode(), key))}"


def signature_of(data: bytes, key: PrivateKey) -> bytes:
    """Return the JWS signature of `data`, with the key's own algorithm."""
    digest = _HASHES[algorithm_of(key)[2:]]
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), digest)
    side = _side(key.curve)
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
    return r.to_bytes(side, "big") + s.to_bytes(side, "big")


def encoded(data: bytes) -> str:
    """Encode as base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Decode base64url without padding; raises `binascii.Error` for an invalid length."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _verify_rsa(token: Compact, key: rsa.RSAPublicKey, digest: hashes.HashAlgorithm) -> bool:
    if token.algorithm.startswith("RS"):
        key.verify(token.signature, token.signed, padding.PKCS1v15(), digest)
        return True
    if token.algorithm.startswith("PS"):
        salted = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        key.verify(token.signature, token.signed, salted, digest)
        return True
    return False


def _verify_curve(token: Compact, key: ec.EllipticCurvePublicKey, digest: hashes.HashAlgorithm) -> bool:
    side = _side(key.curve)
    if token.algorithm != _CURVES.get(key.curve.name) or len(token.signature) != 2 * side:
        return False
    r, s = (int.from_bytes(half, "big") for half in (token.signature[:side], token.signature[side:]))
    key.verify(encode_dss_signature(r, s), token.signed, ec.ECDSA(digest))
    return True


def _side(curve: ec.EllipticCurve) -> int:
    """Return the length of each half of a signature, in bytes."""
    return (curve.key_size + 7) // 8

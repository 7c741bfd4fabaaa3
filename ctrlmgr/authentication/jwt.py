"""Signed tokens in JWS compact form: parses, verifies and creates them with joserfc.

Guarantees:
- The key, not the token, determines the allowed algorithms. An RSA key verifies RS* and PS* signatures, and an elliptic
  curve key verifies only ES* signatures of its curve. A token with the algorithm `none`, or with an algorithm that uses
  a shared secret, is never valid.
- A token with critical extensions (`crit`) is never valid.
- A token of more than 1 MiB counts as malformed, because no request can contain such a token.
- Callers must not trust a token's claims before `verifies` has returned True.

Source: RFC 7515 and RFC 7518; go-jose, which Kubernetes uses. The page docs/decisions/tokens.md explains why this
module uses joserfc.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_SHAPE = re.compile(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_LONGEST = 1 << 20
"""The maximum number of characters in one part of a token; the size limit of a request's headers excludes longer parts.
"""


class _Registry(jws.JWSRegistry):
    """The signature algorithms that Kubernetes accepts.

    Unknown header parameters of a token are ignored, as in go-jose.
    """

    max_header_length = max_payload_length = max_signature_length = _LONGEST


_REGISTRY = _Registry(algorithms=[*_OF_RSA, *_CURVES.values()], strict_check_header=False)


class Compact(NamedTuple):
    """A parsed token; its signature has not been verified."""

    algorithm: str
    key_id: str
    payload: bytes
    """The unverified claims of the token, as JSON."""
    jws: jws.CompactSignature
    """The token in the form to which joserfc parsed it."""

    def digest(self) -> bytes:
        """Return a digest of the whole token, including its header and signature."""
        return sha256(b".".join(self.jws.segments[part] for part in ("header", "payload", "signature"))).digest()


def untrusted_payload(token: str) -> bytes | None:
    """Return the unverified claims of a token as JSON; None if the token is not in compact form."""
    if not _SHAPE.fullmatch(token):
        return None
    try:
        return decoded(token.split(".")[1])
    except binascii.Error:
        return None


def parse(token: str) -> Compact | None:
    """Parse a token; None if the token does not have three parts or if its header is invalid."""
    try:
        found = jws.extract_compact(token.encode("ascii"), registry=_REGISTRY)
    except (JoseError, ValueError, RecursionError):
        return None
    header: object = found.protected  # the header may be any JSON value
    if not isinstance(header, dict):
        return None
    algorithm, key_id = header["alg"], header.get("kid") or ""
    if not (isinstance(algorithm, str) and isinstance(key_id, str)):
        return None
    return Compact(algorithm, key_id, found.payload, found)


def verifies(token: Compact, key: PublicKey) -> bool:
    """Return whether a token was signed with the private key of `key`."""
    if token.jws.protected.get("crit") is not None or token.algorithm not in _algorithms_of(key):
        return False
    try:
        return jws.validate_compact(token.jws, _wrapped(key), registry=_REGISTRY)
    except JoseError:
        return False


def algorithm_of(key: PublicKey | PrivateKey) -> str:
    """Return the signature algorithm of a key; raises ValueError if the key's curve is unsupported."""
    if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey):
        return "RS256"
    if key.curve.name not in _CURVES:
        raise ValueError(f"the curve {key.curve.name} is not P-256, P-384 or P-521")
    return _CURVES[key.curve.name]


def sign(claims: bytes, key: PrivateKey, key_id: str) -> str:
    """Return a token that contains `claims` (JSON) and is signed with `key`; verifiers find the key by `key_id`."""
    return jws.serialize_compact({"alg": algorithm_of(key), "kid": key_id}, claims, _wrapped(key), registry=_REGISTRY)


def encoded(data: bytes) -> str:
    """Encode bytes as base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Decode a base64url string without padding; raises `binascii.Error` if the string has an invalid length."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _algorithms_of(key: PublicKey) -> tuple[str, ...]:
    if isinstance(key, rsa.RSAPublicKey):
        return _OF_RSA
    return (_CURVES[key.curve.name],) if key.curve.name in _CURVES else ()


def _wrapped(key: PublicKey | PrivateKey) -> RSAKey | ECKey:
    if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey):
        return RSAKey.import_key(key)
    return ECKey.import_key(key)

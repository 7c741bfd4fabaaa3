"""Reads the keys that sign and verify tokens from PEM, finds keys by id, and publishes them as a JSON Web Key Set.

Guarantees: a key's id is a digest of the public key, and verifiers find the key by this id. A key file may contain
several keys; each key is a public key, a private key or a certificate.

Source: client-go `util/keyutil`, Kubernetes' `pkg/serviceaccount/{jwt,openidmetadata}.go`, RFC 7517.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ctrlmgr.authentication.jwt import PrivateKey, PublicKey, algorithm_of, encoded

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)
_CURVE_NAMES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}


class VerificationKey(NamedTuple):
    """A public key, and the id by which tokens refer to the key."""

    id: str
    key: PublicKey


class VerificationKeys:
    """The keys that may have signed a token."""

    def __init__(self, keys: Iterable[PublicKey]) -> None:
        """Store `keys` without duplicates."""
        self._by_id = {key_id(key): key for key in keys}

    def candidates(self, expected: str) -> Sequence[PublicKey]:
        """Return the keys with the id `expected`; if `expected` is empty, return all keys."""
        if not expected:
            return list(self._by_id.values())
        key = self._by_id.get(expected)
        return [] if key is None else [key]

    @property
    def all(self) -> list[VerificationKey]:
        """All keys of the set, in the order in which the caller of the constructor passed the keys."""
        return [VerificationKey(*pair) for pair in self._by_id.items()]


def key_id(key: PublicKey) -> str:
    """Return the id of a public key (`keyIDFromPublicKey`)."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded(sha256(der).digest())


def read_private_key(pem: bytes) -> PrivateKey:
    """Parse the first private key in a file; raises ValueError if the file contains no key that can sign tokens."""
    for block in _BLOCK.finditer(pem):
        key = _private(block[0])
        if key is not None:
            algorithm_of(key)
            return key
    raise ValueError("it does not contain a valid RSA or ECDSA private key")


def read_public_keys(pem: bytes) -> list[PublicKey]:
    """Parse all keys in a file, and return the public keys, including those of private keys and certificates.

    Raises ValueError if the file contains no key.
    """
    keys = [key for block in _BLOCK.finditer(pem) if (key := _public(block[0], block[1])) is not None]
    if not keys:
        raise ValueError("it does not contain any valid RSA or ECDSA public keys")
    for key in keys:
        algorithm_of(key)
    return keys


def json_web_key(verification: VerificationKey) -> dict[str, Any]:
    """Return a key as a JSON Web Key, with go-jose's order of fields."""
    name, key = verification
    algorithm = algorithm_of(key)
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        head = {"use": "sig", "kty": "RSA", "kid": name, "alg": algorithm}
        return {**head, "n": _number(numbers.n), "e": _number(numbers.e)}
    side = (key.curve.key_size + 7) // 8
    point = key.public_numbers()
    head = {"use": "sig", "kty": "EC", "kid": name, "crv": _CURVE_NAMES[key.curve.name], "alg": algorithm}
    return {**head, "x": encoded(point.x.to_bytes(side, "big")), "y": encoded(point.y.to_bytes(side, "big"))}


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _private(block: bytes) -> PrivateKey | None:
    try:
        key = serialization.load_pem_private_key(block, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else None


def _public(block: bytes, label: bytes) -> PublicKey | None:
    if label.endswith(b"PRIVATE KEY"):
        private = _private(block)
        return None if private is None else private.public_key()
    try:
        is_certificate = label == b"CERTIFICATE"
        key = (
            x509.load_pem_x509_certificate(block).public_key()
            if is_certificate
            else serialization.load_pem_public_key(block)
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else None

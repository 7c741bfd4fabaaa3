"""Creates signatures for forged tokens in tests, without using the code that verifies tokens."""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

_DIGESTS: dict[int, hashes.HashAlgorithm] = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}


def signature_of(data: bytes, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    """Return the JWS signature of `data`: RS256 for an RSA key, or the ES* algorithm that belongs
    to the key's curve.
    """
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    side = (key.curve.key_size + 7) // 8
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(_DIGESTS[key.curve.key_size])))
    return r.to_bytes(side, "big") + s.to_bytes(side, "big")

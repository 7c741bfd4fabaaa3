"""Compares the server's verification of tokens, with joserfc, with PyJWT (`pip install pyjwt`) and cryptography.

- `verify`: the token of a pod, signed with a key of each type. `cryptography`: only the verification of the signature,
  which every library must do.
- `refuse`: a token of nearly 1 MB with a wrong signature, such as an unauthenticated client may send.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bench.decisions.comparison import alternative, microseconds, once, row
from ctrlmgr.authentication import jwt

CLAIMS = json.dumps(
    {
        "aud": ["https://kubernetes.default.svc"],
        "exp": 2_000_000_000,
        "iat": 1_900_000_000,
        "iss": "https://kubernetes.default.svc",
        "jti": "2f1e6a8e-7a3c-4f0e-8d67-0a1c2b3d4e5f",
        "kubernetes.io": {
            "namespace": "shop",
            "node": {"name": "node-1", "uid": "6b2d1c0e-90a1-4c56-8f39-c1a2b3d4e5f6"},
            "pod": {"name": "web-7c6dfd9664-lr22q", "uid": "90153fd1-fa20-4829-adb7-aa464f9309d0"},
            "serviceaccount": {"name": "web", "uid": "47c06dbb-1ee8-452b-8bfe-1038815b0534"},
            "warnafter": 1_900_003_607,
        },
        "nbf": 1_900_000_000,
        "sub": "system:serviceaccount:shop:web",
    }
)
"""The claims in the token of a pod."""
KEYS: dict[str, jwt.PrivateKey] = {
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
}
ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "ES512"]


def ours(token: str, key: jwt.PublicKey) -> bool:
    """Parse a token and verify it, as the server does."""
    parsed = jwt.parse(token)
    return parsed is not None and jwt.verifies(parsed, key)


def signature_alone(token: str, key: jwt.PublicKey) -> Callable[[], None]:
    """Return a function that only verifies the signature of a token."""
    signed, _, last = token.rpartition(".")
    data, signature = signed.encode(), jwt.decoded(last)
    if isinstance(key, rsa.RSAPublicKey):
        return lambda: key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    der = encode_dss_signature(r, s)
    return lambda: key.verify(der, data, ec.ECDSA(hashes.SHA256()))


def main() -> None:
    """Print all comparisons."""
    pyjwt = alternative("jwt", "pyjwt").PyJWS()
    for name, private in KEYS.items():
        token, key = jwt.sign(CLAIMS.encode(), private, "one"), private.public_key()
        assert ours(token, key)
        cost = microseconds(ours, token, key)
        row(f"verify {name}, {len(token):,} bytes, PyJWT", cost, microseconds(pyjwt.decode, token, key, ALGORITHMS))
        row(f"verify {name}, signature alone", cost, microseconds(signature_alone(token, key)))
    large = jwt.sign(b"y" * 700_000, KEYS["RS256"], "one")
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    assert not ours(large, other)
    row(
        f"refuse {len(large):,} bytes, PyJWT",
        once(ours, large, other)[0],
        *once(pyjwt.decode, large, other, ALGORITHMS),
    )


if __name__ == "__main__":
    main()

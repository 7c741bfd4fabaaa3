from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.token_keys import (
    VerificationKey,
    VerificationKeys,
    json_web_key,
    key_id,
    read_private_key,
    read_public_keys,
)
from tests.signatures import signature_of

RSA = rsa.generate_private_key(65537, 2048)
CURVES = [ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)]
KEYS: list[jwt.PrivateKey] = [RSA, *CURVES]
CLAIMS = b'{"iss":"here"}'


def token(header: dict[str, object], signature: bytes) -> str:
    return f"{jwt.encoded(json.dumps(header).encode())}.{jwt.encoded(CLAIMS)}.{jwt.encoded(signature)}"


def signed_input(header: dict[str, object]) -> bytes:
    return f"{jwt.encoded(json.dumps(header).encode())}.{jwt.encoded(CLAIMS)}".encode()


def accepted(text: str, key: jwt.PrivateKey) -> bool:
    parsed = jwt.parse(text)
    return parsed is not None and jwt.verifies(parsed, key.public_key())


@pytest.mark.parametrize("key", KEYS)
def test_a_token_is_verified_only_by_its_key(key: jwt.PrivateKey) -> None:
    made = jwt.sign(CLAIMS, key, "id")
    parsed = jwt.parse(made)
    assert parsed is not None
    assert (parsed.payload, parsed.key_id, parsed.algorithm) == (CLAIMS, "id", jwt.algorithm_of(key))
    assert [accepted(made, each) for each in KEYS] == [each is key for each in KEYS]


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "RS", "ES25", "RS1"])
@pytest.mark.parametrize("signature", [b"", b"x" * 64, b"x" * 256])
def test_a_key_does_not_verify_other_algorithms(algorithm: str, signature: bytes) -> None:
    assert not any(accepted(token({"alg": algorithm}, signature), key) for key in KEYS)


def test_a_public_key_is_not_accepted_as_a_shared_secret() -> None:
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header: dict[str, object] = {"alg": "HS256"}
    assert not accepted(token(header, hmac.digest(pem, signed_input(header), hashlib.sha256)), RSA)


def test_the_curve_determines_the_algorithm() -> None:
    header: dict[str, object] = {"alg": "ES256"}
    assert not accepted(token(header, signature_of(signed_input(header), CURVES[1])), CURVES[1])


def test_critical_extensions_are_refused() -> None:
    header: dict[str, object] = {"alg": "RS256", "crit": ["exp"]}
    assert not accepted(token(header, signature_of(signed_input(header), RSA)), RSA)


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "a.b.c", "é.b.c", "{}", "a b.c.d", "a.b.c\n"])
def test_an_invalid_token_is_refused(text: str) -> None:
    assert jwt.parse(text) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_detected(place: int, change: int) -> None:
    made = jwt.sign(CLAIMS, CURVES[0], "id")
    header, payload, signature = (jwt.decoded(part) for part in made.split("."))
    whole = bytearray(header + payload + signature)
    whole[place % len(whole)] ^= change
    parts = whole[: len(header)], whole[len(header) : -64], whole[-64:]
    text = ".".join(jwt.encoded(bytes(part)) for part in parts)
    assert not accepted(text, CURVES[0])


def test_keys_are_read_from_pem_and_certificates() -> None:
    private = RSA.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = CURVES[0].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert read_public_keys(private + pem) == [RSA.public_key(), public]
    signing = read_private_key(pem + private)
    assert signing.public_key() == RSA.public_key()
    for nothing in (b"", b"-----BEGIN X-----\n-----END X-----", pem):
        with pytest.raises(ValueError, match="valid RSA or ECDSA private"):
            read_private_key(nothing)
    with pytest.raises(ValueError, match="valid RSA or ECDSA public"):
        read_public_keys(b"nothing")


def test_a_token_with_a_key_id_is_checked_only_with_that_key() -> None:
    keys = VerificationKeys([RSA.public_key(), CURVES[0].public_key(), RSA.public_key()])
    assert len(keys.all) == 2
    assert list(keys.candidates(key_id(RSA.public_key()))) == [RSA.public_key()]
    assert list(keys.candidates("unknown")) == []
    assert len(keys.candidates("")) == 2


def test_a_published_key_has_the_fields_verifiers_need() -> None:
    published = json_web_key(VerificationKey("a", RSA.public_key()))
    assert list(published) == ["use", "kty", "kid", "alg", "n", "e"]
    assert (published["alg"], published["e"]) == ("RS256", "AQAB")
    curve = json_web_key(VerificationKey("b", CURVES[0].public_key()))
    assert (curve["kty"], curve["crv"], curve["alg"]) == ("EC", "P-256", "ES256")
    assert {len(jwt.decoded(curve[side])) for side in "xy"} == {32}

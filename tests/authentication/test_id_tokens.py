"""Tests of ID tokens of an external issuer: the user that results from the claims, and the accepted keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ctrlmgr.authentication.id_tokens import read_key_set, token_user
from ctrlmgr.authentication.token_keys import VerificationKey, json_web_key
from ctrlmgr.authentication.trusted_issuer import Mapping, TrustedIssuer
from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused, User

NOW = 1_767_225_600
ISSUER = TrustedIssuer(
    *("https://issuer", "https://issuer/.well-known/openid-configuration", "", ("here", "there")),
    *(Mapping("sub", "oidc:"), Mapping("groups", "g:"), Mapping("id")),
    required=(("hd", "example.com"),),
)
CLAIMS = {"sub": "jane", "aud": "here", "exp": NOW + 60, "hd": "example.com", "id": "7"}


def user(issuer: TrustedIssuer = ISSUER, **claims: Any) -> User:
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not ...}
    return token_user(json.dumps(said).encode(), issuer, NOW * 1_000_000)


def test_claims_become_a_user() -> None:
    assert user() == User("oidc:jane", "7")
    assert user(groups="dev").groups == ("g:dev",)
    assert user(groups=["dev", "ops"], aud=["elsewhere", "there"]).groups == ("g:dev", "g:ops")
    assert user(jti="j-1").extra == {CREDENTIAL_ID: ("JTI=j-1",)}


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW}, "token is expired"),
        ({"exp": ...}, "token is expired"),
        ({"exp": "never"}, "token is expired"),
        ({"nbf": NOW + 301}, "before the nbf"),
        ({"aud": "elsewhere"}, 'expected audience in ["here" "there"]'),
        ({"aud": ...}, "expected audience"),
        ({"sub": ...}, 'parse username claims "sub": claim not present'),
        ({"sub": 7}, "it is not a string"),
        ({"sub": ""}, "it is empty"),
        ({"groups": [1]}, "no list of strings"),
        ({"id": ...}, "parse uid claims"),
        ({"hd": ...}, "required claim hd not present in ID token"),
        ({"hd": "other"}, "Got = other, want = example.com"),
    ],
)
def test_invalid_claims_are_refused(claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(CredentialsRefused) as refused:
        user(**claims)
    assert reason in refused.value.explanation


def test_clock_skew_is_tolerated() -> None:
    assert user(nbf=NOW + 299).name == "oidc:jane"


@pytest.mark.parametrize(("verified", "good"), [(True, True), (..., True), (False, False), ("yes", False)])
def test_an_unverified_email_is_refused(verified: object, good: bool) -> None:
    issuer = ISSUER._replace(username=Mapping("email"))
    if good:
        assert user(issuer, email="a@b", email_verified=verified).name == "a@b"
    else:
        with pytest.raises(CredentialsRefused, match="Unauthorized"):
            user(issuer, email="a@b", email_verified=verified)


def test_unusable_keys_of_a_key_set_are_skipped() -> None:
    first, second = rsa.generate_private_key(65537, 2048).public_key(), ec.generate_private_key(ec.SECP384R1())
    keys = [json_web_key(VerificationKey("a", first)), json_web_key(VerificationKey("b", second.public_key()))]
    odd = [{"kty": "oct", "k": "x"}, {"kty": "RSA", "kid": "c"}, {**keys[0], "kid": "d", "use": "enc"}]
    found = read_key_set(json.dumps({"keys": [*keys, *odd]}).encode())
    assert found == {"a": [first], "b": [second.public_key()]}
    with pytest.raises(ValueError, match="JSON is malformed"):
        read_key_set(b"nothing")

"""Tests of the flags that configure one issuer of JSON web tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.authentication.trusted_issuer import Mapping
from ctrlmgr.authentication.user import User
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.oidc_flags import issuer_of
from ctrlmgr.server.authn.openid_authenticator import IssuersTokens
from ctrlmgr.settings import Settings
from ctrlmgr.settings.authentication_settings import AuthenticationSettings, OpenIdSettings, ServiceAccountSettings
from ctrlmgr.testing import FakeClock
from tests.server.authn.test_openid_authenticator import Issuer, users_of_tokens

URL = "https://issuer.example.com"
NAMED: dict[str, Any] = {"issuer_url": URL, "client_id": "here"}


def settings(**said: Any) -> Settings:
    """Return settings with a token issuer."""
    return Settings(oidc=OpenIdSettings(**{**NAMED, **said}))


def test_without_flags_there_is_no_issuer() -> None:
    assert issuer_of(Settings()) is None


@pytest.mark.parametrize(
    ("said", "username"),
    [
        ({}, Mapping("sub", f"{URL}#")),
        ({"username_claim": "email"}, Mapping("email")),
        ({"username_claim": "email", "username_prefix": "-"}, Mapping("email")),
        ({"username_prefix": "-"}, Mapping("sub")),
        ({"username_prefix": "oidc:"}, Mapping("sub", "oidc:")),
    ],
)
def test_a_username_claim_other_than_email_gets_the_issuer_prefix(said: dict[str, Any], username: Mapping) -> None:
    issuer = issuer_of(settings(**said))
    assert issuer is not None
    assert issuer.username == username


def test_flags_configure_the_same_issuer_as_a_file() -> None:
    issuer = issuer_of(settings(groups_claim="roles", groups_prefix="g:", required_claim=("hd=example.com", "a=b=c")))
    assert issuer is not None
    assert issuer.discovery_url == f"{URL}/.well-known/openid-configuration"
    assert (issuer.audiences, issuer.groups, issuer.algorithms) == (("here",), Mapping("roles", "g:"), ("RS256",))
    assert issuer.required == (("hd", "example.com"), ("a", "b=c"))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"client_id": ""}, "oidc.issuer_url and oidc.client_id are required"),
        ({"issuer_url": ""}, "oidc.issuer_url and oidc.client_id are required"),
        ({"issuer_url": "http://issuer"}, "oidc.issuer_url: it must be an https URL, not 'http://issuer'"),
        ({"username_claim": ""}, "oidc.username_claim: the claim with the user's name is required"),
        ({"groups_prefix": "g:"}, "oidc.groups_prefix needs oidc.groups_claim"),
        ({"signing_algs": ("HS256", "RS256")}, "oidc.signing_algs: there is no HS256"),
        ({"required_claim": ("hd",)}, "oidc.required_claim: write CLAIM=VALUE, not 'hd'"),
        ({"ca_file": "/none"}, "oidc.ca_file: /none cannot be used: No such file or directory"),
    ],
)
def test_invalid_flags_are_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        issuer_of(settings(**said))
    assert problem in str(refused.value)


def test_an_issuer_is_configured_by_flags_or_a_file() -> None:
    both = Settings(oidc=OpenIdSettings(**NAMED), authentication=AuthenticationSettings(config="a.yaml"))
    with pytest.raises(SettingsError, match=r"these settings and authentication\.config exclude each other"):
        issuer_of(both)
    own = Settings(oidc=OpenIdSettings(**NAMED), service_accounts=ServiceAccountSettings(issuer=(URL,)))
    with pytest.raises(SettingsError, match="the issuer of the server's own tokens"):
        issuer_of(own)


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    made = Issuer(tmp_path)
    yield made
    made.stop()


def test_correctly_signed_tokens_are_accepted(tmp_path: Path, issuer: Issuer) -> None:
    authority = tmp_path / "issuer.crt"
    authority.write_text(issuer.authority)
    trusted = issuer_of(settings(issuer_url=issuer.url, ca_file=str(authority), username_prefix="oidc:"))
    assert trusted is not None
    tokens = IssuersTokens(("us",), clock=FakeClock())
    tokens.trust([trusted])
    issuer.keys["curve"] = ec.generate_private_key(ec.SECP256R1())  # type: ignore[assignment]  # as issuers may
    known, refused = users_of_tokens(tokens, issuer.token(), issuer.token("curve"))
    assert known == User("oidc:jane")
    assert refused == (
        'oidc: verify token: oidc: id token signed with unsupported algorithm, expected ["RS256"] got "ES256"'
    )

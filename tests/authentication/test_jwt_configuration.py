"""Tests of the configuration file with token issuers and anonymous access, and of the line number in each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.authentication.jwt_configuration import Configuration, read_configuration
from ctrlmgr.authentication.trusted_issuer import Mapping
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError

OWN = ("https://kubernetes.default.svc",)
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
ISSUER = """jwt:
- issuer:
    url: https://issuer.example.com
    audiences: [here]
  claimMappings:
    username: {claim: email, prefix: 'oidc:'}
"""


def read(tmp_path: Path, text: str) -> Configuration:
    file = tmp_path / "authentication.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return read_configuration(file, OWN, FUNCTIONS)


def test_an_issuer_is_read(tmp_path: Path) -> None:
    more = "    groups: {claim: roles, prefix: ''}\n    uid: {claim: sub}\n"
    rules = "  claimValidationRules:\n  - {claim: hd, requiredValue: example.com}\n"
    [issuer] = read(tmp_path, f"{ISSUER}{more}{rules}").issuers
    assert issuer.discovery_url == "https://issuer.example.com/.well-known/openid-configuration"
    assert (issuer.username, issuer.groups, issuer.uid) == (Mapping("email", "oidc:"), Mapping("roles"), Mapping("sub"))
    assert (issuer.audiences, issuer.required) == (("here",), (("hd", "example.com"),))


def test_anonymous_paths_are_configured(tmp_path: Path) -> None:
    assert read(tmp_path, ISSUER).anonymous is None
    said = read(tmp_path, "anonymous:\n  enabled: true\n  conditions:\n  - path: /livez\n  - path: /readyz\n")
    assert (said.anonymous, said.anonymous_paths) == (True, ("/livez", "/readyz"))
    assert read(tmp_path, "anonymous: {enabled: false}\n").anonymous is False


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("jwt:\n- issuer: {url: 'http://x', audiences: [a]}\n", 4, "https URL"),
        ("jwt:\n- issuer:\n    url: https://a/?x=1\n    audiences: [a]\n", 5, "no query"),
        (
            "jwt:\n- issuer:\n    url: https://kubernetes.default.svc\n    audiences: [a]\n",
            5,
            "issuer of the server's own tokens",
        ),
        ("jwt:\n- issuer:\n    url: https://a\n", 4, "at least one audience"),
        ("jwt:\n- issuer:\n    url: https://a\n    audiences: [a, b]\n", 6, "MatchAny"),
        (
            "jwt:\n- issuer:\n    url: https://a\n    audiences: [a]\n    certificateAuthority: x\n",
            7,
            "no certificates",
        ),
        ("jwt:\n- issuer: {url: 'https://a', audiences: [a]}\n", 4, "claim or expression is required"),
        (ISSUER.replace(", prefix: 'oidc:'", ""), 8, "prefix is required when claim is set"),
        (f"{ISSUER}  claimValidationRules:\n  - {{claim: a}}\n  - {{claim: a}}\n", 11, 'Duplicate value: "a"'),
        (ISSUER + ISSUER.removeprefix("jwt:\n"), 10, "same URL"),
        ("jwt:\n" + "- {}\n" * 65, 3, "Too many: 65: must have at most 64 items"),
        (f"{ISSUER}    user: x\n", 9, "unknown field `user`"),
        ("anonymous:\n  enabled: false\n  conditions: [{path: /x}]\n", 5, "no effect"),
        ("anonymous:\n  enabled: true\n  conditions: [{path: x}]\n", 5, "must begin with '/'"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text)
    assert f"authentication.yaml:{line}: " in str(refused.value), str(refused.value)
    assert problem in str(refused.value)

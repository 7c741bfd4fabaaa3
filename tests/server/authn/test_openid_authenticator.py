"""Tests of tokens that a configured issuer signs, with keys that are read over HTTPS, and of changes of the
configuration.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.jwt_configuration import Configuration
from ctrlmgr.authentication.token_keys import VerificationKey, json_web_key
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.openid_authenticator import ConfiguredTokens, IssuersTokens
from ctrlmgr.testing import FakeClock
from tests.json_handler import JsonHandler

NOW = 1_767_225_600


class Issuer:
    """An OpenID provider that listens on a free port."""

    def __init__(self, folder: Path) -> None:
        files = ensure_certificates(folder, ("127.0.0.1",), clock=SystemClock())
        self.authority = files.authority.read_text()
        self.keys = {"one": rsa.generate_private_key(65537, 2048)}
        self.asked: list[str] = []
        issuer = self

        class Handler(JsonHandler):
            def respond(self) -> None:
                issuer.asked.append(self.path)
                self.answer(issuer.document(self.path))

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.serving, files.serving_key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def document(self, path: str) -> Any:
        if path == "/keys":
            pairs = self.keys.items()
            return {"keys": [json_web_key(VerificationKey(name, key.public_key())) for name, key in pairs]}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def token(self, key: str = "one", signed_by: Any = None, **claims: Any) -> str:
        said = {"iss": self.url, "sub": "jane", "aud": "here", "exp": NOW + 60, **claims}
        return jwt.sign(json.dumps(said).encode(), signed_by or self.keys[key], key)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    made = Issuer(tmp_path_factory.mktemp("issuer"))
    yield made
    made.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def written(folder: Path, issuer: Issuer, prefix: str = "oidc:", **more: Any) -> Path:
    """Write a configuration file with an issuer; `more` contains additional or changed fields of the issuer."""
    said = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {"url": issuer.url, "audiences": ["here"], "certificateAuthority": issuer.authority},
                "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
                **more,
            }
        ],
    }
    file = folder / "authentication.yaml"
    file.write_text(json.dumps(said, indent=1))
    return file


@pytest.fixture
def configurations() -> list[Configuration]:
    return []


@pytest.fixture
def tokens(tmp_path: Path, issuer: Issuer, clock: FakeClock, configurations: list[Configuration]) -> ConfiguredTokens:
    issuer.asked.clear()
    return ConfiguredTokens(written(tmp_path, issuer), (), ("us",), configurations.append, clock=clock)


def users_of_tokens(tokens: IssuersTokens, *given: str) -> list[User | str | None]:
    """Return the user of each token, or the reason for which the token is refused."""

    async def ask() -> list[User | str | None]:
        found: list[User | str | None] = []
        for token in given:
            try:
                answer = await tokens.authenticate_token(token, ("us",), AuthenticationNotes())
            except CredentialsRefused as refusal:
                found.append(refusal.explanation)
            else:
                found.append(answer and answer.user)
        return found

    return asyncio.run(ask())


def test_an_issuers_token_is_accepted_and_its_keys_are_fetched_once(issuer: Issuer, tokens: ConfiguredTokens) -> None:
    token = issuer.token()
    assert users_of_tokens(tokens, token, token) == [User("oidc:jane"), User("oidc:jane")]
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


def test_a_signature_is_verified_once_until_the_keys_change(
    issuer: Issuer, tokens: ConfiguredTokens, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[str] = []
    verifies = jwt.verifies

    def counted(token: jwt.Compact, key: jwt.PublicKey) -> bool:
        verified.append(token.key_id)
        return verifies(token, key)

    monkeypatch.setattr(jwt, "verifies", counted)
    token = issuer.token()
    changed = f"{token.rpartition('.')[0]}.{issuer.token(sub='joe').rpartition('.')[2]}"
    jane = User("oidc:jane")
    assert users_of_tokens(tokens, token, token, token) == [jane] * 3
    assert verified == ["one"]
    assert "failed to verify signature" in str(users_of_tokens(tokens, changed)[0])
    other = {"one": rsa.generate_private_key(65537, 2048), "two": issuer.keys["one"]}
    monkeypatch.setattr(issuer, "keys", other)
    clock.step(11)
    assert users_of_tokens(tokens, issuer.token("two")) == [jane]
    assert "failed to verify signature" in str(users_of_tokens(tokens, token)[0])


def test_tokens_with_another_signature_are_refused(issuer: Issuer, tokens: ConfiguredTokens) -> None:
    forged = issuer.token(signed_by=rsa.generate_private_key(65537, 2048))
    head, payload, _ = issuer.token().split(".")
    none = jwt.encoded(b'{"alg":"none"}')
    found = users_of_tokens(
        tokens, forged, f"{none}.{payload}.", f"{head}.{payload}.", issuer.token(exp=NOW), "a.b.c", "x"
    )
    assert found[:3] == ["oidc: verify token: failed to verify signature: failed to verify id token signature"] * 3
    assert found[3:] == ["oidc: verify token: oidc: token is expired", None, None]


def test_tokens_of_other_issuers_are_ignored(issuer: Issuer, tokens: ConfiguredTokens) -> None:
    assert users_of_tokens(tokens, issuer.token(iss="https://elsewhere")) == [None]
    assert issuer.asked == []


def test_a_new_key_is_fetched_after_a_while(issuer: Issuer, tokens: ConfiguredTokens, clock: FakeClock) -> None:
    users_of_tokens(tokens, issuer.token())
    issuer.keys["two"] = rsa.generate_private_key(65537, 2048)
    token = issuer.token("two")
    assert isinstance(users_of_tokens(tokens, token)[0], str)
    clock.step(11)
    assert users_of_tokens(tokens, token) == [User("oidc:jane")]


def test_a_token_must_have_the_servers_audience(issuer: Issuer, tokens: ConfiguredTokens) -> None:
    async def ask() -> object:
        return await tokens.authenticate_token(issuer.token(), ("others",), AuthenticationNotes())

    assert asyncio.run(ask()) is None


def test_a_changed_file_is_loaded_and_an_invalid_one_ignored(
    tmp_path: Path, issuer: Issuer, tokens: ConfiguredTokens, configurations: list[Configuration]
) -> None:
    assert not tokens.reload()
    os.utime(written(tmp_path, issuer, "new:"), ns=(1, 1))
    assert tokens.reload()
    assert users_of_tokens(tokens, issuer.token()) == [User("new:jane")]
    (tmp_path / "authentication.yaml").write_text("kind: Nonsense\n")
    assert not tokens.reload()
    assert users_of_tokens(tokens, issuer.token()) == [User("new:jane")]
    (tmp_path / "authentication.yaml").unlink()
    assert not tokens.reload()
    assert len(configurations) == 2


def test_an_unreachable_issuer_authenticates_no_users(tmp_path: Path, issuer: Issuer, clock: FakeClock) -> None:
    file = written(tmp_path, issuer)
    file.write_text(file.read_text().replace(issuer.url, "https://127.0.0.1:1"))
    tokens = ConfiguredTokens(file, (), ("us",), lambda said: None, clock=clock)
    assert users_of_tokens(tokens, issuer.token(iss="https://127.0.0.1:1")) == ["oidc: authenticator not initialized"]
    with pytest.raises(SettingsError, match="cannot be read"):
        ConfiguredTokens(tmp_path / "none", (), ("us",), lambda said: None, clock=clock)


MAPPINGS = {
    "username": {"expression": "'oidc:' + claims.user.name"},
    "groups": {"expression": "dyn(claims.roles).map(each, 'oidc:' + each)"},
    "uid": {"expression": "claims.?uid.orValue('')"},
    "extra": [{"key": "acme.io/team", "valueExpression": "claims.?team.orValue('')"}],
}
CLAIM_RULE = {"expression": "claims.exp - claims.iat <= 3600.0", "message": "it lasts too long"}
USER_RULE = {"expression": "!('oidc:admins' in user.groups)", "message": "administrators come otherwise"}
USER_KNOWN = User("oidc:jane", "7", ("oidc:dev",), {"acme.io/team": ("till",)})


def by_expressions(folder: Path, issuer: Issuer, **more: Any) -> Path:
    said = {"claimMappings": MAPPINGS, "claimValidationRules": [CLAIM_RULE], "userValidationRules": [USER_RULE]}
    return written(folder, issuer, **{**said, **more})


def jane(issuer: Issuer, **claims: Any) -> str:
    """Return a token that this issuer signs."""
    return issuer.token(**{"user": {"name": "jane"}, "roles": ["dev"], "iat": NOW, **claims})


def test_expressions_define_users_and_rules_refuse_them(tmp_path: Path, issuer: Issuer, clock: FakeClock) -> None:
    tokens = ConfiguredTokens(by_expressions(tmp_path, issuer), (), ("us",), lambda said: None, clock=clock)
    good, late = jane(issuer, uid="7", team="till"), jane(issuer, iat=NOW - 3600)
    known, long, admin = users_of_tokens(tokens, good, late, jane(issuer, roles=["admins"]))
    assert known == USER_KNOWN
    problem = "oidc: error evaluating claim validation expression: validation expression"
    assert long == f"{problem} '{CLAIM_RULE['expression']}' failed: it lasts too long"
    problem = "oidc: error evaluating user info validation rule: validation expression"
    assert admin == f"{problem} '{USER_RULE['expression']}' failed: administrators come otherwise"


def test_a_failing_expression_refuses_and_is_logged(tmp_path: Path, issuer: Issuer, clock: FakeClock) -> None:
    tokens = ConfiguredTokens(by_expressions(tmp_path, issuer), (), ("us",), lambda said: None, clock=clock)
    with capture_logs() as logged:
        found = users_of_tokens(tokens, jane(issuer, user={}), jane(issuer))
    problem = "resulted in error: no such key: name"
    why = f"oidc: error evaluating username claim expression: expression ''oidc:' + claims.user.name' {problem}"
    assert found == [why, User("oidc:jane", "", ("oidc:dev",))]
    assert [(each["log_level"], each["issuer"], each["error"]) for each in logged] == [("warning", issuer.url, why)]


def reloads(status: str) -> float:
    """Return how often the file was reloaded successfully, and how often it failed."""
    name = "apiserver_authentication_config_controller_automatic_reloads_total"
    return REGISTRY.get_sample_value(name, {"status": status}) or 0.0


def test_an_expression_that_became_invalid_keeps_the_old_configuration(
    tmp_path: Path, issuer: Issuer, clock: FakeClock
) -> None:
    tokens = ConfiguredTokens(by_expressions(tmp_path, issuer), (), ("us",), lambda said: None, clock=clock)
    assert users_of_tokens(tokens, jane(issuer, uid="7", team="till")) == [USER_KNOWN]
    failures = reloads("failure")
    by_expressions(tmp_path, issuer, userValidationRules=[{"expression": "user.age > 18"}])
    with capture_logs() as logged:
        assert not tokens.reload()
    assert reloads("failure") == failures + 1
    [configurations] = logged
    assert configurations["error"].endswith("compilation failed: ERROR: <input>:1:5: undefined field 'age'")
    assert users_of_tokens(tokens, jane(issuer, uid="7", team="till")) == [USER_KNOWN]


def test_the_keys_of_an_unchanged_issuer_are_not_fetched_again(
    tmp_path: Path, issuer: Issuer, clock: FakeClock
) -> None:
    tokens = ConfiguredTokens(by_expressions(tmp_path, issuer), (), ("us",), lambda said: None, clock=clock)
    users_of_tokens(tokens, jane(issuer))
    issuer.asked.clear()
    file = by_expressions(tmp_path, issuer)
    file.write_text(file.read_text() + "\n")
    assert tokens.reload()
    assert users_of_tokens(tokens, jane(issuer)) == [User("oidc:jane", "", ("oidc:dev",))]
    assert issuer.asked == []
    by_expressions(tmp_path, issuer, userValidationRules=[])
    assert tokens.reload()
    assert users_of_tokens(tokens, jane(issuer, roles=["admins"])) == [User("oidc:jane", "", ("oidc:admins",))]

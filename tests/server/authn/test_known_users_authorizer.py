from __future__ import annotations

import hashlib
import os
from pathlib import Path
from random import SystemRandom

import pytest
import yaml

from ctrlmgr.authentication.user import ANONYMOUS, User, known
from ctrlmgr.authorization.attributes import path_attributes
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.admin_kubeconfig import admin_token, write_kubeconfig
from ctrlmgr.server.authn.known_users_authorizer import KnownUsersAuthorizer
from ctrlmgr.server.authn.token_file import Tokens
from tests.server.authn.authenticator_calls import failures

ADMIN = User("system:admin", "", ("system:masters",))
KNOWN_ADMIN = User("system:admin", "", ("system:masters", "system:authenticated"))


@pytest.mark.parametrize(
    ("user", "verb", "path", "allowed"),
    [
        (ANONYMOUS, "get", "/healthz", True),
        (ANONYMOUS, "get", "/readyz/log", True),
        (ANONYMOUS, "get", "/version", True),
        (ANONYMOUS, "post", "/version", False),
        (ANONYMOUS, "get", "/versions", False),
        (ANONYMOUS, "get", "/metrics", False),
        (ANONYMOUS, "get", "/", False),
        (User("joe", "", ("system:authenticated",)), "get", "/metrics", True),
        (User("joe", "", ("system:authenticated",)), "get", "/debug/profile", False),
        (User("joe", "", ("system:authenticated",)), "get", "/configz", False),
        (KNOWN_ADMIN, "get", "/debug/profile", True),
    ],
)
def test_allowed_requests(user: User, verb: str, path: str, allowed: bool) -> None:
    assert KnownUsersAuthorizer().authorize(user, path_attributes(verb, path)).allows is allowed


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_token_file_is_read_and_reloaded(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"hidden").hexdigest()
    lines = f'# who\nopen,jane,7,"a, b"\nsha256:{digest},joe,8\n\n'
    file = private(tmp_path / "tokens.csv", lines)
    tokens = Tokens({"secret": ADMIN}, file)
    assert tokens.user("open") == known(User("jane", "7", ("a", "b")))
    assert tokens.user("hidden") == known(User("joe", "8"))
    assert tokens.user(f"sha256:{digest}") is None
    assert not tokens.reload()
    private(file, "other,jim,9\n")
    os.utime(file, ns=(1, 1))
    assert tokens.reload()
    assert tokens.user("open") is None
    assert tokens.user("other") == known(User("jim", "9"))
    assert tokens.user("secret") == known(ADMIN)


def test_a_token_file_that_becomes_invalid_changes_nothing(tmp_path: Path) -> None:
    file = private(tmp_path / "tokens.csv", "open,jane,7\n")
    tokens = Tokens({}, file)
    before = failures("authentication.token_auth_file")
    private(file, "broken\n")
    assert not tokens.reload()
    assert failures("authentication.token_auth_file") == before + 1
    assert tokens.user("open") == known(User("jane", "7"))
    file.unlink()
    assert tokens.reload()
    assert tokens.user("open") is None


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        pytest.param("a,b\n", 0o600, r"tokens\.csv:1: write token,user,uid", id="too short"),
        pytest.param("a,b,c\n,b,c\n", 0o600, r":2: write token,user,uid", id="no token"),
        pytest.param("sha256:12,b,c\n", 0o600, "64 hexadecimal digits", id="half a hash"),
        pytest.param("a,b,c\n", 0o644, "other users can read", id="open to all"),
    ],
)
def test_an_invalid_token_file_is_refused(tmp_path: Path, text: str, mode: int, message: str) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(SettingsError, match=message):
        Tokens({}, file)


def test_the_kubeconfig_keeps_its_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    token = admin_token(path, SystemRandom())
    write_kubeconfig(path, server="https://127.0.0.1:6443", authority=b"PEM", token=token)
    assert path.stat().st_mode & 0o777 == 0o600
    assert admin_token(path, SystemRandom()) == token
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": "UEVN",
    }
    assert 56 < len(token) <= 64
    assert token.isalnum()
    assert admin_token(tmp_path / "another", SystemRandom()) != token


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        pytest.param("users: []", 0o600, "not a kubeconfig with a token", id="no user"),
        pytest.param("{", 0o600, "not a kubeconfig with a token", id="no YAML"),
        pytest.param("users: []", 0o640, "other users can read", id="open to the group"),
    ],
)
def test_an_invalid_kubeconfig_is_refused(tmp_path: Path, text: str, mode: int, message: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=message):
        admin_token(path, SystemRandom())

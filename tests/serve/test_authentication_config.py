"""Tests of CEL expressions in the authentication configuration: the user that results from a token, and reloads of the
file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import wait_until
from tests.serve.test_authorization import Site
from tests.server.authn.test_openid_authenticator import CLAIM_RULE, USER_RULE, Issuer, by_expressions, jane

LATER = 4_000_000_000
SELF = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
RELOADS = "apiserver_authentication_config_controller_automatic_reloads_total"


class TokenSite(Site):
    """A server with several users that have tokens of an issuer."""

    def __init__(self, server: ServerProcess, folder: Path, issuer: Issuer) -> None:
        super().__init__(server)
        self.folder = folder
        self.issuer = issuer

    def who(self, **claims: Any) -> tuple[int, Any]:
        """Return the status code, and the user that the server reports for a token."""
        token = jane(self.issuer, **{"exp": LATER, "iat": LATER - 60, **claims})
        code, said = self.bear(token, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", SELF)
        return code, said["status"]["userInfo"] if code == 201 else said["message"]

    def reloads(self, status: str) -> float:
        """Return how often the server has reloaded the file successfully, and how often it failed."""
        lines = self.ask("admin", "GET", "/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f'{RELOADS}{{status="{status}"}}'))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenSite]:
    folder = tmp_path_factory.mktemp("issued")
    place = folder / "issuer"
    place.mkdir()
    issuer = Issuer(place)
    with ServerProcess(folder, f"--authentication-config={by_expressions(folder, issuer)}") as server:
        yield TokenSite(server, folder, issuer)
    issuer.stop()


def test_expressions_determine_the_user_of_a_token(site: TokenSite) -> None:
    code, user = site.who(uid="7", team="till")
    assert code == 201
    assert user == {
        "username": "oidc:jane",
        "uid": "7",
        "groups": ["oidc:dev", "system:authenticated"],
        "extra": {"acme.io/team": ["till"]},
    }


@pytest.mark.parametrize("claims", [{"iat": 1}, {"roles": ["admins"]}, {"user": "jane"}, {"roles": 7}])
def test_an_invalid_token_is_refused(site: TokenSite, claims: dict[str, Any]) -> None:
    assert site.who(**claims) == (401, "Unauthorized")


def test_reasons_are_shown_in_token_reviews_and_the_log(site: TokenSite) -> None:
    token = jane(site.issuer, exp=LATER, iat=LATER - 60, user={})
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    code, said = site.ask("admin", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert code == 201
    assert "no such key: name" in said["status"]["error"]
    assert "token claims expression failed" in site.server.output


def test_a_changed_rule_is_loaded_and_an_invalid_one_ignored(site: TokenSite) -> None:
    assert site.who(roles=["dev", "ops"])[0] == 201
    rule = {"expression": "user.groups.size() < 2", "message": "too many"}
    by_expressions(site.folder, site.issuer, userValidationRules=[USER_RULE, rule])
    wait_until(lambda: site.reloads("success") == 1)
    assert site.who(roles=["dev", "ops"])[0] == 401
    by_expressions(site.folder, site.issuer, claimValidationRules=[CLAIM_RULE, {"expression": "claims.a"}])
    wait_until(lambda: site.reloads("failure") == 1)
    assert [site.who(roles=["dev", "ops"])[0], site.who()[0]] == [401, 201]
    assert "must evaluate to bool but got any" in site.server.output

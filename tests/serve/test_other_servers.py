"""Tests of a running server that calls other servers for authentication and authorization."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.settings import AuthorizationSettings
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import wait_until
from tests.serve.test_authorization import TOKENS, Site
from tests.server.authn.test_openid_authenticator import Issuer, written
from tests.server.reviewing import ReviewServer, kubeconfig

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def review_server() -> Iterator[ReviewServer]:
    made = ReviewServer("SubjectAccessReview", {"allowed": True})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def token_review_server() -> Iterator[ReviewServer]:
    made = ReviewServer("TokenReview", {"authenticated": True, "user": {"username": "eve"}})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    made = Issuer(tmp_path_factory.mktemp("issuer"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    review_server: ReviewServer,
    token_review_server: ReviewServer,
    issuer: Issuer,
) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("webhook")
    tokens = folder / "users.csv"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    elsewhere = folder / "tokens"
    elsewhere.mkdir()
    flags = [
        f"--authentication-config={written(folder, issuer)}",
        f"--authentication-token-webhook-config-file={kubeconfig(elsewhere, token_review_server.url)}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=Node,RBAC,Webhook",
        f"--authorization-webhook-config-file={kubeconfig(folder, review_server.url)}",
        "--authorization-webhook-version=v1",
        "--authorization-webhook-cache-authorized-ttl=1h",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
    ]
    with ServerProcess(folder, *flags) as server:
        yield Site(server)


def test_the_webhook_is_called_only_without_an_earlier_decision(site: Site, review_server: ReviewServer) -> None:
    review_server.asked.clear()
    assert site.ask("admin", "GET", PODS)[0] == 200
    assert site.ask("ann", "GET", "/version")[0] == 200  # by RBAC
    assert review_server.asked == []
    review_server.status = {"allowed": True}
    assert site.ask("ann", "GET", PODS)[0] == 200
    assert site.ask("ann", "GET", PODS)[0] == 200
    [review] = review_server.asked
    assert review["spec"]["user"] == "ann"
    assert review["spec"]["groups"] == ["dev", "system:authenticated"]


def test_a_denial_is_a_refusal_with_its_reason(site: Site, review_server: ReviewServer) -> None:
    review_server.status = {"allowed": False, "denied": True, "reason": "not on Mondays"}
    code, told = site.ask("bob", "GET", PODS)
    assert code == 403
    assert told["message"].endswith('in the namespace "default": not on Mondays')


def test_without_a_response_a_request_fails_without_a_denial(site: Site, review_server: ReviewServer) -> None:
    review_server.status = "nonsense"
    code, told = site.ask("bob", "GET", f"{PODS}?limit=1")
    assert code == 500
    assert told.startswith(f'Internal Server Error: "{PODS}?limit=1": ')
    spec = {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    code, told = site.ask("admin", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert code == 201
    assert told["status"]["allowed"] is False
    assert told["status"]["evaluationError"]


def test_controllers_do_not_depend_on_the_webhook(site: Site, review_server: ReviewServer) -> None:
    """Controllers have the permissions of their roles: a namespace gets its ServiceAccount although the authorization
    webhook sends invalid responses.
    """
    review_server.status = "nonsense"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}
    assert site.ask("admin", "POST", "/api/v1/namespaces", space)[0] == 201
    wait_until(lambda: site.ask("admin", "GET", "/api/v1/namespaces/made/serviceaccounts/default")[0] == 200)


def test_tokens_known_to_the_webhook_are_accepted(site: Site, review_server: ReviewServer, issuer: Issuer) -> None:
    """Each request uses a new connection, so nothing was cached before the webhook is called."""
    review_server.status = {"allowed": False}
    token = issuer.token(exp=int(time.time()) + 600)
    for name, bearer in (("eve", "who-is-this"), ("oidc:jane", token)):
        request = Request(f"{site.server.url}{PODS}?limit=2", headers={"Authorization": f"Bearer {bearer}"})
        with pytest.raises(HTTPError) as refused:
            urlopen(request, timeout=20, context=site.server.trust)
        told = json.loads(refused.value.read())
        assert (refused.value.code, f'User "{name}"' in told["message"]) == (403, True), told


@pytest.mark.parametrize(("mode", "file"), [("Webhook", ""), ("RBAC", "some.kubeconfig")])
def test_the_mode_and_its_file_require_each_other(mode: str, file: str) -> None:
    with pytest.raises(SettingsError, match="webhook_config_file"):
        ServingAuthorization(AuthorizationSettings(mode=(mode,), webhook_config_file=file), clock=SystemClock())

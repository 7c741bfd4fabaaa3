"""Tests of the authorization configuration while the server runs: several webhooks, and roles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.settings import AuthorizationSettings
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import wait_until
from tests.serve.test_authorization import TOKENS, Site
from tests.server.reviewing import ReviewServer, kubeconfig

PODS = "/api/v1/namespaces/default/pods"
NODE = {"type": "Node", "name": "node"}
RBAC = {"type": "RBAC", "name": "rbac"}
RELOADS = "apiserver_authorization_config_controller_automatic_reloads_total"


def webhook(
    folder: Path, name: str, url: str, failure_policy: str = "NoOpinion", conditions: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the configuration of an authorizer that calls another server and does not cache responses."""
    place = folder / name
    place.mkdir(exist_ok=True)
    said = {
        "timeout": "5s",
        "cacheAuthorizedRequests": False,
        "cacheUnauthorizedRequests": False,
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": failure_policy,
        "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{"expression": each} for each in conditions],
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig(place, url))},
    }
    return {"type": "Webhook", "name": name, "webhook": said}


class AuthorizationFile:
    """The configuration file, and the two servers that the file may name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "authorization.yaml"
        self.first = ReviewServer("SubjectAccessReview", {"allowed": False})
        self.second = ReviewServer("SubjectAccessReview", {"allowed": True})
        self._written = 0

    def write(self, authorizers: Sequence[dict[str, Any]]) -> None:
        """Write the file with a new modification time, even if the file system's time resolution is coarse."""
        head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
        self.file.write_text(yaml.safe_dump({**head, "authorizers": [*authorizers]}))
        self._written += 1
        os.utime(self.file, (self._written, self._written))

    def servers(self, failure_policy: str = "NoOpinion", conditions: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the configuration of two authorizers: the first server is called under conditions, and then the second
        server.
        """
        return [
            webhook(self.folder, "first", self.first.url, failure_policy, conditions),
            webhook(self.folder, "second", self.second.url),
        ]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationFile]:
    made = AuthorizationFile(tmp_path_factory.mktemp("named"))
    yield made
    made.first.stop()
    made.second.stop()


@pytest.fixture(scope="module")
def site(named: AuthorizationFile) -> Iterator[Site]:
    tokens = named.folder / "users.csv"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    named.write([NODE, RBAC, *named.servers()])
    flags = [f"--authorization-config={named.file}", f"--token-auth-file={tokens}"]
    with ServerProcess(named.folder, *flags) as server:
        yield Site(server)


def reloads(site: Site, status: str) -> float:
    """Return how often the server has reloaded the file successfully, and how often it failed."""
    lines = site.ask("admin", "GET", "/metrics")[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f'{RELOADS}{{status="{status}"}}'))


def test_several_webhooks_are_called_in_order(named: AuthorizationFile, site: Site) -> None:
    assert site.ask("bob", "GET", PODS)[0] == 200
    assert [len(named.first.asked), len(named.second.asked)] == [1, 1]
    named.first.status = {"allowed": False, "denied": True, "reason": "not him"}
    code, told = site.ask("bob", "GET", PODS)
    assert (code, told["message"].endswith(": not him")) == (403, True)
    assert len(named.second.asked) == 1
    assert site.ask("admin", "GET", PODS)[0] == 200, "administrators stay what they are"


def test_a_changed_file_is_loaded_and_an_invalid_one_ignored(named: AuthorizationFile, site: Site) -> None:
    named.first.status = "nonsense"
    assert site.ask("bob", "GET", PODS)[0] == 200, "without an answer it has no opinion"
    named.write([NODE, RBAC, *named.servers(failure_policy="Deny")])
    wait_until(lambda: site.ask("bob", "GET", PODS)[0] == 500)
    assert reloads(site, "success") == 1
    named.file.write_text("authorizers: [\n")
    wait_until(lambda: reloads(site, "failure") == 1)
    named.write([NODE, *named.servers()])
    wait_until(lambda: reloads(site, "failure") == 2)
    assert site.ask("bob", "GET", PODS)[0] == 500, "what it said before stays in force"
    named.write([RBAC, NODE])
    wait_until(lambda: site.ask("bob", "GET", PODS)[0] == 403)
    assert reloads(site, "success") == 2


def reviewed(server: ReviewServer) -> list[str]:
    """Return the users about which an authorization server was queried, and clear the list."""
    users = [review["spec"]["user"] for review in server.asked]
    server.asked.clear()
    return users


def test_match_conditions_limit_calls_to_a_webhook(named: AuthorizationFile, site: Site) -> None:
    named.first.status = {"allowed": False, "denied": True, "reason": "not here"}
    taken = reloads(site, "success")
    condition = "request.resourceAttributes.namespace == 'default'"
    named.write([NODE, RBAC, *named.servers("Deny", ["has(request.resourceAttributes)", condition])])
    wait_until(lambda: reloads(site, "success") == taken + 1)
    reviewed(named.first)
    assert site.ask("bob", "GET", PODS)[0] == 403
    assert reviewed(named.first) == ["bob"]
    assert site.ask("bob", "GET", "/api/v1/namespaces/kube-system/pods")[0] == 200, "the second server allows it"
    assert site.ask("bob", "GET", "/metrics")[0] == 200, "what is no resource does not meet the first condition"
    assert reviewed(named.first) == []


@pytest.mark.parametrize(("failure_policy", "code", "second"), [("Deny", 500, []), ("NoOpinion", 200, ["bob"])])
def test_a_failing_condition_denies_or_skips_the_webhook(
    named: AuthorizationFile, site: Site, failure_policy: str, code: int, second: list[str]
) -> None:
    taken = reloads(site, "success")
    named.write([NODE, RBAC, *named.servers(failure_policy, ["request.extra.team[0] == 'a'"])])
    wait_until(lambda: reloads(site, "success") == taken + 1)
    reviewed(named.first), reviewed(named.second)
    answered, told = site.ask("bob", "GET", PODS)
    assert answered == code
    assert ("no such key: team" in str(told)) is (code == 500)
    assert (reviewed(named.first), reviewed(named.second)) == ([], second)


def test_an_invalid_condition_keeps_the_old_configuration(named: AuthorizationFile, site: Site) -> None:
    failed, taken = reloads(site, "failure"), reloads(site, "success")
    named.write([NODE, RBAC, *named.servers("Deny", ["request.user != 'bob'"])])
    wait_until(lambda: reloads(site, "success") == taken + 1)
    named.write([NODE, RBAC, *named.servers("Deny", ["request.resourceAttributes.namespace"])])
    wait_until(lambda: reloads(site, "failure") == failed + 1)
    assert "must evaluate to bool but got string" in site.server.output
    reviewed(named.first)
    assert site.ask("bob", "GET", PODS)[0] == 200, "the first server is still not asked about him"
    assert reviewed(named.first) == []


@pytest.mark.parametrize(
    "more",
    [{"mode": ("RBAC",)}, {"webhook_config_file": "a.kubeconfig"}, {"webhook_cache_authorized_ttl": 1.0}],
    ids=str,
)
def test_a_configuration_file_replaces_the_flags(named: AuthorizationFile, more: dict[str, Any]) -> None:
    settings = AuthorizationSettings(config=str(named.file), **more)
    with pytest.raises(SettingsError, match=rf"authorization\.{next(iter(more))} cannot be set where"):
        ServingAuthorization(settings, clock=SystemClock())


def test_the_mode_abac_reads_its_policy_file(tmp_path: Path) -> None:
    file = tmp_path / "policies.jsonl"
    file.write_text('{"user": "ann", "resource": "pods"}\n', encoding="utf-8")
    made = ServingAuthorization(
        AuthorizationSettings(mode=("RBAC", "ABAC"), policy_file=str(file)), clock=SystemClock()
    )
    verdicts = [made.authorizer.authorize(User("ann"), Attributes("get", resource=each)) for each in ("pods", "nodes")]
    assert [verdict is not None and verdict.allows for verdict in verdicts] == [True, False]


@pytest.mark.parametrize("settings", [{"mode": ("ABAC",)}, {"policy_file": "policies.jsonl"}], ids=str)
def test_the_mode_abac_and_the_policy_file_require_each_other(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"authorization\.policy_file must be set if, and only if"):
        ServingAuthorization(AuthorizationSettings(**settings), clock=SystemClock())


def test_authorizers_that_follow_the_log_start_with_the_server(named: AuthorizationFile) -> None:
    named.write([RBAC])
    made = ServingAuthorization(AuthorizationSettings(config=str(named.file)), clock=SystemClock())
    [reload] = made.reloads
    assert not reload()
    named.write([RBAC, NODE])
    assert not reload()
    named.write([RBAC, {"type": "AlwaysDeny", "name": "alwaysdeny"}])
    assert reload()

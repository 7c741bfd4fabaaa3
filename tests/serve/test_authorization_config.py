"""Who is asked, as a file says that is followed while the server runs: several other servers, and roles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.authorization import ServingAuthorization
from ctrlmgr.settings import AuthorizationSettings
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import wait_until
from tests.serve.test_authorization import TOKENS, Site
from tests.server.reviewing import Answering, kubeconfig

PODS = "/api/v1/namespaces/default/pods"
NODE = {"type": "Node", "name": "node"}
RBAC = {"type": "RBAC", "name": "rbac"}
RELOADS = "apiserver_authorization_config_controller_automatic_reloads_total"


def webhook(folder: Path, name: str, url: str, failure_policy: str = "NoOpinion") -> dict[str, Any]:
    """Return an authorizer that asks another server, and remembers nothing of what it says."""
    place = folder / name
    place.mkdir(exist_ok=True)
    said = {
        "timeout": "5s",
        "cacheAuthorizedRequests": False,
        "cacheUnauthorizedRequests": False,
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": failure_policy,
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig(place, url))},
    }
    return {"type": "Webhook", "name": name, "webhook": said}


class Named:
    """The file, and the two servers that it may name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "authorization.yaml"
        self.first = Answering("SubjectAccessReview", {"allowed": False})
        self.second = Answering("SubjectAccessReview", {"allowed": True})
        self._written = 0

    def write(self, authorizers: Sequence[dict[str, Any]]) -> None:
        """Write the file; it looks changed, however soon that is."""
        head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
        self.file.write_text(yaml.safe_dump({**head, "authorizers": [*authorizers]}))
        self._written += 1
        os.utime(self.file, (self._written, self._written))

    def servers(self, failure_policy: str = "NoOpinion") -> list[dict[str, Any]]:
        """Return authorizers that ask the first server and then the second."""
        return [
            webhook(self.folder, "first", self.first.url, failure_policy),
            webhook(self.folder, "second", self.second.url),
        ]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    made = Named(tmp_path_factory.mktemp("named"))
    yield made
    made.first.stop()
    made.second.stop()


@pytest.fixture(scope="module")
def site(named: Named) -> Iterator[Site]:
    tokens = named.folder / "users.csv"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    named.write([NODE, RBAC, *named.servers()])
    flags = [f"--authorization-config={named.file}", f"--token-auth-file={tokens}"]
    with ServerProcess(named.folder, *flags) as server:
        yield Site(server)


def reloads(site: Site, status: str) -> float:
    """Return how often the file was taken up, or could not be."""
    lines = site.ask("admin", "GET", "/metrics")[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f'{RELOADS}{{status="{status}"}}'))


def test_several_servers_are_asked_in_turn(named: Named, site: Site) -> None:
    assert site.ask("bob", "GET", PODS)[0] == 200
    assert [len(named.first.asked), len(named.second.asked)] == [1, 1]
    named.first.status = {"allowed": False, "denied": True, "reason": "not him"}
    code, told = site.ask("bob", "GET", PODS)
    assert (code, told["message"].endswith(": not him")) == (403, True)
    assert len(named.second.asked) == 1
    assert site.ask("admin", "GET", PODS)[0] == 200, "administrators stay what they are"


def test_a_file_is_followed_and_one_that_is_unusable_is_not(named: Named, site: Site) -> None:
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


@pytest.mark.parametrize(
    "more",
    [{"mode": ("RBAC",)}, {"webhook_config_file": "a.kubeconfig"}, {"webhook_cache_authorized_ttl": 1.0}],
    ids=str,
)
def test_the_file_alone_says_who_is_asked(named: Named, more: dict[str, Any]) -> None:
    settings = AuthorizationSettings(config=str(named.file), **more)
    with pytest.raises(SettingsError, match=rf"authorization\.{next(iter(more))} cannot be set where"):
        ServingAuthorization(settings, clock=SystemClock())


def test_what_follows_the_log_begins_with_the_server(named: Named) -> None:
    named.write([RBAC])
    made = ServingAuthorization(AuthorizationSettings(config=str(named.file)), clock=SystemClock())
    [reload] = made.reloads
    assert not reload()
    named.write([RBAC, NODE])
    assert not reload()
    named.write([RBAC, {"type": "AlwaysDeny", "name": "alwaysdeny"}])
    assert reload()

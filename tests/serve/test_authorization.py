"""Tests of authorization in a running server: changes of roles and bindings apply from the next request on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.testing.served import ServerProcess

GROUP = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = 'ann-token,ann,ann-uid,"dev"\nbob-token,bob,bob-uid\n'


class Site:
    """A running server, and its users."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server

    def ask(
        self, user: str, method: str, path: str, body: Any = None, media_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Return the status code and the message of a response."""
        token = {"admin": self.server.token, "": ""}.get(user, f"{user}-token")
        return self.bear(token, method, path, body, media_type)

    def bear(
        self, token: str, method: str, path: str, body: Any = None, media_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request with a user's token; return the status code and the message of the response."""
        headers = {"Content-Type": media_type, **({"Authorization": f"Bearer {token}"} if token else {})}
        data = json.dumps(body).encode() if body is not None else None
        request = Request(f"{self.server.url}{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=20, context=self.server.trust) as answer:
                return answer.status, _read(answer.read())
        except HTTPError as error:
            return error.code, _read(error.read())

    def grant(self, user: str, role: str, *rules: dict[str, Any]) -> None:
        """Give a user permissions in all namespaces, with a separate role."""
        made = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": role}}
        assert self.ask("admin", "POST", f"{GROUP}/clusterroles", {**made, "rules": rules})[0] == 201
        subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
        binding = {**made, "subjects": subjects, "roleRef": reference}
        assert self.ask("admin", "POST", f"{GROUP}/clusterrolebindings", binding)[0] == 201

    def revoke(self, role: str) -> None:
        """Remove the permissions of a user."""
        assert self.ask("admin", "DELETE", f"{GROUP}/clusterrolebindings/{role}")[0] == 200
        assert self.ask("admin", "DELETE", f"{GROUP}/clusterroles/{role}")[0] == 200


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("rights")
    tokens = folder / "users.csv"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    with ServerProcess(folder, "--token-auth-file", str(tokens)) as server:
        yield Site(server)


def test_every_cluster_has_the_default_roles(site: Site) -> None:
    roles = site.ask("admin", "GET", f"{GROUP}/clusterroles")[1]["items"]
    assert {"cluster-admin", "admin", "edit", "view", "system:node"} <= {role["metadata"]["name"] for role in roles}


def test_changed_rights_apply_to_the_next_request(site: Site) -> None:
    code, refused = site.ask("ann", "GET", "/api/v1/namespaces/default/pods")
    assert (code, refused["message"]) == (
        403,
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"',
    )
    site.grant("ann", "reads-pods", {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})
    assert site.ask("ann", "GET", "/api/v1/namespaces/default/pods")[0] == 200
    assert site.ask("bob", "GET", "/api/v1/namespaces/default/pods")[0] == 403
    site.revoke("reads-pods")
    assert site.ask("ann", "GET", "/api/v1/namespaces/default/pods")[0] == 403


def test_the_right_to_update_does_not_allow_creation(site: Site) -> None:
    site.grant("ann", "updates", {"verbs": ["update", "patch"], "apiGroups": [""], "resources": ["configmaps"]})
    path, body = "/api/v1/namespaces/default/configmaps/new", {"metadata": {"name": "new"}, "data": {"a": "1"}}
    apply = {"apiVersion": "v1", "kind": "ConfigMap", **body}
    code, refused = site.ask("ann", "PATCH", f"{path}?fieldManager=t", apply, "application/apply-patch+yaml")
    assert code == 403
    assert 'User "ann" cannot create resource "configmaps"' in refused["message"]
    site.revoke("updates")


def test_a_client_cannot_grant_rights_it_does_not_have(site: Site) -> None:
    rights = {"verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}
    site.grant("ann", "makes-roles", rights)
    role = {"metadata": {"name": "more"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]}
    code, refused = site.ask("ann", "POST", f"{GROUP}/clusterroles", role)
    assert code == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused["message"]
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in refused["message"]
    assert site.ask("ann", "POST", f"{GROUP}/clusterroles", {**role, "rules": [rights]})[0] == 201
    assert site.ask("admin", "DELETE", f"{GROUP}/clusterroles/more")[0] == 200
    site.revoke("makes-roles")


def test_access_reviews_equal_the_authorizers_decisions(site: Site) -> None:
    site.grant("bob", "logs", {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]})
    asked = {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"}
    path = "/apis/authorization.k8s.io/v1"
    own = site.ask("bob", "POST", f"{path}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}})[1]
    assert own["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "logs" of ClusterRole "logs" to User "bob"',
    }
    rules = site.ask("bob", "POST", f"{path}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})[1]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]} in rules["status"]["resourceRules"]
    assert site.ask("bob", "POST", f"{path}/subjectaccessreviews", {"spec": {"user": "ann"}})[0] == 403
    site.revoke("logs")


@pytest.mark.parametrize("path", ["/ui/api/stats", "/debug/threads", "/configz", "/metrics"])
def test_debug_pages_require_a_right(site: Site, path: str) -> None:
    assert site.ask("ann", "GET", path)[0] == 403
    assert site.ask("", "GET", path)[0] == 403
    site.grant("ann", "inside", {"verbs": ["get"], "nonResourceURLs": [path]})
    assert site.ask("ann", "GET", path)[0] != 403
    site.revoke("inside")


@pytest.mark.parametrize("path", ["/ui/", "/healthz", "/version"])
def test_every_client_can_read_public_paths(site: Site, path: str) -> None:
    assert site.ask("", "GET", path)[0] == 200


VIEWS = {
    "object": "resource=services&namespace=default&name=kubernetes",
    "history": "resource=services&namespace=default&name=kubernetes",
    "objects": "resource=services&namespace=default",
    "leaders": "",
}


def test_the_page_shows_only_objects_its_user_can_get(site: Site) -> None:
    site.grant("ann", "looks", {"verbs": ["get"], "nonResourceURLs": ["/ui/api/*"]})
    for view, query in VIEWS.items():
        code, told = site.ask("ann", "GET", f"/ui/api/{view}?{query}")
        assert (code, told["reason"]) == (403, "Forbidden"), view
        assert 'User "ann" cannot ' in told["message"]
    code, told = site.ask("ann", "GET", "/ui/api/change?revision=1")
    assert (code, told["reason"]) == (404, "NotFound"), "a refusal would name the object"
    for view, field in (("kinds", "kinds"), ("events", "events"), ("timeline", "items"), ("cluster", "nodes")):
        code, told = site.ask("ann", "GET", f"/ui/api/{view}")
        assert (code, told[field]) == (200, []), view
    site.grant("ann", "services", {"verbs": ["list"], "apiGroups": [""], "resources": ["services"]})
    for view in ("object", "history", "objects"):
        assert site.ask("ann", "GET", f"/ui/api/{view}?{VIEWS[view]}")[0] == 200
    assert {each["resource"] for each in site.ask("ann", "GET", "/ui/api/events")[1]["events"]} == {"services"}
    assert [each["resource"] for each in site.ask("ann", "GET", "/ui/api/kinds")[1]["kinds"]] == ["services"]
    site.revoke("services")
    assert site.ask("ann", "GET", f"/ui/api/object?{VIEWS['object']}")[0] == 403
    assert site.ask("admin", "GET", f"/ui/api/object?{VIEWS['object']}")[0] == 200
    site.revoke("looks")

"""Tests of permissions under attack: revoking a permission affects all open connections, and names and headers give no
permission.

Each attack is made on a running server, by users whose only permissions are those that the test gives them.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ctrlmgr.testing.served import ServerProcess

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = """ann-token,ann,ann-uid,"dev"
eve-token,eve,eve-uid
fake-token,system:controller:leader-election,fake-uid
colon-token,system:serviceaccount:kube-system:not-a-controller,sa-uid
node-token,system:node:one,node-uid,"system:nodes"
stray-token,system:node:one,stray-uid
"""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ctrlmgr"
Headers = Sequence[tuple[str, str]]


class ServerWithConnections:
    """A server, and open connections to the server."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self._where = urlsplit(server.url)
        self._kept: dict[str, http.client.HTTPSConnection] = {}

    def ask(self, user: str, method: str, path: str, body: Any = None, headers: Headers = ()) -> tuple[int, str]:
        """Send a request on the open connection of a user, and return the status code and the body of the response."""
        connection = self._kept.setdefault(
            user, http.client.HTTPSConnection(self._where.hostname or "", self._where.port, context=self.server.trust)
        )
        token = self.server.token if user == "admin" else f"{user}-token"
        connection.putrequest(method, path)
        data = json.dumps(body).encode() if body is not None else b""
        sent = [("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"), *headers]
        for name, value in [*sent, ("Content-Length", str(len(data)))]:
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def close(self) -> None:
        for connection in self._kept.values():
            connection.close()

    def grant(self, user: str, name: str, *rules: dict[str, Any]) -> None:
        role, about = {"metadata": {"name": name}, "rules": list(rules)}, {"apiGroup": "rbac.authorization.k8s.io"}
        binding = {
            "metadata": {"name": name},
            "roleRef": {**about, "kind": "ClusterRole", "name": name},
            "subjects": [{**about, "kind": "User", "name": user}],
        }
        assert self.ask("admin", "POST", f"{RBAC}/clusterroles", role)[0] == 201
        assert self.ask("admin", "POST", f"{RBAC}/clusterrolebindings", binding)[0] == 201

    def revoke(self, name: str) -> None:
        assert self.ask("admin", "DELETE", f"{RBAC}/clusterrolebindings/{name}")[0] == 200
        assert self.ask("admin", "DELETE", f"{RBAC}/clusterroles/{name}")[0] == 200


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerWithConnections]:
    folder: Path = tmp_path_factory.mktemp("attacked")
    tokens = folder / "users.csv"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    flags = ("--token-auth-file", str(tokens), "--enable-admission-plugins=NodeRestriction")
    with ServerProcess(folder, *flags) as server:
        attacked = ServerWithConnections(server)
        yield attacked
        attacked.close()


READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}
MAPS = "/api/v1/namespaces/default/configmaps"


def test_an_open_connection_loses_revoked_rights(attacked: ServerWithConnections) -> None:
    for _ in range(10):
        attacked.grant("ann", "flips", READ)
        assert attacked.ask("ann", "GET", MAPS)[0] == 200
        attacked.revoke("flips")
        assert attacked.ask("ann", "GET", MAPS)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        [("Impersonate-User", "admin")],
        [("Impersonate-User", "system:admin"), ("Impersonate-Group", "system:masters")],
        [("impersonate-user", "eve"), ("Impersonate-User", "admin")],
        [("Impersonate-User", "system:apiserver")],
        [("Impersonate-User", "system:serviceaccount:kube-system:generic-garbage-collector")],
        [("Impersonate-User", "system:node:one")],
        [("Impersonate-Extra-scopes", "all"), ("Impersonate-User", "eve")],
        [("Impersonate-Uid", "eve-uid"), ("Impersonate-User", "eve")],
    ],
    ids=lambda headers: ",".join(value for _, value in headers),
)
def test_a_client_cannot_become_another_user(attacked: ServerWithConnections, headers: Headers) -> None:
    assert attacked.ask("eve", "GET", MAPS, headers=headers)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")],
        [("Authorization", "Bearer x")],
        [("X-Forwarded-User", "admin")],
        [("Impersonate-Group", "system:masters")],
    ],
    ids=lambda headers: headers[0][0],
)
def test_no_header_grants_further_rights(attacked: ServerWithConnections, headers: Headers) -> None:
    assert attacked.ask("eve", "GET", MAPS, headers=headers)[0] in (400, 401, 403)


def test_a_chain_of_impersonation_ends_at_its_first_link(attacked: ServerWithConnections) -> None:
    bob = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["ann"]}
    attacked.grant("eve", "as-ann", bob)
    attacked.grant("ann", "as-all", {**bob, "resourceNames": ["root"]})
    attacked.grant("root", "reads", READ)
    assert attacked.ask("eve", "GET", MAPS, headers=[("Impersonate-User", "ann")])[0] == 403
    both = [("Impersonate-User", "ann"), ("Impersonate-User", "root")]
    assert attacked.ask("eve", "GET", MAPS, headers=both)[0] == 403
    assert attacked.ask("eve", "GET", MAPS, headers=[("Impersonate-User", "root")])[0] == 403
    for name in ("as-ann", "as-all", "reads"):
        attacked.revoke(name)


@pytest.mark.parametrize("user", ["fake", "colon", "stray"])
@pytest.mark.parametrize("path", [MAPS, "/api/v1/secrets", LEASE, "/api/v1/nodes/one"])
def test_a_name_alone_grants_no_right(attacked: ServerWithConnections, user: str, path: str) -> None:
    assert attacked.ask(user, "GET", path)[0] == 403
    assert attacked.ask(user, "DELETE", path)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/pods/p/%65xec",
        "/api/v1/namespaces/default/../kube-system/secrets",
        "/api/v1//namespaces/default/configmaps",
        "/API/v1/namespaces/default/configmaps",
        "/api/v1/watch/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dmine",
        "/healthz/../api/v1/secrets",
        "/healthz/..%2fapi/v1/secrets",
        "/ui/../configz",
        "/ui/%61pi/stats",
        "/ui/api%2fstats",
        "/ui//api/stats",
    ],
)
def test_no_notation_of_a_path_bypasses_authorization(attacked: ServerWithConnections, path: str) -> None:
    assert attacked.ask("eve", "GET", path)[0] in (301, 400, 403, 404)


def test_a_name_in_a_selector_is_the_authorized_one(attacked: ServerWithConnections) -> None:
    mine = {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]}
    attacked.grant("ann", "mine", mine)
    assert attacked.ask("ann", "GET", f"{MAPS}?fieldSelector=metadata.name%3Dmine")[0] == 200
    for selector in ("metadata.name!%3Dmine", "metadata.namespace%3Ddefault", "metadata.name%3Dmine2"):
        assert attacked.ask("ann", "GET", f"{MAPS}?fieldSelector={selector}")[0] == 403
    both = f"{MAPS}?fieldSelector=metadata.name%3Dmine&fieldSelector=metadata.name%3Dother"
    code, text = attacked.ask("ann", "GET", both)
    assert code != 200 or not [each for each in json.loads(text)["items"] if each["metadata"]["name"] != "mine"]
    attacked.revoke("mine")


NODE = {"metadata": {"name": "two"}}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "c"}], "nodeName": "one"}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/nodes", NODE),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "one", "labels": {"node-restriction.kubernetes.io/a": "b"}}}),
        ("POST", "/api/v1/namespaces/default/pods", POD),
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/kube-system/secrets/any", None),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dtwo", None),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}),
        ("POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": "mine"}}),
    ],
)
def test_a_node_cannot_exceed_its_rights(attacked: ServerWithConnections, method: str, path: str, body: Any) -> None:
    code, text = attacked.ask("node", method, path, body)
    assert code == 403, text


@pytest.mark.parametrize(
    "rules",
    [
        [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        [{"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["*"]}],
        [{"verbs": ["create"], "apiGroups": [""], "resources": ["serviceaccounts/token"]}],
    ],
)
def test_a_role_cannot_escalate_its_authors_rights(attacked: ServerWithConnections, rules: list[Any]) -> None:
    own = {"verbs": ["create", "update", "patch"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
    attacked.grant("eve", "writes-roles", own)
    role = {"metadata": {"name": "more"}, "rules": rules}
    assert attacked.ask("eve", "POST", f"{RBAC}/clusterroles", role)[0] == 403
    assert (
        attacked.ask("eve", "PUT", f"{RBAC}/clusterroles/writes-roles", {**role, "metadata": {"name": "writes-roles"}})[
            0
        ]
        == 403
    )
    subjects = [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]
    reference = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "all"}, "subjects": subjects, "roleRef": reference}
    assert attacked.ask("eve", "POST", f"{RBAC}/clusterrolebindings", binding)[0] == 403
    attacked.revoke("writes-roles")


def test_clients_cannot_take_the_leader_lease(attacked: ServerWithConnections) -> None:
    leases = {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    attacked.grant("eve", "leases", leases)
    code = 409  # valid as long as the leader renews it between the two requests
    while code == 409:
        lease = json.loads(attacked.ask("eve", "GET", LEASE)[1])
        code, _ = attacked.ask("eve", "PUT", LEASE, {**lease, "spec": {**lease["spec"], "holderIdentity": "eve"}})
    assert code == 403
    assert attacked.ask("eve", "DELETE", LEASE)[0] == 403
    attacked.revoke("leases")

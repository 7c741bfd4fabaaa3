"""Granted rights are compared with the requests of the operator."""

from __future__ import annotations

from typing import Any

from ctrlmgr.trial.oracles.operator_rights import Request, missing_rights, rights, written
from tests.trial.oracles.played import OPERATOR, Played, config_map

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def granted(subject: dict[str, Any], *rules: dict[str, Any]) -> Played:
    played = Played()
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "operator"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator"}
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    assert played.send("POST", f"{RBAC}/clusterroles", {**role, "rules": [*rules]}).code == 201
    assert played.send("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
    played.operator_create(config_map("a"))
    return played


USER = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": OPERATOR}
RULES = (
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete", "watch"]},
    {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
)


def test_used_and_unused_rights() -> None:
    log = granted(USER, *RULES).kept()
    found = rights(log, [Request("", "configmaps", "watch")])
    assert [str(each) for each in found.used] == ["create configmaps", "watch configmaps"]
    assert [str(each) for each in found.unused] == ["delete configmaps", "* *.apps"]
    assert len(rights(log, [Request("apps", "deployments/scale", "get")]).used) == 2


def test_rights_of_other_subjects_are_left_out() -> None:
    log = granted({"kind": "ServiceAccount", "name": "operator", "namespace": "shop"}, *RULES).kept()
    assert rights(log) == ((), ())
    of_group = granted({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "operators"}, *RULES).kept()
    assert rights(of_group) == ((), ())
    assert len(rights(of_group, groups=["operators"]).unused) == 3


def test_the_kinds_of_writes_are_read_from_the_log() -> None:
    played = granted(USER, *RULES)
    played.operator_patch("ConfigMap", "a", {"data": {"x": "1"}})
    found = {str(each) for each in written(played.kept())}
    assert {"create configmaps", "patch configmaps", "update configmaps/status"} <= found
    assert "delete configmaps" not in found


def test_refused_requests_are_findings() -> None:
    requests = [Request("apps", "deployments", "list", False), Request("", "pods", "get"), Request("", "pods", "get")]
    [found] = missing_rights(requests * 2)
    assert found.message == "The operator's rights do not allow a request that it makes: list deployments.apps."

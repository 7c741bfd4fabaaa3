"""Tests of `kubectl auth`: can-i, whoami, and reconcile."""

from __future__ import annotations

from typing import Any

from tests.e2e.kubectl import Kubectl

RBAC = "rbac.authorization.k8s.io"


def role(namespace: str, *verbs: str) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    metadata = {"name": "reader", "namespace": namespace}
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def test_the_administrator_can_do_everything(kubectl: Kubectl) -> None:
    assert kubectl("auth can-i '*' '*' --all-namespaces") == "yes\n"
    rights = [line.split() for line in kubectl("auth can-i --list").splitlines()]
    assert ["*.*", "[]", "[]", "[*]"] in rights
    assert ["[*]", "[]", "[*]"] in rights


def test_granted_rights_are_listed(kubectl: Kubectl) -> None:
    kubectl("create role reader --verb=get,list --resource=pods --resource=pods/log")
    kubectl("create rolebinding ann-reads --role=reader --user=ann")
    assert kubectl("auth can-i list pods --as ann") == "yes\n"
    assert kubectl.run("auth can-i delete pods --as ann").out == "no\n"
    rights = [line.split() for line in kubectl("auth can-i --list --as ann").splitlines()]
    assert ["pods", "[]", "[]", "[get", "list]"] in rights
    assert ["pods/log", "[]", "[]", "[get", "list]"] in rights
    assert ["selfsubjectreviews.authentication.k8s.io", "[]", "[]", "[create]"] in rights
    assert 'User "ann" cannot list resource "services"' in kubectl.fails("get services --as ann")


def test_whoami_returns_the_user(kubectl: Kubectl) -> None:
    who = kubectl("auth whoami -o json")
    assert '"username": "system:admin"' in who
    assert '"system:masters"' in who
    told = kubectl("auth whoami --as ann --as-group dev")
    assert [line.split(None, 1)[1].strip() for line in told.splitlines()[1:]] == ["ann", "[dev system:authenticated]"]


def test_reconcile_restores_a_role(kubectl: Kubectl) -> None:
    assert "reconciled" in kubectl("auth reconcile -f -", role(kubectl.namespace, "get"))
    assert "reconciled" in kubectl("auth reconcile -f -", role(kubectl.namespace, "list"))
    verbs = sorted(verb for rule in kubectl.get("role reader")["rules"] for verb in rule["verbs"])
    assert verbs == ["get", "list"]

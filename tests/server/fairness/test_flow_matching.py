"""Tests that a request belongs to the first FlowSchema with a matching rule."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.server.fairness.flow_matching import compile_schema

JANE = User("jane", "", ("dev", "system:authenticated"))
ACCOUNT = User("system:serviceaccount:kube-system:default", "", ("system:serviceaccounts",))
PODS = Attributes("get", group="", version="v1", resource="pods", namespace="shop", name="web")
ANY = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def matches(user: User, asked: Attributes, subject: dict[str, Any], **rules: Any) -> bool:
    spec = {"rules": [{"subjects": [subject], **rules}]}
    return compile_schema("s", "uid", spec).match(user, asked)


def account(name: str, namespace: str = "kube-system") -> dict[str, Any]:
    return {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize(
    ("user", "subject", "expected"),
    [
        (JANE, {"kind": "User", "user": {"name": "jane"}}, True),
        (JANE, {"kind": "User", "user": {"name": "joe"}}, False),
        (JANE, {"kind": "User", "user": {"name": "*"}}, True),
        (JANE, {"kind": "Group", "group": {"name": "dev"}}, True),
        (JANE, {"kind": "Group", "group": {"name": "ops"}}, False),
        (JANE, {"kind": "Group", "group": {"name": "*"}}, True),
        (JANE, account("*"), False),
        (ACCOUNT, account("*"), True),
        (ACCOUNT, account("default"), True),
        (ACCOUNT, account("other"), False),
        (ACCOUNT, account("*", "kube"), False),
        (User("system:serviceaccount:kube-system-2:default"), account("*"), False),
    ],
)
def test_subjects(user: User, subject: dict[str, Any], expected: bool) -> None:
    assert matches(user, PODS, subject, resourceRules=[ANY]) is expected


@pytest.mark.parametrize(
    ("change", "asked", "expected"),
    [
        ({}, PODS, True),
        ({"verbs": ["get", "list"]}, PODS, True),
        ({"verbs": ["list"]}, PODS, False),
        ({"apiGroups": [""]}, PODS, True),
        ({"apiGroups": ["apps"]}, PODS, False),
        ({"resources": ["pods"]}, PODS, True),
        ({"resources": ["pods"]}, PODS._replace(subresource="status"), False),
        ({"resources": ["pods/status"]}, PODS._replace(subresource="status"), True),
        ({"namespaces": ["shop"], "clusterScope": False}, PODS, True),
        ({"namespaces": ["other"]}, PODS, False),
        ({"namespaces": ["shop"], "clusterScope": True}, PODS._replace(namespace=""), True),
        ({"clusterScope": False}, PODS._replace(namespace=""), False),
        ({}, path_attributes("get", "/healthz"), False),
    ],
)
def test_resource_rules(change: dict[str, Any], asked: Attributes, expected: bool) -> None:
    assert (
        matches(JANE, asked, {"kind": "Group", "group": {"name": "*"}}, resourceRules=[{**ANY, **change}]) is expected
    )


@pytest.mark.parametrize(
    ("urls", "path", "expected"),
    [
        (["*"], "/metrics", True),
        (["/healthz"], "/healthz", True),
        (["/healthz"], "/healthz/ping", True),
        (["/healthz"], "/healthzz", False),
        (["/livez/*"], "/livez/ping", True),
        (["/livez/*"], "/livez", False),
        (["/"], "/version", True),
    ],
)
def test_path_rules(urls: list[str], path: str, expected: bool) -> None:
    rules = [{"verbs": ["get"], "nonResourceURLs": urls}]
    everybody = {"kind": "Group", "group": {"name": "*"}}
    assert matches(JANE, path_attributes("get", path), everybody, nonResourceRules=rules) is expected
    assert not matches(JANE, path_attributes("post", path), everybody, nonResourceRules=rules)


def test_flows_are_distinguished_by_user_or_namespace() -> None:
    def distinguisher(method: str) -> str:
        schema = compile_schema("s", "uid", {"distinguisherMethod": {"type": method}} if method else {})
        return schema.distinguisher(JANE, PODS)

    assert [distinguisher(method) for method in ("ByUser", "ByNamespace", "")] == ["jane", "shop", ""]

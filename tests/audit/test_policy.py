"""Tests of audit policies: the rule that matches a request, and invalid policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.audit.policy import AuditDecision, Level, Policy, read_policy
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.errors import SettingsError

ALICE = User("alice", "", ("dev", "qa"))
HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def policy(tmp_path: Path, text: str) -> Policy:
    file = tmp_path / "policy.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return read_policy(file)


def about(resource: str = "pods", verb: str = "get", **parts: str) -> Attributes:
    return Attributes(verb, version="v1", resource=resource, **parts)  # type: ignore[arg-type]  # texts, all of them


@pytest.mark.parametrize(
    ("rule", "attributes", "matches"),
    [
        ("users: [alice]", about(), True),
        ("users: [bob]", about(), False),
        ("userGroups: [ops, qa]", about(), True),
        ("userGroups: [ops]", about(), False),
        ("verbs: [get, list]", about(), True),
        ("verbs: [list]", about(), False),
        ('namespaces: [""]', about(), True),
        ("namespaces: [a]", about(namespace="a"), True),
        ("namespaces: [a]", about(namespace="b"), False),
        ("namespaces: [a]", path_attributes("get", "/healthz"), False),
        ('resources: [{group: ""}]', about(), True),
        ("resources: [{group: apps}]", about(), False),
        ('resources: [{group: "", resources: [pods]}]', about(), True),
        ('resources: [{group: "", resources: [pods]}]', about(subresource="log"), False),
        ('resources: [{group: "", resources: [pods/log]}]', about(subresource="log"), True),
        ('resources: [{group: "", resources: [pods/*]}]', about(subresource="log"), True),
        ('resources: [{group: "", resources: [pods/*]}]', about(), True),
        ('resources: [{group: "", resources: ["*/log"]}]', about(subresource="log"), True),
        ('resources: [{group: "", resources: ["*/log"]}]', about(), False),
        ('resources: [{group: "", resources: ["*"]}]', about(subresource="log"), True),
        ('resources: [{group: "", resources: [pods], resourceNames: [x]}]', about(name="x"), True),
        ('resources: [{group: "", resources: [pods], resourceNames: [x]}]', about(name="y"), False),
        ("nonResourceURLs: [/health*]", path_attributes("get", "/healthz/ping"), True),
        ("nonResourceURLs: [/healthz]", path_attributes("get", "/healthz/ping"), False),
        ('nonResourceURLs: ["*"]', path_attributes("get", "/x"), True),
        ('nonResourceURLs: ["*"]', about(), False),
        ("omitStages: [Panic]", about(), True),
    ],
)
def test_a_rule_matches(tmp_path: Path, rule: str, attributes: Attributes, matches: bool) -> None:
    found = policy(tmp_path, f"rules:\n- level: Request\n  {rule}\n").handling(ALICE, attributes)
    assert found.level is (Level.REQUEST if matches else Level.NONE)


def test_the_first_rule_decides(tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n"
        "- {level: None, users: [alice]}\n- {level: Metadata, omitManagedFields: false, omitStages: [Panic]}\n",
    )
    assert made.handling(ALICE, about()).level is Level.NONE
    other = made.handling(User("bob"), about())
    assert other == AuditDecision(Level.METADATA, frozenset(("RequestReceived", "Panic")))
    assert made.handling(None, about()).level is Level.METADATA


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("rules: []\n", 1, "no rules"),
        ("rules:\n- level: Everything\n", 4, "level must be one of None, Metadata, Request, RequestResponse"),
        ("rules:\n- level: Metadata\n  verb: [get]\n", 5, "unknown field `verb`"),
        ("rules:\n- level: Metadata\n  verbs: get\n", 5, "Expected `array`, got `str`"),
        ("rules:\n- level: None\n  namespaces: [a]\n  nonResourceURLs: [/x]\n", 6, "both regular resources"),
        ("rules:\n- level: None\n  nonResourceURLs:\n  - /ok\n  - healthz\n", 7, "begin with '/'"),
        ("rules:\n- level: None\n  nonResourceURLs: [/a*b]\n", 5, "final character"),
        ("rules:\n- level: None\n  resources:\n  - group: apps/v1\n", 6, "write it without a version"),
        ("rules:\n- level: None\n  resources:\n  - resourceNames: [x]\n", 6, "at least one resource"),
        ("rules:\n- level: None\n  omitStages: [Later]\n", 5, "a stage must be one of"),
        ("rules: [\n", 4, "not valid YAML"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        policy(tmp_path, text)
    assert f"policy.yaml:{line}: " in str(refused.value)
    assert problem in str(refused.value)


def test_a_missing_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_policy(tmp_path / "none")

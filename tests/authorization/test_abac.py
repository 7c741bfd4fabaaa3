"""Tests of the ABAC authorizer: which requests a policy file allows, and which files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.abac import AbacAuthorizer, read_policies
from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.authorization.authorizer import Decision
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.errors import SettingsError

ANN = User("ann", groups=("dev", AUTHENTICATED))
NOBODY = User("system:anonymous", groups=("system:unauthenticated",))
GET = Attributes("get", resource="pods", namespace="a")
CREATE = GET._replace(verb="create")


def policy(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}


def authorizer(folder: Path, *lines: Any) -> AbacAuthorizer:
    file = folder / "policies.jsonl"
    file.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines), encoding="utf-8")
    return AbacAuthorizer(read_policies(file))


@pytest.mark.parametrize(
    ("line", "user", "attributes", "expected"),
    [
        (policy(user="ann", namespace="*", resource="*", apiGroup="*"), ANN, CREATE, True),
        (policy(user="ann", namespace="*", resource="*", apiGroup="*", readonly=True), ANN, CREATE, False),
        (policy(user="ann", namespace="a", resource="pods", readonly=True), ANN, GET, True),
        (policy(user="ann", namespace="b", resource="pods"), ANN, GET, False),
        (policy(user="ann", namespace="a", resource="pods", apiGroup="apps"), ANN, GET, False),
        (policy(user="ann", group="ops", namespace="*", resource="*", apiGroup="*"), ANN, GET, False),
        (policy(user="ann", group="dev", namespace="*", resource="*", apiGroup="*"), ANN, GET, True),
        (policy(namespace="*", resource="*", apiGroup="*"), ANN, GET, False),
        (policy(user="*", namespace="*", resource="*", apiGroup="*"), ANN, GET, True),
        (policy(user="*", namespace="*", resource="*", apiGroup="*"), NOBODY, GET, False),
        (policy(user="ann", nonResourcePath="/api/*"), ANN, path_attributes("get", "/api/v1"), True),
        (policy(user="ann", nonResourcePath="/version"), ANN, path_attributes("get", "/version/x"), False),
        (policy(user="ann", nonResourcePath="*"), ANN, GET, False),
        ({"user": "ann"}, ANN, path_attributes("get", "/x"), True),
        ({"readonly": True}, ANN, GET, True),
        ({}, NOBODY, GET, False),
        ({"user": "ann", "resource": "services"}, ANN, GET, False),
    ],
)
def test_a_policy_allows_the_requests_it_describes(
    tmp_path: Path, line: dict[str, Any], user: User, attributes: Attributes, expected: bool
) -> None:
    verdict = authorizer(tmp_path, "# a comment", "", line).authorize(user, attributes)
    assert verdict.decision == (Decision.ALLOW if expected else Decision.NO_OPINION)
    assert verdict.reason == ("" if expected else "No policy matched.")


def test_policies_are_listed_as_rules(tmp_path: Path) -> None:
    found = authorizer(
        tmp_path,
        policy(user="ann", namespace="a", resource="pods", readonly=True),
        policy(user="ann", namespace="b", resource="services"),
        policy(user="bob", namespace="*", resource="*"),
        policy(group="dev", namespace="*", nonResourcePath="/version"),
    ).rules(ANN, "a")
    reading = ("get", "list", "watch")
    assert list(found.rules) == [PolicyRule(reading, ("",), ("pods",)), PolicyRule(("*",), urls=("/version",))]


@pytest.mark.parametrize("line", ["{", '{"user": 1}', '{"apiVersion": "v1", "kind": "Pod"}'])
def test_an_invalid_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match=r"error reading policy file .*policies\.jsonl, line 2: "):
        authorizer(tmp_path, "# first", line)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"error reading policy file .*absent"):
        read_policies(tmp_path / "absent")

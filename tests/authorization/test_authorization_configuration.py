"""Tests of the configuration file that lists authorizers, and of the line number in each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.authorization.authorization_configuration import ConfiguredAuthorizer, Webhook, read_configuration
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
RBAC = "authorizers:\n- {type: RBAC, name: rbac}\n"
WEBHOOK = {
    "timeout": "3s",
    "subjectAccessReviewVersion": "v1",
    "failurePolicy": "Deny",
    "connectionInfo": "{type: KubeConfigFile, kubeConfigFile: FILE}",
}


def read(tmp_path: Path, text: str) -> tuple[ConfiguredAuthorizer, ...]:
    (tmp_path / "other.kubeconfig").write_text("")
    file = tmp_path / "authorization.yaml"
    file.write_text(HEAD + text.replace("FILE", str(tmp_path / "other.kubeconfig")), encoding="utf-8")
    return read_configuration(file, FUNCTIONS)


def webhook(**fields: str | None) -> str:
    """Return the configuration of a webhook with these fields, one per line from line 6 on; a field with the value None
    is omitted.
    """
    said = {name: value for name, value in {**WEBHOOK, **fields}.items() if value is not None}
    return "authorizers:\n- type: Webhook\n  name: other\n  webhook:\n" + "".join(
        f"    {name}: {value}\n" for name, value in said.items()
    )


def conditions(said: str, version: str | None = "v1") -> str:
    """Return the configuration of a webhook with match conditions; the apiVersion of the conditions, if given, is on
    line 12.
    """
    return webhook(matchConditionSubjectAccessReviewVersion=version, matchConditions=said)


def test_authenticators_are_tried_in_order(tmp_path: Path) -> None:
    more = "- {type: Node, name: node}\n- {type: AlwaysDeny, name: alwaysdeny}\n"
    assert [each.type for each in read(tmp_path, RBAC + more)] == ["RBAC", "Node", "AlwaysDeny"]


def test_a_webhook_is_read_with_its_defaults(tmp_path: Path) -> None:
    [asked] = read(tmp_path, webhook())
    assert asked.webhook == Webhook(tmp_path / "other.kubeconfig", "v1", 300.0, 30.0, "other", 3.0, denies_unasked=True)


def test_caching_of_decisions_can_be_disabled(tmp_path: Path) -> None:
    said = webhook(
        authorizedTTL="10m", cacheUnauthorizedRequests="false", failurePolicy="NoOpinion", matchConditions="[]"
    )
    [asked] = read(tmp_path, said)
    assert asked.webhook is not None
    assert (asked.webhook.authorized_ttl, asked.webhook.unauthorized_ttl) == (600.0, 0.0)
    assert not asked.webhook.denies_unasked


def test_equal_conditions_are_equal_after_parsing(tmp_path: Path) -> None:
    said = conditions("[{expression: has(request.resourceAttributes)}, {expression: request.user != 'jane'}]")
    once, again = (read(tmp_path, said)[0].webhook for _ in range(2))
    assert once is not None
    assert [each.source for each in once.conditions] == ["has(request.resourceAttributes)", "request.user != 'jane'"]
    assert once == again
    assert once != read(tmp_path, conditions("[{expression: request.user != 'jane'}]"))[0].webhook
    assert once != read(tmp_path, conditions("[]"))[0].webhook


def test_several_webhooks_can_be_configured(tmp_path: Path) -> None:
    first = webhook()
    second = first.replace("authorizers:\n", "").replace("other\n", "second\n", 1)
    names = [each.webhook.name for each in read(tmp_path, first + second) if each.webhook is not None]
    assert names == ["other", "second"]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "at least one authorizer"),
        ("authorizers: []\n", 3, "at least one authorizer"),
        ("authorizers:\n- {type: ABAC, name: abac}\n", 4, "type must be one of Node, RBAC"),
        (f"{RBAC}- {{type: RBAC, name: more}}\n", 5, "only one authorizer may have the type RBAC"),
        ("authorizers:\n- {type: RBAC}\n", 4, "name must be a lower-case RFC 1123 subdomain, not ''"),
        ("authorizers:\n- {type: RBAC, name: roles}\n", 4, "the type RBAC must have the name rbac"),
        (webhook().replace("other\n", "rbac\n", 1) + RBAC.replace("authorizers:\n", ""), 11, "rbac is named twice"),
        ("authorizers:\n- {type: Webhook, name: w}\n", 4, "webhook must be set only for the type Webhook"),
        (
            "authorizers:\n- {type: RBAC, name: rbac, webhook: {}}\n",
            4,
            "webhook must be set only for the type Webhook",
        ),
        ("authorizers:\n- {type: RBAC, name: rbac, mode: x}\n", 4, "unknown field `mode`"),
        (webhook(timeout=None), 6, "timeout must be a duration such as 3s, not ''"),
        (webhook(timeout="31s"), 7, "timeout must be 30s at most"),
        (webhook(authorizedTTL="-1s"), 11, "authorizedTTL must be a duration"),
        (webhook(unauthorizedTTL="0s"), 11, "unauthorizedTTL must be a duration"),
        (webhook(subjectAccessReviewVersion="v2"), 8, "the version must be v1 or v1beta1, not 'v2'"),
        (webhook(failurePolicy="Allow"), 9, "failurePolicy must be NoOpinion or Deny, not 'Allow'"),
        (webhook(matchConditionSubjectAccessReviewVersion="v1beta1"), 11, "the version for conditions must be v1"),
        (
            conditions("[{expression: 'true'}]", version=None),
            11,
            "SubjectAccessReviewVersion is required if match cond",
        ),
        (conditions("[{}]"), 12, "expression is required"),
        (conditions("[{expression: ' '}]"), 12, "expression is required"),
        (conditions("\n    - expression: 'true'\n    - expression: 'true'"), 14, 'Duplicate value: "true"'),
        (
            conditions("\n    - expression: 'true'\n    - expression: request.user"),
            14,
            "must evaluate to bool but got s",
        ),
        (conditions("[{expression: request.time == 'a'}]"), 12, "ERROR: <input>:1:8: undefined field 'time'"),
        (conditions(f"[{', '.join(['{expression: a}'] * 65)}]"), 12, "Too many: 65: must have at most 64 items"),
        (webhook(connectionInfo="{}"), 10, "type must be KubeConfigFile, not ''"),
        (webhook(connectionInfo="{type: InClusterConfig}"), 10, "runs in no other cluster"),
        (webhook(connectionInfo="{type: KubeConfigFile, kubeConfigFile: a}"), 10, "absolute path, not 'a'"),
        (webhook(connectionInfo="{type: KubeConfigFile, kubeConfigFile: /none}"), 10, "there is no file /none"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text)
    assert f"authorization.yaml:{line}: " in str(refused.value)
    assert problem in str(refused.value)

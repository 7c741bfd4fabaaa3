"""Tests of review resources: the identity of a user, and the permissions of a user."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctrlmgr.authentication.user import Audiences, Authenticated, CredentialsRefused, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, RuleListing, Verdict
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.errors import BadRequest, Invalid
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.review_resources import Question, Reviews
from tests.engine.stage import builtin_kinds

ALICE = User("alice", "1", ("staff",), {"scopes": ("a", "b")})
BOB = User("bob")


class OnlyPods(AllowEverything):
    """An authenticator that knows the token `good`, and an authorizer that allows alice to get pods in `default`, and
    to read /healthz.
    """

    asked: Attributes

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        if token != "good":
            raise CredentialsRefused("invalid bearer token", "it is bad", "it is bad")
        return Authenticated(ALICE, tuple(audiences))

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        self.asked = attributes
        asked = attributes.is_resource and attributes[:1] + attributes[2:8]
        may = asked == ("get", "", "v1", "pods", "log", "default", "p") or attributes[:2] == ("get", "/healthz")
        return ALLOWED if user.name == "alice" and may else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        return RuleListing()


ACCESS = OnlyPods()
REVIEWS = Reviews(ACCESS, ACCESS)
NOW = "2026-01-01T00:00:00Z"
POD = {"verb": "get", "version": "v1", "resource": "pods", "subresource": "log", "namespace": "default", "name": "p"}


def ask(kind: str, spec: Any = None, *, user: User = ALICE, namespace: str = "") -> Any:
    group = "authentication.k8s.io" if kind in ("SelfSubjectReview", "TokenReview") else "authorization.k8s.io"
    found = builtin_kinds().by_gvk(GroupVersionKind(group, "v1", kind))
    assert found is not None
    assert REVIEWS.covers(found)
    fields = {"kind": kind} if spec is None else {"kind": kind, "spec": spec}
    return asyncio.run(REVIEWS.answer(Question(found, namespace, fields, user, NOW)))


def test_self_subject_review_returns_the_user() -> None:
    info = {"username": "alice", "uid": "1", "groups": ["staff"], "extra": {"scopes": ["a", "b"]}}
    assert ask("SelfSubjectReview") == {
        "kind": "SelfSubjectReview",
        "metadata": {"creationTimestamp": NOW},
        "status": {"userInfo": info},
    }


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"resourceAttributes": POD}, True),
        ({"resourceAttributes": {**POD, "verb": "delete"}}, False),
        ({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}, True),
        ({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, False),
    ],
)
def test_self_subject_access_reviews_return_decisions(spec: Any, allowed: bool) -> None:
    answer = ask("SelfSubjectAccessReview", spec)
    assert answer["status"] == {"allowed": allowed}
    assert answer["spec"] == spec


def test_rules_of_another_user_are_not_reviewed() -> None:
    assert ask("SubjectAccessReview", {"resourceAttributes": POD, "user": "alice"}, user=BOB)["status"]["allowed"]
    assert not ask("SubjectAccessReview", {"resourceAttributes": POD, "groups": ["staff"]})["status"]["allowed"]


def test_rules_review_of_a_namespace() -> None:
    spec = {"resourceAttributes": POD, "user": "alice"}
    assert ask("LocalSubjectAccessReview", spec, namespace="default")["status"]["allowed"]
    with pytest.raises(Invalid, match=r"spec\.resourceAttributes\.namespace: .*must match metadata\.namespace"):
        ask("LocalSubjectAccessReview", spec, namespace="other")
    with pytest.raises(Invalid, match="disallowed on this kind of request"):
        ask("LocalSubjectAccessReview", {"nonResourceAttributes": {"path": "/"}, "user": "alice"}, namespace="default")


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        (
            "SelfSubjectAccessReview",
            {},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: '
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            "SubjectAccessReview",
            {"resourceAttributes": POD},
            '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": '
            "at least one of user or group must be specified",
        ),
    ],
)
def test_an_empty_review_is_refused(kind: str, spec: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        ask(kind, spec)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("selector", "given", "terms", "problem"),
    [
        ("fieldSelector", {"rawSelector": "a=b"}, [("a", "In", ("b",))], ""),
        ("fieldSelector", {"rawSelector": "a"}, [], "fieldSelector ignored due to parse error"),
        ("labelSelector", {"rawSelector": "a in (b"}, [], "labelSelector ignored due to parse error"),
        ("labelSelector", {"rawSelector": "a in (b)"}, [("a", "In", ("b",))], ""),
        (
            "labelSelector",
            {"requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Near", "values": ["c"]}]},
            [("a", "Exists", ())],
            "labelSelector partially ignored due to parse error",
        ),
        (
            "fieldSelector",
            {
                "requirements": [
                    {"key": "a", "operator": "NotIn", "values": ["b"]},
                    {"key": "a", "operator": "In", "values": ["b", "c"]},
                    {"key": "a", "operator": "Exists"},
                ]
            },
            [("a", "NotIn", ("b",))],
            "fieldSelector partially ignored due to parse error",
        ),
        (
            "fieldSelector",
            {"requirements": [{"key": "a", "operator": "Exists"}]},
            [],
            "fieldSelector ignored due to parse error",
        ),
    ],
)
def test_unreadable_requirements_of_a_selector_are_omitted_and_reported(
    selector: str, given: Any, terms: list[tuple[str, str, tuple[str, ...]]], problem: str
) -> None:
    asked = {**POD, "verb": "list", "name": "", selector: given}
    status = ask("SubjectAccessReview", {"resourceAttributes": asked, "user": "alice"})["status"]
    found = ACCESS.asked.fields if selector == "fieldSelector" else ACCESS.asked.labels
    assert [tuple(each) for each in found] == terms
    assert status.get("evaluationError", "") == (f"spec.resourceAttributes.{problem}" if problem else "")


def test_a_label_selector_has_names_and_values() -> None:
    bad = {"requirements": [{"key": "not/a/key", "operator": "In", "values": ["-"]}]}
    with pytest.raises(Invalid) as refused:
        ask("SelfSubjectAccessReview", {"resourceAttributes": {**POD, "labelSelector": bad}})
    where = "spec.resourceAttributes.labelSelector.requirements[0]"
    assert f'{where}.key: Invalid value: "not/a/key": ' in str(refused.value)
    assert f"{where}.values[0]: Invalid value: " in str(refused.value)
    ask("SelfSubjectAccessReview", {"resourceAttributes": {**POD, "fieldSelector": bad}})


def test_a_review_without_a_version_covers_all_versions() -> None:
    ask("SelfSubjectAccessReview", {"resourceAttributes": {**POD, "version": ""}})
    assert ACCESS.asked.version == "*"


def test_a_review_with_two_kinds_of_attributes_is_refused() -> None:
    with pytest.raises(Invalid, match="cannot be specified in combination with resourceAttributes"):
        ask("SelfSubjectAccessReview", {"resourceAttributes": POD, "nonResourceAttributes": {"path": "/"}})


def test_rules_of_an_ordinary_user() -> None:
    status = ask("SelfSubjectRulesReview", {"namespace": "default"})["status"]
    assert status == {"resourceRules": [], "nonResourceRules": [], "incomplete": False}


def test_rules_of_cluster_admin() -> None:
    found = builtin_kinds().by_gvk(GroupVersionKind("authorization.k8s.io", "v1", "SelfSubjectRulesReview"))
    assert found is not None
    everything = Reviews(AllowEverything(), AllowEverything())
    answer = asyncio.run(everything.answer(Question(found, "", {"spec": {"namespace": "default"}}, BOB)))
    assert answer["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    assert answer["status"]["nonResourceRules"] == [{"verbs": ["*"], "nonResourceURLs": ["*"]}]


def test_rules_are_reviewed_for_a_namespace() -> None:
    with pytest.raises(BadRequest, match="no namespace on request"):
        ask("SelfSubjectRulesReview", {})


def test_a_token_review_returns_the_user() -> None:
    status = ask("TokenReview", {"token": "good"})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "alice"
    assert "audiences" not in status
    assert ask("TokenReview", {"token": "good", "audiences": ["a"]})["status"]["audiences"] == ["a"]
    error = "[invalid bearer token, it is bad]"
    assert ask("TokenReview", {"token": "bad"})["status"] == {"user": {}, "error": error}
    with pytest.raises(BadRequest, match="token is required"):
        ask("TokenReview", {})


@pytest.mark.parametrize("selector", ["fieldSelector", "labelSelector"])
def test_a_selector_with_too_many_requirements_is_refused_before_parsing(selector: str) -> None:
    class UnreadMapping(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise AssertionError("a requirement was looked at")

    asked = {**POD, "name": "", selector: {"requirements": [UnreadMapping()] * 1001}}
    at = f"spec.resourceAttributes.{selector}.requirements"
    with pytest.raises(Invalid, match=rf"{at}: Too many: 1001: must have at most 1000 items$"):
        ask("SelfSubjectAccessReview", {"resourceAttributes": asked})


def test_the_number_of_reported_wrong_requirements_is_limited() -> None:
    asked = {**POD, "name": "", "fieldSelector": {"requirements": [{}] * 1000}}
    with pytest.raises(Invalid, match=r"and at least \d+ more\]$"):
        ask("SelfSubjectAccessReview", {"resourceAttributes": asked})

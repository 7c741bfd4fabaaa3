"""Tests of a read-only server: writes are refused, and access reviews are answered."""

from __future__ import annotations

import asyncio

import pytest

from ctrlmgr.authentication.user import ANONYMOUS, User
from ctrlmgr.authorization.attributes import Attributes, path_attributes, refusal
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Decision, Verdict
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.known_users_authorizer import KnownUsersAuthorizer
from ctrlmgr.server.authn.review_resources import Question, Reviews
from ctrlmgr.server.playback.read_only import ReadOnly
from tests.engine.stage import builtin_kinds

ADMIN = User("admin", "", ("system:masters", "system:authenticated"))
REASON = "this is over; it is read-only"
ACCESS = ReadOnly(KnownUsersAuthorizer(), REASON)


def pods(verb: str, *, subresource: str = "", group: str = "", resource: str = "pods") -> Attributes:
    return Attributes(verb, "/somewhere", group, "v1", resource, subresource, "shop", "web")


@pytest.mark.parametrize(
    ("attributes", "may"),
    [
        *((pods(verb), True) for verb in ("get", "list", "watch")),
        *((pods(verb), False) for verb in ("create", "update", "patch", "delete", "deletecollection", "*")),
        (pods("get", subresource="log"), True),
        (pods("create", subresource="eviction"), False),
        (pods("update", subresource="status"), False),
        (pods("create", group="authorization.k8s.io", resource="selfsubjectaccessreviews"), True),
        (pods("create", group="authentication.k8s.io", resource="tokenreviews"), True),
        (pods("create", subresource="token", resource="serviceaccounts"), False),
        (path_attributes("get", "/readyz"), True),
        (path_attributes("post", "/play/pause"), True),
    ],
)
def test_only_writes_are_refused(attributes: Attributes, may: bool) -> None:
    assert ACCESS.authorize(ADMIN, attributes) == (ALLOWED if may else Verdict(Decision.DENY, REASON))


def test_proxy_requires_the_right_to_read() -> None:
    assert ACCESS.authorize(ANONYMOUS, pods("get")) == NO_OPINION


def test_the_refusal_contains_the_reason() -> None:
    said = str(refusal(ADMIN, pods("create"), REASON))
    assert said == (
        'pods "web" is forbidden: User "admin" cannot create resource "pods" in API group "" in the namespace "shop": '
        f"{REASON}"
    )


def ask(kind: str, spec: dict[str, object]) -> dict[str, object]:
    found = builtin_kinds().by_gvk(GroupVersionKind("authorization.k8s.io", "v1", kind))
    assert found is not None
    reviews = Reviews(AllowEverything(), ACCESS)
    answer = asyncio.run(reviews.answer(Question(found, "", {"kind": kind, "spec": spec}, ADMIN)))
    status: dict[str, object] = answer["status"]
    return status


def test_access_reviews_of_a_recording_allow_reads_only() -> None:
    asked = {"verb": "create", "resource": "pods", "namespace": "shop"}
    assert ask("SelfSubjectAccessReview", {"resourceAttributes": asked}) == {
        "allowed": False,
        "denied": True,
        "reason": REASON,
    }
    asked["verb"] = "list"
    assert ask("SelfSubjectAccessReview", {"resourceAttributes": asked}) == {"allowed": True}
    rules = ask("SelfSubjectRulesReview", {"namespace": "shop"})
    assert rules["resourceRules"] == [{"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}]

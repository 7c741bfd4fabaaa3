"""Tests of authorization by another server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, Requirement, path_attributes
from ctrlmgr.authorization.authorization_configuration import Webhook
from ctrlmgr.authorization.authorizer import NO_OPINION, Decision, Verdict
from ctrlmgr.authorization.authorizer_match_conditions import ConditionCompiler
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.authz.authorization_webhook import WebhookAuthorizer
from ctrlmgr.testing import FakeClock
from tests.server.reviewing import ReviewServer, kubeconfig

JANE = User("jane", "7", ("dev",), {"a": ("b",)})
PODS = Attributes("get", "/api/v1/namespaces/n/pods/p", "", "v1", "pods", "log", "n", "p")
YES = {"allowed": True, "reason": "she may"}


@pytest.fixture
def review_server() -> Iterator[ReviewServer]:
    made = ReviewServer("SubjectAccessReview", YES)
    yield made
    made.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def config(tmp_path: Path, review_server: ReviewServer) -> Path:
    return kubeconfig(tmp_path, review_server.url)


@pytest.fixture
def authorizer(config: Path, clock: FakeClock) -> WebhookAuthorizer:
    return WebhookAuthorizer(Webhook(config, "v1", authorized_ttl=300.0, unauthorized_ttl=30.0), clock=clock)


def conditional(config: Path, clock: FakeClock, *sources: str, denies_unasked: bool = False) -> WebhookAuthorizer:
    """Return an authorizer that calls the webhook only if all match conditions are true."""
    conditions = tuple(map(ConditionCompiler(FUNCTIONS).compile, sources))
    webhook = Webhook(config, "v1", name="conditional", denies_unasked=denies_unasked, conditions=conditions)
    return WebhookAuthorizer(webhook, clock=clock)


def counted(name: str) -> float:
    """Return the value of a metric that counts evaluations of match conditions."""
    labels = {"type": "Webhook", "name": "conditional"}
    return REGISTRY.get_sample_value(f"apiserver_authorization_match_condition_{name}", labels) or 0.0


def ask(authorizer: WebhookAuthorizer, asked: Attributes = PODS) -> Verdict:
    async def answered() -> Verdict:
        try:
            return await authorizer.ask(JANE, asked)
        finally:
            await authorizer.close()

    return asyncio.run(answered())


@pytest.mark.parametrize(
    ("status", "decision", "error"),
    [
        (YES, Decision.ALLOW, ""),
        ({"allowed": False, "reason": "she may"}, Decision.NO_OPINION, ""),
        ({"allowed": False, "denied": True, "reason": "she may"}, Decision.DENY, ""),
        ({**YES, "denied": True}, Decision.DENY, "webhook subject access review returned both allow and deny response"),
    ],
)
def test_the_authorizer_returns_the_webhooks_decision(
    authorizer: WebhookAuthorizer, review_server: ReviewServer, status: object, decision: Decision, error: str
) -> None:
    review_server.status = status
    assert ask(authorizer) == Verdict(decision, "she may", error)


def test_the_review_has_all_attributes_of_the_request(
    authorizer: WebhookAuthorizer, review_server: ReviewServer
) -> None:
    ask(authorizer, PODS._replace(fields=(Requirement("spec.nodeName", "In", ("n1",)),)))
    [review] = review_server.asked
    assert review["apiVersion"] == "authorization.k8s.io/v1"
    resource = {"namespace": "n", "verb": "get", "version": "v1", "resource": "pods", "subresource": "log", "name": "p"}
    selector = {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]}
    assert review["spec"] == {
        "resourceAttributes": {**resource, "fieldSelector": selector},
        "user": "jane",
        "groups": ["dev"],
        "extra": {"a": ["b"]},
        "uid": "7",
    }


def test_the_old_version_has_other_names_for_groups(
    config: Path, review_server: ReviewServer, clock: FakeClock
) -> None:
    ask(WebhookAuthorizer(Webhook(config), clock=clock), path_attributes("get", "/metrics"))
    [review] = review_server.asked
    assert review["apiVersion"] == "authorization.k8s.io/v1beta1"
    assert review["spec"]["group"] == ["dev"]
    assert review["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


@pytest.mark.parametrize(("allowed", "lasts"), [(True, 300.0), (False, 30.0)])
def test_a_decision_is_cached(
    authorizer: WebhookAuthorizer, review_server: ReviewServer, clock: FakeClock, *, allowed: bool, lasts: float
) -> None:
    review_server.status = {"allowed": allowed}
    assert authorizer.authorize(JANE, PODS) is None
    ask(authorizer)
    clock.step(lasts - 1)
    known = authorizer.authorize(JANE, PODS)
    assert known is not None
    assert known.allows is allowed
    assert authorizer.authorize(User("john"), PODS) is None
    clock.step(2)
    assert authorizer.authorize(JANE, PODS) is None
    ask(authorizer)
    assert len(review_server.asked) == 2


def test_the_decision_about_a_very_long_request_is_not_cached(
    authorizer: WebhookAuthorizer, review_server: ReviewServer
) -> None:
    asked = path_attributes("get", "/" + "x" * 10_000)
    assert ask(authorizer, asked).allows
    assert authorizer.authorize(JANE, asked) is None


def test_a_failing_webhook_is_retried(authorizer: WebhookAuthorizer, review_server: ReviewServer) -> None:
    review_server.failures = 1
    assert ask(authorizer).allows
    assert len(review_server.asked) == 2


def test_a_failed_call_has_no_opinion_and_is_not_cached(
    authorizer: WebhookAuthorizer, review_server: ReviewServer
) -> None:
    review_server.status = "yes"
    verdict = ask(authorizer)
    assert verdict.decision is Decision.NO_OPINION
    assert verdict.error
    review_server.status = YES
    assert ask(authorizer).allows


def test_an_unreachable_webhook_is_reported_with_gos_error(tmp_path: Path, clock: FakeClock) -> None:
    verdict = ask(WebhookAuthorizer(Webhook(kubeconfig(tmp_path, "http://127.0.0.1:9/a")), clock=clock))
    assert verdict.error == 'Post "http://127.0.0.1:9/a": dial tcp 127.0.0.1:9: connect: connection refused'
    assert verdict.decision is Decision.NO_OPINION


def test_the_webhook_cannot_list_rules(authorizer: WebhookAuthorizer) -> None:
    listing = authorizer.rules(JANE, "n")
    assert (listing.incomplete, listing.error) == (True, "webhook authorizer does not support user rule resolution")


def test_an_unusable_kubeconfig_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(SettingsError):
        WebhookAuthorizer(Webhook(tmp_path / "none"), clock=clock)


def test_the_webhook_is_called_if_all_conditions_are_true(
    config: Path, clock: FakeClock, review_server: ReviewServer
) -> None:
    authorizer = conditional(config, clock, "request.user == 'jane'", "request.resourceAttributes.subresource == 'log'")
    assert authorizer.authorize(JANE, PODS) is None
    assert ask(authorizer) == Verdict(Decision.ALLOW, "she may")
    assert authorizer.authorize(JANE, PODS) == Verdict(Decision.ALLOW, "she may"), "the answer is believed"
    assert len(review_server.asked) == 1


@pytest.mark.parametrize("denies_unasked", [True, False])
def test_a_false_condition_skips_the_webhook(
    config: Path, clock: FakeClock, review_server: ReviewServer, *, denies_unasked: bool
) -> None:
    before, evaluated = counted("exclusions_total"), counted("evaluation_seconds_count")
    sources = ("request.extra.none[0] == 'a'", "request.user != 'jane'")
    authorizer = conditional(config, clock, *sources, denies_unasked=denies_unasked)
    assert authorizer.authorize(JANE, PODS) is NO_OPINION
    assert ask(authorizer) is NO_OPINION
    assert review_server.asked == []
    assert counted("exclusions_total") == before + 2
    assert counted("evaluation_seconds_count") == evaluated + 2


@pytest.mark.parametrize(("denies_unasked", "decision"), [(True, Decision.DENY), (False, Decision.NO_OPINION)])
def test_failing_conditions_are_handled_like_a_failed_call(
    config: Path, clock: FakeClock, review_server: ReviewServer, decision: Decision, *, denies_unasked: bool
) -> None:
    failures, exclusions = counted("evaluation_errors_total"), counted("exclusions_total")
    authorizer = conditional(config, clock, "request.extra.none[0] == 'a'", "true", denies_unasked=denies_unasked)
    problem = "expression 'request.extra.none[0] == 'a'' resulted in error: no such key: none"
    assert authorizer.authorize(JANE, PODS) == Verdict(decision, "", f"cel evaluation error: {problem}")
    assert review_server.asked == []
    assert (counted("evaluation_errors_total"), counted("exclusions_total")) == (failures + 1, exclusions)


def test_conditions_read_version_v1_for_any_review_version(
    config: Path, clock: FakeClock, review_server: ReviewServer
) -> None:
    condition = ConditionCompiler(FUNCTIONS).compile("'dev' in request.groups")
    authorizer = WebhookAuthorizer(Webhook(config, "v1beta1", conditions=(condition,)), clock=clock)
    assert ask(authorizer).allows
    assert review_server.asked[0]["spec"]["group"] == ["dev"]

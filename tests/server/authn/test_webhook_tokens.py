"""Tests of tokens that another server verifies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.authentication.user import Authenticated, CredentialsRefused, User
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.webhook_tokens import WebhookTokens
from ctrlmgr.testing import FakeClock
from tests.server.reviewing import ReviewServer, kubeconfig

JANE = {"authenticated": True, "user": {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"a": ["b"]}}}


@pytest.fixture
def review_server() -> Iterator[ReviewServer]:
    made = ReviewServer("TokenReview", JANE)
    yield made
    made.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(tmp_path: Path, review_server: ReviewServer, clock: FakeClock) -> WebhookTokens:
    return WebhookTokens(kubeconfig(tmp_path, review_server.url), ("us",), keep_for=10.0, clock=clock)


def ask(tokens: WebhookTokens, *audiences: str, times: int = 1) -> Authenticated | None:
    async def authenticated_user() -> Authenticated | None:
        try:
            found = [
                await tokens.authenticate_token("secret", audiences or ("us",), AuthenticationNotes())
                for _ in range(times)
            ]
            return found[-1]
        finally:
            await tokens.close()

    return asyncio.run(authenticated_user())


def test_the_webhooks_decisions_are_cached(
    tokens: WebhookTokens, review_server: ReviewServer, clock: FakeClock
) -> None:
    assert ask(tokens, times=3) == Authenticated(User("jane", "7", ("dev",), {"a": ("b",)}), ("us",))
    [review] = review_server.asked
    assert review["spec"] == {"token": "secret", "audiences": ["us"]}
    clock.step(11)
    review_server.status = {"authenticated": False}
    assert ask(tokens) is None
    assert len(review_server.asked) == 2


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_review_has_the_configured_version(
    tmp_path: Path, review_server: ReviewServer, clock: FakeClock, version: str
) -> None:
    authenticated_user = WebhookTokens(
        kubeconfig(tmp_path, review_server.url), ("us",), keep_for=10.0, version=version, clock=clock
    )
    ask(authenticated_user)
    assert review_server.asked[0]["apiVersion"] == f"authentication.k8s.io/{version}"


def test_the_webhook_returns_the_user_of_a_token(tokens: WebhookTokens, review_server: ReviewServer) -> None:
    assert ask(tokens, "others") is None  # the answer has no audiences, and so is valid for ours
    review_server.status = {**JANE, "audiences": ["theirs"]}
    found = ask(tokens, "us", "theirs")
    assert found is not None
    assert found.audiences == ("theirs",)


def test_a_refusal_contains_the_webhooks_error(tokens: WebhookTokens, review_server: ReviewServer) -> None:
    review_server.status = {"error": "no such token"}
    with pytest.raises(CredentialsRefused) as refused:
        ask(tokens)
    assert refused.value.explanation == "no such token"


def test_a_failing_webhook_is_retried(tokens: WebhookTokens, review_server: ReviewServer) -> None:
    review_server.failures = 1
    assert ask(tokens) is not None
    assert len(review_server.asked) == 2


def test_an_invalid_response_is_an_error(tokens: WebhookTokens, review_server: ReviewServer) -> None:
    review_server.status = "yes"
    with pytest.raises(CredentialsRefused):
        ask(tokens)


def test_an_unusable_kubeconfig_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(SettingsError):
        WebhookTokens(tmp_path / "none", (), keep_for=1.0, clock=clock)

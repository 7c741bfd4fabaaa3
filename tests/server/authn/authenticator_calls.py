"""Calls authenticators without an event loop; authenticators that need no other process return at once."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ctrlmgr.authentication.user import Audiences, CredentialsRefused
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes, TokenAuthenticator

T = TypeVar("T")


def answered(asked: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, and return its result."""
    try:
        asked.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    pytest.fail("it waits")


def refused(asked: Coroutine[Any, Any, Any]) -> str:
    """Return the reason why credentials are refused."""
    with pytest.raises(CredentialsRefused) as refusal:
        answered(asked)
    return refusal.value.explanation


def why(tokens: TokenAuthenticator, token: str, audiences: Audiences) -> str:
    """Return the reason why a token is refused; an empty string if the token is unknown."""
    try:
        found = answered(tokens.authenticate_token(token, audiences, AuthenticationNotes()))
    except CredentialsRefused as refusal:
        return refusal.explanation
    assert found is None, "it gets through"
    return ""


def failures(setting: str) -> float:
    """Return the number of failed reloads of a file."""
    return REGISTRY.get_sample_value("ctrlmgr_file_reloads_total", {"setting": setting, "status": "failure"}) or 0.0

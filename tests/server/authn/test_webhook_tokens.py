"""Tokens that another server knows."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.authentication.user import Authenticated, CredentialsRefused, User
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.authn.parts import Told
from ctrlmgr.server.authn.webhook_tokens import WebhookTokens
from ctrlmgr.testing import FakeClock

JANE = {"authenticated": True, "user": {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"a": ["b"]}}}


class Answering:
    """A server that answers reviews with `status`, after `failures` times with 503."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.status: Any = JANE
        self.failures = 0
        answering = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                answering.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                fails, answering.failures = answering.failures > 0, answering.failures - 1
                body = json.dumps({"kind": "TokenReview", "status": answering.status}).encode()
                self.send_response(503 if fails else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/review"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def answering() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(tmp_path: Path, answering: Answering, clock: FakeClock) -> WebhookTokens:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": answering.url}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    file = tmp_path / "tokens.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return WebhookTokens(file, ("us",), keep_for=10.0, clock=clock)


def ask(tokens: WebhookTokens, *audiences: str, times: int = 1) -> Authenticated | None:
    async def asked() -> Authenticated | None:
        try:
            found = [await tokens.authenticate_token("secret", audiences or ("us",), Told()) for _ in range(times)]
            return found[-1]
        finally:
            await tokens.close()

    return asyncio.run(asked())


def test_the_other_server_is_asked_once_in_a_while(
    tokens: WebhookTokens, answering: Answering, clock: FakeClock
) -> None:
    assert ask(tokens, times=3) == Authenticated(User("jane", "7", ("dev",), {"a": ("b",)}), ("us",))
    [review] = answering.asked
    assert review["spec"] == {"token": "secret", "audiences": ["us"]}
    clock.step(11)
    answering.status = {"authenticated": False}
    assert ask(tokens) is None
    assert len(answering.asked) == 2


def test_it_says_for_whom_a_token_is(tokens: WebhookTokens, answering: Answering) -> None:
    assert ask(tokens, "others") is None  # it says nothing, and so means us
    answering.status = {**JANE, "audiences": ["theirs"]}
    found = ask(tokens, "us", "theirs")
    assert found is not None
    assert found.audiences == ("theirs",)


def test_what_it_refuses_is_refused_in_its_words(tokens: WebhookTokens, answering: Answering) -> None:
    answering.status = {"error": "no such token"}
    with pytest.raises(CredentialsRefused) as refused:
        ask(tokens)
    assert refused.value.explanation == "no such token"


def test_a_server_that_stumbles_is_asked_again(tokens: WebhookTokens, answering: Answering) -> None:
    answering.failures = 1
    assert ask(tokens) is not None
    assert len(answering.asked) == 2


def test_nonsense_is_no_answer(tokens: WebhookTokens, answering: Answering) -> None:
    answering.status = "yes"
    with pytest.raises(CredentialsRefused):
        ask(tokens)


def test_a_kubeconfig_that_cannot_be_used_is_refused(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(SettingsError):
        WebhookTokens(tmp_path / "none", (), keep_for=1.0, clock=clock)

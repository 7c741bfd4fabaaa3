"""Watches end when the credentials do that they were begun with."""

from __future__ import annotations

import asyncio
import http.client

import pytest

from ctrlmgr.api.header_lines import HeaderLines
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.server.authn import standing
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.parts import RequestParts
from ctrlmgr.server.authn.standing import Standing
from tests.server.site import CONFIG_MAPS, make, running


class Tokens(AllowEverything):
    """Knows tokens, which may be taken away."""

    def __init__(self) -> None:
        super().__init__()
        self.users = {b"Bearer a": "alice", b"Bearer b": "bob"}
        self.is_away = False
        self.asked = 0

    async def authenticate(self, parts: RequestParts) -> User:
        self.asked += 1
        if self.is_away:
            raise ServiceUnavailable("nobody knows")
        name = self.users.get(dict(parts.headers).get(b"authorization", b""))
        if name is None:
            raise CredentialsRefused("no such token")
        return User(name, groups=("system:masters",))


class Watch:
    def __init__(self) -> None:
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True


def parts(token: bytes) -> RequestParts:
    return RequestParts(HeaderLines([(b"accept", b"*/*"), (b"authorization", token)]))


def test_watches_are_cut_off_with_their_token_and_no_others() -> None:
    tokens = Tokens()
    looked = Standing(tokens)
    mine, too, other = Watch(), Watch(), Watch()
    with (
        looked.holding(mine, parts(b"Bearer a"), User("alice")),
        looked.holding(too, parts(b"Bearer a"), User("alice")),
        looked.holding(other, parts(b"Bearer b"), User("bob")),
    ):
        asyncio.run(looked.look())
        assert tokens.asked == 2, "once for each token"
        assert not any(watch.is_cut_off for watch in (mine, too, other))
        tokens.is_away = True
        del tokens.users[b"Bearer a"]
        asyncio.run(looked.look())
        assert not mine.is_cut_off, "it could not be judged"
        tokens.is_away = False
        asyncio.run(looked.look())
        assert (mine.is_cut_off, too.is_cut_off, other.is_cut_off) == (True, True, False)
    tokens.asked = 0
    asyncio.run(looked.look())
    assert not tokens.asked, "what is over is forgotten"


def test_a_token_that_means_another_user_by_now_is_no_longer_good() -> None:
    tokens = Tokens()
    looked, watch = Standing(tokens), Watch()
    with looked.holding(watch, parts(b"Bearer a"), User("alice")):
        tokens.users[b"Bearer a"] = "mallory"
        asyncio.run(looked.look())
        assert watch.is_cut_off


def test_a_watch_ends_on_the_wire_when_its_token_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "EVERY", 0.05)
    tokens = Tokens()
    with running(make(access=tokens)) as site:
        with site.watch(Authorization="Bearer a") as watch:
            del tokens.users[b"Bearer a"]
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):  # it is no end that a watch has
                watch.response.read()
        assert site.ask(CONFIG_MAPS, headers={"Authorization": "Bearer a"}).status == 401

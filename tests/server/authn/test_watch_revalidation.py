"""Tests that a watch ends when the credentials of its client become invalid."""

from __future__ import annotations

import asyncio
import http.client

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Decision, Verdict
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.server.authn import watch_revalidation
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.server.authn.watch_revalidation import WatchRevalidation
from ctrlmgr.server.authz.long_running_authorization import RepeatedAuthorization
from tests.server.site import CONFIG_MAPS, make, running


class Tokens(AllowEverything):
    """An authenticator of tokens that a test can revoke."""

    def __init__(self) -> None:
        super().__init__()
        self.users = {b"Bearer a": "alice", b"Bearer b": "bob"}
        self.is_away = False
        self.asked = 0

    async def authenticate(self, parts: RequestParts) -> User:
        self.asked += 1
        if self.is_away:
            raise ServiceUnavailable("the authenticator is unavailable")
        name = self.users.get(dict(parts.headers).get(b"authorization", b""))
        if name is None:
            raise CredentialsRefused("no such token")
        return User(name, groups=("system:masters",))


ALL = Attributes("watch", "", "", "v1", "pods")
ONE = ALL._replace(namespace="default", name="web")


class Rights(AlwaysAllow):
    """An authorizer that allows requests until a test revokes the permission; it counts its calls."""

    def __init__(self) -> None:
        self.taken: set[tuple[str, Attributes]] = set()
        self.undecided = False
        self.asked: list[tuple[str, str]] = []

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        self.asked.append((user.name, attributes.name or attributes.resource))
        if self.undecided:
            return Verdict(Decision.NO_OPINION, error="it does not answer")
        return NO_OPINION if (user.name, attributes) in self.taken else ALLOWED


class Watch:
    def __init__(self) -> None:
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True


def parts(token: bytes, *more: tuple[bytes, bytes]) -> RequestParts:
    return RequestParts(HeaderLines([(b"accept", b"*/*"), (b"authorization", token), *more]))


def test_watches_end_with_their_token_and_no_others() -> None:
    tokens = Tokens()
    looked = WatchRevalidation(tokens)
    mine, too, other = Watch(), Watch(), Watch()
    with (
        looked.holding(mine, parts(b"Bearer a"), User("alice"), ALL),
        looked.holding(too, parts(b"Bearer a"), User("alice"), ALL),
        looked.holding(other, parts(b"Bearer b"), User("bob"), ALL),
    ):
        asyncio.run(looked.revalidate())
        assert tokens.asked == 2, "once for each token"
        assert not any(watch.is_cut_off for watch in (mine, too, other))
        tokens.is_away = True
        del tokens.users[b"Bearer a"]
        asyncio.run(looked.revalidate())
        assert not mine.is_cut_off, "it could not be judged"
        tokens.is_away = False
        asyncio.run(looked.revalidate())
        assert (mine.is_cut_off, too.is_cut_off, other.is_cut_off) == (True, True, False)
    tokens.asked = 0
    asyncio.run(looked.revalidate())
    assert not tokens.asked, "what is over is forgotten"


def test_a_token_that_identifies_another_user_is_refused() -> None:
    tokens = Tokens()
    looked, watch = WatchRevalidation(tokens), Watch()
    with looked.holding(watch, parts(b"Bearer a"), User("alice"), ALL):
        tokens.users[b"Bearer a"] = "mallory"
        asyncio.run(looked.revalidate())
        assert watch.is_cut_off


def test_watches_end_with_their_right_and_each_decision_is_made_once() -> None:
    tokens, rights = Tokens(), Rights()
    looked = WatchRevalidation(tokens, RepeatedAuthorization(rights))
    mine, too, other, bobs = (Watch() for _ in range(4))
    with (
        looked.holding(mine, parts(b"Bearer a"), User("alice"), ALL),
        looked.holding(too, parts(b"Bearer a"), User("alice"), ALL),
        looked.holding(other, parts(b"Bearer a"), User("alice"), ONE),
        looked.holding(bobs, parts(b"Bearer b"), User("bob"), ALL),
    ):
        asyncio.run(looked.revalidate())
        assert rights.asked == [("alice", "pods"), ("alice", "web"), ("bob", "pods")]
        rights.taken.add(("alice", ALL))
        rights.undecided = True
        asyncio.run(looked.revalidate())
        assert not any(watch.is_cut_off for watch in (mine, too, other, bobs)), "it could not be judged"
        rights.undecided = False
        asyncio.run(looked.revalidate())
        assert [watch.is_cut_off for watch in (mine, too, other, bobs)] == [True, True, False, False]


def test_an_impersonating_watch_ends_with_either_users_right() -> None:
    tokens, rights = Tokens(), Rights()
    looked = WatchRevalidation(tokens, RepeatedAuthorization(rights))
    acting = parts(b"Bearer a", (b"impersonate-user", b"carol"))
    of_carol, of_alice = Watch(), Watch()
    with (
        looked.holding(of_carol, acting, User("alice"), ALL),
        looked.holding(of_alice, parts(b"Bearer a"), User("alice"), ALL),
    ):
        rights.taken.add(("alice", ALL))
        asyncio.run(looked.revalidate())
        assert (of_carol.is_cut_off, of_alice.is_cut_off) == (False, True)
        rights.taken.add(("carol", ALL))
        asyncio.run(looked.revalidate())
        assert of_carol.is_cut_off
    again = Watch()
    rights.taken.clear()
    with looked.holding(again, acting, User("alice"), ALL):
        rights.taken |= {
            ("alice", Attributes(verb, "", group, "v1", "users", "", "", "carol"))
            for verb, group in (
                ("impersonate", ""),
                ("impersonate:user-info", "authentication.k8s.io"),
            )
        }
        asyncio.run(looked.revalidate())
        assert again.is_cut_off, rights.asked


def test_a_watch_response_ends_when_its_token_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_revalidation, "EVERY", 0.05)
    tokens = Tokens()
    with running(make(access=tokens)) as site:
        with site.watch(Authorization="Bearer a") as watch:
            del tokens.users[b"Bearer a"]
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):  # a watch does not end in this way
                watch.response.read()
        assert site.ask(CONFIG_MAPS, headers={"Authorization": "Bearer a"}).status == 401


class RevocableWatcher(AllowEverything):
    """An authenticator and authorizer for one user, whose permission to watch a test can revoke."""

    def __init__(self) -> None:
        super().__init__(User("alice"))
        self.may_watch = True

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        return ALLOWED if self.may_watch or attributes.verb != "watch" else NO_OPINION


@pytest.mark.parametrize("ends", [True, False])
def test_a_watch_response_ends_when_its_right_is_revoked(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    monkeypatch.setattr(watch_revalidation, "EVERY", 0.05)
    access = RevocableWatcher()
    with running(make(access=access, ends_watches=ends)) as site, site.watch() as watch:
        access.may_watch = False
        site.create("seen")
        if ends:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                watch.response.read()
            assert site.ask(f"{CONFIG_MAPS}?watch=1").status == 403
        else:
            assert watch.next()["object"]["metadata"]["name"] == "seen", "as in Kubernetes"

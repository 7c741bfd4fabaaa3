"""Tests of the request chain: the order of its steps, and which steps wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, RuleListing, Verdict
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from tests.server.site import CONFIG_MAPS, Site, make, running

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class RemoteAuthorizer(AllowEverything):
    """An authenticator and authorizer that wait as if they called another process; only alice is allowed."""

    async def authenticate(self, parts: RequestParts) -> User:
        await asyncio.sleep(0)
        return User(dict(parts.headers).get(b"x-user", b"nobody").decode())

    def authorize(self, user: User, attributes: Attributes) -> None:  # type: ignore[override]  # it always asks
        return None

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        await asyncio.sleep(0)
        return ALLOWED if user.name == "alice" else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        return RuleListing(incomplete=True)


@pytest.fixture(scope="module")
def far_away() -> Iterator[Site]:
    with running(make(access=RemoteAuthorizer())) as site:
        yield site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running(make()) as site:
        yield site


def test_a_step_can_be_asynchronous(far_away: Site) -> None:
    assert far_away.ask(CONFIG_MAPS, headers={"X-User": "alice"}).status == 200
    assert far_away.ask(CONFIG_MAPS, headers={"X-User": "bob"}).status == 403
    review = {"spec": {"user": "alice", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = far_away.ask(path, "POST", review, {"X-User": "alice"})
    assert answer.json["status"] == {"allowed": True}


def test_impersonation_can_be_asynchronous(far_away: Site) -> None:
    headers = {"X-User": "alice", "Impersonate-User": "bob"}
    answer = far_away.ask(CONFIG_MAPS, headers=headers)
    assert answer.status == 403
    assert 'User "bob" cannot list' in answer.json["message"]
    headers = {"X-User": "bob", "Impersonate-User": "alice"}
    assert 'User "bob" cannot impersonate-on' in far_away.ask(CONFIG_MAPS, headers=headers).json["message"]


def test_refusals_reveal_nothing(far_away: Site) -> None:
    for path in ("/api/v1/nopes", "/apis/none.example.com/v1/things/x", f"{CONFIG_MAPS}/absent", "/nowhere"):
        assert far_away.ask(path, headers={"X-User": "bob"}).status == 403


def test_a_request_runs_as_the_impersonated_user(site: Site) -> None:
    headers = {"Impersonate-User": "bob", "Impersonate-Group": "dev", "Impersonate-Extra-Scopes": "view"}
    info = site.ask(WHO_AM_I, "POST", {}, headers).json["status"]["userInfo"]
    assert info == {"username": "bob", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["view"]}}
    refused = site.ask(CONFIG_MAPS, headers={"Impersonate-Group": "dev"})
    assert (refused.status, refused.json["reason"]) == (400, "BadRequest")

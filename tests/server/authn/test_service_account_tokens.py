"""Tokens of service accounts: asked for over HTTP, known again, and no longer once something about them has changed."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.errors import BadRequest, Conflict, Invalid, NotFound, SettingsError
from ctrlmgr.server.authn.service_account_tokens import (
    ISSUER,
    SERVICE_ACCOUNTS,
    Bound,
    ServiceAccountTokens,
    service_account_key,
)
from ctrlmgr.server.authn.token_requests import TokenRequests
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_pod
from tests.server.site import Site, make, running

KEY = ec.generate_private_key(ec.SECP256R1())


def account(uid: str = "uid-1") -> Object:
    metadata = {"name": "builder", "namespace": "default", "uid": uid}
    return Object.from_dict({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata})


class Cluster:
    """What there is, a clock, and the tokens."""

    def __init__(self, key: ec.EllipticCurvePrivateKey = KEY) -> None:
        self.clock = FakeClock()
        self.there = {(SERVICE_ACCOUNTS, Key("default", "builder")): account(), (PODS, Key("default", "p")): a_pod("p")}
        self.tokens = ServiceAccountTokens(key, self.find, clock=self.clock)

    def find(self, resource: Resource, key: Key) -> Object | None:
        return self.there.get((resource, key))

    def issue(self, seconds: int = 600, bound: Bound | None = None, audiences: tuple[str, ...] = ()) -> str:
        return self.tokens.issue(account(), audiences, seconds, bound)[0]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


POD = Bound("Pod", "p", "uid-of-p")


def payload(token: str) -> Any:
    text = token.split(".")[1]
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def test_a_token_is_known_again(cluster: Cluster) -> None:
    groups = ("system:serviceaccounts", "system:serviceaccounts:default")
    assert cluster.tokens.user(cluster.issue()) == User("system:serviceaccount:default:builder", "uid-1", groups)


def test_a_token_says_what_kubernetes_has_it_say(cluster: Cluster) -> None:
    claims = payload(cluster.issue(bound=POD))
    assert claims["sub"] == "system:serviceaccount:default:builder"
    assert (claims["iss"], claims["aud"]) == (ISSUER, [ISSUER])
    assert claims["exp"] - claims["iat"] == 600
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "builder", "uid": "uid-1"},
        "pod": {"name": "p", "uid": "uid-of-p"},
    }


def test_a_bound_token_tells_of_its_pod(cluster: Cluster) -> None:
    user = cluster.tokens.user(cluster.issue(bound=POD))
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)


def test_a_token_ends(cluster: Cluster) -> None:
    token = cluster.issue(seconds=600)
    cluster.clock.step(599)
    assert cluster.tokens.user(token) is not None
    cluster.clock.step(1)
    assert cluster.tokens.user(token) is None


def test_a_token_for_others_is_not_for_us(cluster: Cluster) -> None:
    assert cluster.tokens.user(cluster.issue(audiences=("vault",))) is None
    assert cluster.tokens.user(cluster.issue(audiences=("vault", ISSUER))) is not None


def test_a_token_of_an_account_that_is_gone_or_another_is_nobodys(cluster: Cluster) -> None:
    token, place = cluster.issue(), (SERVICE_ACCOUNTS, Key("default", "builder"))
    cluster.there[place] = account("uid-2")
    assert cluster.tokens.user(token) is None
    del cluster.there[place]
    assert cluster.tokens.user(token) is None


def test_a_token_of_a_pod_that_is_gone_is_nobodys(cluster: Cluster) -> None:
    token = cluster.issue(bound=POD)
    del cluster.there[PODS, Key("default", "p")]
    assert cluster.tokens.user(token) is None


def encoded(fields: Any) -> str:
    return urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def forged(token: str) -> dict[str, str]:
    header, claims, signature = token.split(".")
    other = Cluster(ec.generate_private_key(ec.SECP256R1())).issue()
    grown = encoded({**payload(token), "sub": "system:serviceaccount:default:other", "exp": 1 << 40})
    return {
        "no algorithm": f"{encoded({'alg': 'none'})}.{claims}.{signature}",
        "no signature": f"{header}.{claims}.",
        "another algorithm": f"{encoded({'alg': 'HS256'})}.{claims}.{signature}",
        "another key": other,
        "other claims": f"{header}.{grown}.{signature}",
        "a short signature": f"{header}.{claims}.{signature[:-4]}",
        "a zero signature": f"{header}.{claims}.{'A' * 86}",
        "no header": f"e30.{claims}.{signature}",
        "a list for a header": f"W10.{claims}.{signature}",
        "no JSON": f"AAAA.{claims}.{signature}",
        "two parts": f"{header}.{claims}",
        "nothing": "",
        "no text": "\x00.\x00.\x00",
    }


@pytest.mark.parametrize("how", list(forged(Cluster().issue())))
def test_what_is_not_ours_is_refused(cluster: Cluster, how: str) -> None:
    assert cluster.tokens.user(forged(cluster.issue())[how]) is None


def ask(cluster: Cluster, spec: Any = None) -> Any:
    return TokenRequests(cluster.tokens, cluster.find).answer(account(), {} if spec is None else {"spec": spec})


def test_a_request_is_answered_with_what_was_left_out(cluster: Cluster) -> None:
    answer = ask(cluster)
    assert answer["metadata"] == {"name": "builder", "namespace": "default"}
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600}
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"
    assert cluster.tokens.user(answer["status"]["token"]) is not None


def test_a_request_may_be_bound(cluster: Cluster) -> None:
    token = ask(cluster, {"boundObjectRef": {"kind": "Pod", "name": "p"}})["status"]["token"]
    assert payload(token)["kubernetes.io"]["pod"] == {"name": "p", "uid": "uid-of-p"}


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"expirationSeconds": 599}, Invalid, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": (1 << 32) + 1}, Invalid, r"may not specify a duration larger than 2\^32 seconds"),
        ({"boundObjectRef": {"kind": "Job", "name": "j"}}, BadRequest, "cannot bind token to object of type Job"),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, NotFound, 'pods "absent" not found'),
        ({"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "old"}}, Conflict, "does not match the UID in record"),
    ],
)
def test_what_cannot_be_asked_for(cluster: Cluster, spec: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(cluster, spec)


TOKEN = "/api/v1/namespaces/default/serviceaccounts/builder/token"


def create_account(site: Site) -> None:
    site.ask(TOKEN.rpartition("/builder")[0], "POST", {"metadata": {"name": "builder"}})


def test_a_token_is_asked_for_over_http() -> None:
    class Issuer:
        def issue(self, account: Object, audiences: Any, seconds: int, bound: Bound | None) -> tuple[str, int]:
            return f"{account.name}:{seconds}", 1_800_000_000

    with running(make(issuer=Issuer())) as site:
        assert site.ask(TOKEN, "POST", {}).status == 404
        create_account(site)
        answer = site.ask(TOKEN, "POST", {"spec": {"expirationSeconds": 700}, "more": 1})
        assert (answer.status, answer.json["kind"]) == (201, "TokenRequest")
        assert answer.json["status"] == {"token": "builder:700", "expirationTimestamp": "2027-01-15T08:00:00Z"}
        assert answer.headers["warning"] == '299 - "unknown field \\"more\\""'
        assert site.ask(f"{TOKEN}?fieldValidation=Strict", "POST", {"more": 1}).status == 400


def test_without_an_issuer_there_is_no_such_place() -> None:
    with running() as site:
        create_account(site)
        assert site.ask(TOKEN, "POST", {}).status == 404


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    made = service_account_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert service_account_key(path).private_numbers() == made.private_numbers()


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sa.key").write_text("nonsense")
    with pytest.raises(SettingsError, match=r"sa\.key cannot be used"):
        service_account_key(tmp_path / "sa.key")

"""Tests of ServiceAccount tokens: they are issued, accepted, and refused after a change of an object on which they
depend.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource
from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.legacy_claims import legacy_claims
from ctrlmgr.authentication.service_account_claims import SECRETS, SERVICE_ACCOUNTS, STALE, Bound, Reference
from ctrlmgr.authentication.token_keys import VerificationKeys, key_id
from ctrlmgr.authentication.user import CREDENTIAL_ID, User
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.authn.account_keys import read_account_keys
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.authn.service_account_tokens import DEFAULT_ISSUER, ServiceAccountTokens
from ctrlmgr.testing import FakeClock
from tests.server.authn.authenticator_calls import answered, why
from tests.signatures import signature_of

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)
OURS = (DEFAULT_ISSUER,)
UNVERIFIED = "go-jose/go-jose: error in cryptographic primitive"

POD = Bound(pod=Reference("p", "uid-of-p"), node=Reference("n", "uid-of-n"))
SECRET = Bound(secret=Reference("s", "uid-of-s"))
UNBOUND = Bound()
NODE = Bound(node=Reference("n", "uid-of-n"))


def an(kind: str, name: str, uid: str, **metadata: Any) -> Object:
    fields = {"name": name, "uid": uid, **metadata}
    if kind not in ("Namespace", "Node"):
        fields["namespace"] = "default"
    return Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": fields})


class Cluster:
    """The stored objects, the clock, and the authority that issues tokens."""

    def __init__(self, key: jwt.PrivateKey = KEY, verifying: Sequence[jwt.PrivateKey] = ()) -> None:
        self.clock = FakeClock()
        self.there = {
            (SERVICE_ACCOUNTS, Key("default", "builder")): an("ServiceAccount", "builder", "uid-1"),
            (PODS, Key("default", "p")): an("Pod", "p", "uid-of-p"),
            (SECRETS, Key("default", "s")): an("Secret", "s", "uid-of-s"),
            (NODES, Key("", "n")): an("Node", "n", "uid-of-n"),
            (NAMESPACES, Key("", "default")): an("Namespace", "default", "uid-of-default"),
        }
        keys = VerificationKeys(each.public_key() for each in (key, *verifying))
        self.tokens = ServiceAccountTokens(key, keys, self.find, clock=self.clock, random=Random(1))

    def find(self, resource: Resource, key: Key) -> Object | None:
        return self.there.get((resource, key))

    @property
    def account(self) -> Object:
        return self.there[SERVICE_ACCOUNTS, Key("default", "builder")]

    def issue(
        self, seconds: int = 600, bound: Bound = UNBOUND, audiences: Sequence[str] = OURS, warn_after: int = 0
    ) -> str:
        now = self.clock.now() // 1_000_000
        return self.tokens.issue(self.account, audiences, seconds, warn_after, bound, now=now).token

    def user(self, token: str, told: AuthenticationNotes | None = None) -> User:
        found = answered(self.tokens.authenticate_token(token, OURS, told or AuthenticationNotes()))
        assert found is not None
        return found.user

    def why(self, token: str, audiences: Sequence[str] = OURS) -> str:
        return why(self.tokens, token, audiences)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def payload(token: str) -> Any:
    return json.loads(jwt.decoded(token.split(".")[1]))


def test_a_token_has_the_claims_of_kubernetes_tokens(cluster: Cluster) -> None:
    claims = payload(cluster.issue(bound=POD))
    assert list(claims) == ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"]
    assert claims["exp"] - claims["iat"] == 600
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "node": {"name": "n", "uid": "uid-of-n"},
        "pod": {"name": "p", "uid": "uid-of-p"},
        "serviceaccount": {"name": "builder", "uid": "uid-1"},
    }


@pytest.mark.parametrize("key", [KEY, RSA])
def test_a_token_authenticates_its_account(key: jwt.PrivateKey) -> None:
    cluster = Cluster(key)
    token = cluster.issue(bound=POD)
    name, uid, groups, extra = cluster.user(token)
    assert (name, uid) == ("system:serviceaccount:default:builder", "uid-1")
    assert groups == ("system:serviceaccounts", "system:serviceaccounts:default")
    prefix = "authentication.kubernetes.io"
    assert extra == {
        f"{prefix}/pod-name": ("p",),
        f"{prefix}/pod-uid": ("uid-of-p",),
        CREDENTIAL_ID: (f"JTI={payload(token)['jti']}",),
        f"{prefix}/node-name": ("n",),
        f"{prefix}/node-uid": ("uid-of-n",),
    }


def test_each_token_has_a_unique_id(cluster: Cluster) -> None:
    assert payload(cluster.issue())["jti"] != payload(cluster.issue())["jti"]


def test_a_token_expires_after_its_time_plus_leeway(cluster: Cluster) -> None:
    token = cluster.issue(600)
    cluster.clock.step(660)
    assert cluster.user(token)
    cluster.clock.step(1)
    assert cluster.why(token) == "service account token has expired"


def test_a_token_is_invalid_before_its_time(cluster: Cluster) -> None:
    now = cluster.clock.now() // 1_000_000 + 61
    token = cluster.tokens.issue(cluster.account, OURS, 600, 0, UNBOUND, now=now).token
    assert cluster.why(token) == "service account token is not valid yet"


def test_a_token_is_valid_only_for_its_audience(cluster: Cluster) -> None:
    token = cluster.issue(audiences=["one", "two"])
    words = 'token audiences ["one" "two"] is invalid for the target audiences ["https://kubernetes.default.svc.cluster.local"]'
    assert cluster.why(token) == words
    found = answered(cluster.tokens.authenticate_token(token, ["two", "three", "one"], AuthenticationNotes()))
    assert found is not None
    assert found.audiences == ("two", "one")
    assert cluster.why(cluster.issue(), ["one"]).startswith("token audiences")


RESOURCES = {
    "Pod": (PODS, Key("default", "p")),
    "Secret": (SECRETS, Key("default", "s")),
    "Node": (NODES, Key("", "n")),
}


@pytest.mark.parametrize(("kind", "bound"), [("Pod", POD), ("Secret", SECRET), ("Node", NODE)])
def test_a_token_is_invalid_after_its_bound_object_is_deleted(cluster: Cluster, kind: str, bound: Bound) -> None:
    token, where = cluster.issue(bound=bound), RESOURCES[kind]
    assert cluster.user(token)
    was = cluster.there.pop(where)
    assert cluster.why(token) == "service account token has been invalidated"
    cluster.there[where] = an(kind, was.name, "another")
    assert cluster.why(token).startswith(f"{kind.lower()} UID (another) does not match service account")
    ends = format_time_seconds(cluster.clock.now() + 30_000_000)
    cluster.there[where] = an(kind, was.name, was.uid, deletionTimestamp=ends, finalizers=["example.com/hold"])
    assert cluster.user(token)
    cluster.clock.step(30 + 61)
    assert cluster.why(token) == "service account token has been invalidated"


def test_a_pods_token_outlives_its_node(cluster: Cluster) -> None:
    token = cluster.issue(bound=POD)
    del cluster.there[NODES, Key("", "n")]
    assert cluster.user(token)


def test_tokens_of_a_deleted_account_are_invalid(cluster: Cluster) -> None:
    token = cluster.issue()
    where = SERVICE_ACCOUNTS, Key("default", "builder")
    del cluster.there[where]
    assert cluster.why(token) == 'serviceaccounts "builder" not found'
    cluster.there[where] = an("ServiceAccount", "builder", "uid-2")
    assert cluster.why(token) == "service account UID (uid-2) does not match claim (uid-1)"
    ends = format_time_seconds(cluster.clock.now() - 61_000_000)
    cluster.there[where] = an("ServiceAccount", "builder", "uid-1", deletionTimestamp=ends, finalizers=["a.b/c"])
    assert cluster.why(token) == "service account default/builder has been deleted"


def test_further_keys_of_the_server_are_accepted() -> None:
    old = Cluster(OTHER).issue()
    assert Cluster(KEY, [OTHER, RSA]).user(old)
    assert Cluster(KEY, [RSA]).why(old) == "invalid signature, no keys found"


def test_use_after_an_hour_is_recorded(cluster: Cluster) -> None:
    token, told = cluster.issue(10_000, POD, warn_after=3607), AuthenticationNotes()
    cluster.user(token, told)
    assert told.annotations == {}
    cluster.clock.step(3617)
    cluster.user(token, told)
    noted = "subject: system:serviceaccount:default:builder, seconds after warning threshold: 10"
    assert told.annotations == {STALE: noted}


def encoded(fields: Any) -> str:
    return jwt.encoded(json.dumps(fields).encode())


def signed(claims: Any, key: jwt.PrivateKey = KEY, **header: Any) -> str:
    """Return a token with any header and claims, signed with the server's key or with another key."""
    text = f"{encoded({'alg': 'ES256', **header})}.{encoded(claims)}"
    return f"{text}.{jwt.encoded(signature_of(text.encode(), key))}"


def forged(token: str) -> dict[str, str]:
    header, claims, signature = token.split(".")
    said = payload(token)
    grown = encoded({**said, "sub": "system:serviceaccount:default:other", "exp": 1 << 40})
    return {
        "no algorithm": f"{encoded({'alg': 'none'})}.{claims}.{signature}",
        "no algorithm and no signature": f"{encoded({'alg': 'none'})}.{claims}.",
        "no signature": f"{header}.{claims}.",
        "another algorithm": f"{encoded({'alg': 'HS256'})}.{claims}.{signature}",
        "another key": Cluster(OTHER).issue(),
        "another key under no name": signed(said, OTHER),
        "other claims": f"{header}.{grown}.{signature}",
        "a short signature": f"{header}.{claims}.{signature[:-4]}",
        "a long signature": f"{header}.{claims}.{signature}AAAA",
        "a zero signature": f"{header}.{claims}.{'A' * 86}",
        "no header": f"e30.{claims}.{signature}",
        "a list for a header": f"W10.{claims}.{signature}",
        "no JSON": f"AAAA.{claims}.{signature}",
        "two parts": f"{header}.{claims}",
        "another issuer": signed({**said, "iss": "https://elsewhere.example.com"}),
        "no issuer": signed({**said, "iss": None}),
        "extensions": signed(said, crit=["exp"]),
        "a uid of the wrong kind": signed({**said, "kubernetes.io": {"serviceaccount": {"uid": 1}}}),
        "nothing of ours": signed({"iss": DEFAULT_ISSUER, "aud": DEFAULT_ISSUER}),
        "another namespace": signed({**said, "kubernetes.io": {**said["kubernetes.io"], "namespace": "other"}}),
        "a path for a namespace": signed({**said, "kubernetes.io": {**said["kubernetes.io"], "namespace": "a/../b"}}),
        "nothing": "",
        "no text": "\x00.\x00.\x00",
        "no UTF-8": "\udcff.\udcff.\udcff",
    }


@pytest.mark.parametrize("how", list(forged(Cluster().issue())))
def test_foreign_tokens_are_refused(cluster: Cluster, how: str) -> None:
    assert (
        cluster.why(forged(cluster.issue())[how])
        in (
            "",
            UNVERIFIED,
            "invalid signature, no keys found",
            'serviceaccounts "" not found',
            'serviceaccounts "builder" not found',
        )
        or how == "a uid of the wrong kind"
    )


def test_a_cached_token_is_checked_again(cluster: Cluster) -> None:
    token = cluster.issue(bound=SECRET)
    for _ in range(3):
        assert cluster.user(token)
    del cluster.there[SECRETS, Key("default", "s")]
    assert cluster.why(token)


def pem(key: jwt.PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_a_key_is_created_once_and_kept(tmp_path: Path) -> None:
    own = tmp_path / "sa.key"
    made = read_account_keys(own, "", "", ())
    assert jwt.algorithm_of(made.signing) == "RS256"
    assert own.stat().st_mode & 0o777 == 0o600
    assert read_account_keys(own, "", "", ()).signing.public_key() == made.signing.public_key()


def test_keys_are_read_from_configured_files(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("signing", "kept", "old")}
    keys_of: list[jwt.PrivateKey] = [KEY, RSA, OTHER]
    for file, key in zip(files.values(), keys_of, strict=True):
        file.write_bytes(pem(key))
    own = tmp_path / "sa.key"
    keys = read_account_keys(own, str(files["signing"]), str(files["kept"]), [str(files["old"])])
    assert (keys.signing.public_key(), keys.kept.public_key()) == (KEY.public_key(), RSA.public_key())
    assert [each.key for each in keys.verifying.all] == [KEY.public_key(), RSA.public_key(), OTHER.public_key()]
    alone = read_account_keys(own, "", str(files["kept"]), ())
    assert alone.signing.public_key() == RSA.public_key()
    assert not own.exists()


def test_an_invalid_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("nonsense")
    none = str(tmp_path / "none")
    for arguments, words in (
        ((Path(none), "", "", ()), "data_dir: "),
        ((tmp_path / "sa.key", none, "", ()), "service_accounts.signing_key_file: "),
        ((tmp_path / "sa.key", "", str(tmp_path / "absent"), ()), "service_accounts.signing_key_file: "),
        ((tmp_path / "sa.key", "", "", [none]), "service_accounts.key_file: "),
    ):
        with pytest.raises(SettingsError, match=words):
            read_account_keys(*arguments)


@pytest.mark.parametrize("looks_up", [True, False])
def test_tokens_in_secrets_are_looked_up_unless_disabled(looks_up: bool) -> None:
    cluster = Cluster()
    used: list[Object] = []
    keys = VerificationKeys([KEY.public_key()])
    cluster.tokens = ServiceAccountTokens(
        KEY, keys, cluster.find, clock=cluster.clock, random=Random(1), on_use=used.append, lookup=looks_up
    )
    token = jwt.sign(msgspec.json.encode(legacy_claims(cluster.account, "gone")), KEY, key_id(KEY.public_key()))
    if looks_up:
        assert cluster.why(token) == "Token has been invalidated"
    else:
        assert cluster.user(token).name == "system:serviceaccount:default:builder"
    assert not used
    bound = cluster.issue(bound=SECRET)
    del cluster.there[SECRETS, Key("default", "s")]
    assert cluster.why(bound), "what other tokens are bound to is looked up in any case"

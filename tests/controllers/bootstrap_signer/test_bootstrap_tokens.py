"""Tests of the controllers for bootstrap tokens: signatures of the ConfigMap cluster-info, and expired tokens."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication import jwt
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.bootstrap_signer import controller as bootstrap_signer
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.token_cleaner import controller as token_cleaner
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

SECRETS = "/api/v1/namespaces/kube-system/secrets"
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
SECRET = "0123456789abcdef"


def token(called: str, *, kind: str = "bootstrap.kubernetes.io/token", **more: str) -> dict[str, Any]:
    data = {"token-id": called, "token-secret": SECRET, "usage-bootstrap-signing": "true"}
    data |= {name.replace("_", "-"): value for name, value in more.items()}
    return {"metadata": {"name": f"bootstrap-token-{called}"}, "type": kind, "stringData": data}


def signer(stage: WorkedStage) -> Controller:
    return bootstrap_signer.build(StageContext(stage), NoOptions())


def cleaner(stage: WorkedStage) -> Controller:
    return token_cleaner.build(StageContext(stage), NoOptions())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(signer)
    for name in ("kube-system", "kube-public"):
        stage.namespace(name)
    stage.create(INFO.rpartition("/")[0], {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "where"}})
    return stage


def signatures(stage: WorkedStage) -> dict[str, str]:
    data = stage.send("GET", INFO).body["data"]
    prefix = "jws-kubeconfig-"
    return {name.removeprefix(prefix): value for name, value in data.items() if name.startswith(prefix)}


def is_good(signature: str, content: str) -> bool:
    header, nothing, signed = signature.split(".")
    assert nothing == ""
    text = f"{header}.{jwt.encoded(content.encode())}"
    return hmac.compare_digest(jwt.decoded(signed), hmac.digest(SECRET.encode(), text.encode(), hashlib.sha256))


def test_each_token_signs(stage: WorkedStage) -> None:
    for each in ("aaaaaa", "bbbbbb"):
        stage.create(SECRETS, token(each))
    stage.work()
    found = signatures(stage)
    assert sorted(found) == ["aaaaaa", "bbbbbb"]
    assert all(is_good(each, "where") for each in found.values())
    stage.patch(INFO, {"data": {"kubeconfig": "elsewhere"}})
    stage.work()
    assert all(is_good(each, "elsewhere") for each in signatures(stage).values())


def test_a_signature_is_removed_with_its_token(stage: WorkedStage) -> None:
    stage.create(SECRETS, token("aaaaaa"))
    stage.patch(INFO, {"data": {"jws-kubeconfig-zzzzzz": "forged"}})
    stage.work()
    assert list(signatures(stage)) == ["aaaaaa"]
    stage.delete(f"{SECRETS}/bootstrap-token-aaaaaa")
    stage.work()
    assert signatures(stage) == {}


@pytest.mark.parametrize(
    "body",
    [
        token("aaaaaa", usage_bootstrap_signing="false"),
        token("aaaaaa", expiration="2020-01-01T00:00:00Z"),
        token("aaaaaa", expiration="tomorrow"),
        token("aaaaaa", kind="Opaque"),
        token("aaaaaa", token_id="bbbbbb"),
        token("aaaaaa", token_secret=""),
    ],
)
def test_invalid_tokens_do_not_sign(stage: WorkedStage, body: dict[str, Any]) -> None:
    stage.create(SECRETS, body)
    stage.work()
    assert signatures(stage) == {}


def test_a_signature_is_removed_when_its_token_expires(stage: WorkedStage) -> None:
    ends = format_time_seconds(stage.clock.now() + 60_000_000)
    stage.create(SECRETS, token("aaaaaa", expiration=ends))
    stage.work()
    assert list(signatures(stage)) == ["aaaaaa"]
    stage.pass_by(62)
    assert signatures(stage) == {}


def test_without_content_nothing_is_signed(stage: WorkedStage) -> None:
    stage.patch(INFO, {"data": {"kubeconfig": None, "other": "x"}})
    stage.create(SECRETS, token("aaaaaa"))
    stage.work()
    assert stage.written() == []


def tokens(stage: WorkedStage) -> list[str]:
    return stage.names(Resource("", "secrets"))


def test_an_expired_token_is_deleted() -> None:
    stage = WorkedStage(cleaner)
    stage.namespace("kube-system")
    stage.create(SECRETS, token("aaaaaa", expiration=format_time_seconds(stage.clock.now() + 60_000_000)))
    stage.create(SECRETS, token("bbbbbb"))
    stage.create(SECRETS, token("cccccc", expiration="tomorrow"))
    stage.create(SECRETS, token("dddddd", expiration="2020-01-01T00:00:00Z", kind="Opaque"))
    stage.work()
    assert tokens(stage) == ["bootstrap-token-aaaaaa", "bootstrap-token-bbbbbb", "bootstrap-token-dddddd"]
    stage.pass_by(61)
    assert tokens(stage) == ["bootstrap-token-bbbbbb", "bootstrap-token-dddddd"]


def test_an_extended_expiration_is_respected() -> None:
    stage = WorkedStage(cleaner)
    stage.namespace("kube-system")
    stage.create(SECRETS, token("aaaaaa", expiration=format_time_seconds(stage.clock.now() + 60_000_000)))
    stage.work()
    later = format_time_seconds(stage.clock.now() + 120_000_000)
    stage.patch(f"{SECRETS}/bootstrap-token-aaaaaa", {"stringData": {"expiration": later}})
    stage.pass_by(61)
    assert tokens(stage) == ["bootstrap-token-aaaaaa"]
    stage.pass_by(61)
    assert tokens(stage) == []

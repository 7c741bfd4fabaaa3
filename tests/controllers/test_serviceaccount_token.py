from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.legacy_claims import ACCOUNT_NAME, ACCOUNT_UID, TYPE
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.controllers.serviceaccount_token import Options
from ctrlmgr.controllers.serviceaccount_token.controller import build
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageIdentityContext
from tests.controllers.worked_stage import WorkedStage

SECRETS = "/api/v1/namespaces/a/secrets"
ACCOUNTS = "/api/v1/namespaces/a/serviceaccounts"
KEY = ec.generate_private_key(ec.SECP256R1())


def controller(stage: WorkedStage) -> Controller:
    identity = Identity(lambda: KEY, Path(), Path(), may_ask=lambda user, subresource: False)
    return build(StageIdentityContext(stage, identity, root_ca="the authority"), Options())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.create(ACCOUNTS, {"metadata": {"name": "bot"}})
    stage.work()
    return stage


def secret(name: str, account: str = "bot", data: dict[str, str] | None = None, uid: str = "") -> dict[str, Any]:
    said = {ACCOUNT_NAME: account, **({ACCOUNT_UID: uid} if uid else {})}
    return {"metadata": {"name": name, "annotations": said}, "type": TYPE, "data": data or {}}


def data_of(stage: WorkedStage, name: str) -> dict[str, str]:
    data = stage.send("GET", f"{SECRETS}/{name}").body["data"]
    return {key: b64decode(value).decode() for key, value in data.items()}


def test_a_secret_that_names_an_account_gets_a_token(stage: WorkedStage) -> None:
    stage.create(SECRETS, secret("t", data={"extra": b64encode(b"kept").decode()}))
    stage.work()
    data = data_of(stage, "t")
    assert (data["ca.crt"], data["namespace"], data["extra"]) == ("the authority", "a", "kept")
    token = jwt.parse(data["token"])
    assert token is not None
    assert jwt.verifies(token, KEY.public_key())
    account = stage.send("GET", f"{ACCOUNTS}/bot").body
    annotations = stage.send("GET", f"{SECRETS}/t").body["metadata"]["annotations"]
    assert annotations == {ACCOUNT_NAME: "bot", ACCOUNT_UID: account["metadata"]["uid"]}


def test_an_account_gets_no_token_without_a_secret(stage: WorkedStage) -> None:
    assert stage.names(Resource("", "secrets")) == []
    assert stage.written() == []


def test_existing_data_is_kept_except_the_certificate(stage: WorkedStage) -> None:
    given = {key: b64encode(value).decode() for key, value in {"token": b"mine", "namespace": b"x"}.items()}
    stage.create(SECRETS, secret("t", data={**given, "ca.crt": b64encode(b"old").decode()}))
    stage.work()
    assert data_of(stage, "t") == {"token": "mine", "namespace": "x", "ca.crt": "the authority"}


def test_a_removed_token_is_recreated(stage: WorkedStage) -> None:
    stage.create(SECRETS, secret("t"))
    stage.work()
    stage.patch(f"{SECRETS}/t", {"data": {"token": None}})
    stage.work()
    assert data_of(stage, "t")["token"]


@pytest.mark.parametrize("body", [secret("t", "absent"), secret("t", uid="another")])
def test_a_secret_of_a_missing_or_recreated_account_is_deleted(stage: WorkedStage, body: dict[str, Any]) -> None:
    stage.create(SECRETS, body)
    stage.work()
    assert stage.send("GET", f"{SECRETS}/t").code == 404


def test_secrets_are_deleted_with_their_account_even_if_it_is_recreated(stage: WorkedStage) -> None:
    stage.create(SECRETS, secret("t"))
    stage.work()
    stage.delete(f"{ACCOUNTS}/bot")
    stage.create(ACCOUNTS, {"metadata": {"name": "bot"}})
    stage.work()
    assert stage.send("GET", f"{SECRETS}/t").code == 404


def test_a_deleted_secret_is_removed_from_its_account(stage: WorkedStage) -> None:
    stage.create(SECRETS, secret("t"))
    stage.patch(f"{ACCOUNTS}/bot", {"secrets": [{"name": "t"}, {"name": "never-there"}]})
    stage.work()
    stage.delete(f"{SECRETS}/t")
    stage.work()
    assert stage.send("GET", f"{ACCOUNTS}/bot").body["secrets"] == [{"name": "never-there"}]


def test_other_secrets_are_unchanged(stage: WorkedStage) -> None:
    stage.create(SECRETS, {**secret("t", "absent"), "type": "Opaque"})
    stage.work()
    assert stage.written() == []

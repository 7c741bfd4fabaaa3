from __future__ import annotations

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.serviceaccount.controller import SERVICE_ACCOUNTS, build
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

ACCOUNT = "/api/v1/namespaces/a/serviceaccounts/default"


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), NoOptions())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.work()
    return stage


def test_a_new_namespace_gets_its_service_account(stage: WorkedStage) -> None:
    stage.namespace("b")
    stage.work()
    assert stage.written() == [("ADDED", "a/default"), ("ADDED", "b/default")]
    account = stage.send("GET", ACCOUNT).body
    assert sorted(account) == ["apiVersion", "kind", "metadata"]


def test_existing_namespaces_get_a_service_account() -> None:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.start()
    stage.work()
    assert stage.names(SERVICE_ACCOUNTS) == ["default"]


def test_a_deleted_service_account_is_recreated(stage: WorkedStage) -> None:
    before = stage.send("GET", ACCOUNT).body["metadata"]["uid"]
    stage.delete(ACCOUNT)
    stage.work()
    assert stage.send("GET", ACCOUNT).body["metadata"]["uid"] != before


def test_fields_of_a_service_account_are_kept(stage: WorkedStage) -> None:
    stage.patch(ACCOUNT, {"secrets": [{"name": "mine"}], "metadata": {"labels": {"mine": "too"}}})
    stage.work()
    assert stage.send("GET", ACCOUNT).body["secrets"] == [{"name": "mine"}]
    assert len(stage.written()) == 1


def test_existing_service_account_is_accepted(stage: WorkedStage) -> None:
    stage.delete(ACCOUNT)
    stage.hear()
    stage.create("/api/v1/namespaces/a/serviceaccounts", {"metadata": {"name": "default"}})
    stage.work()
    assert len(stage.written()) == 1

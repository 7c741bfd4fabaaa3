from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.authentication.legacy_claims import ACCOUNT_NAME, INVALID_SINCE, LAST_USED, TYPE
from ctrlmgr.controllers.legacy_serviceaccount_token_cleaner import Options
from ctrlmgr.controllers.legacy_serviceaccount_token_cleaner.controller import build
from ctrlmgr.controllers.legacy_serviceaccount_token_cleaner.decide import day
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

SECRETS = "/api/v1/namespaces/a/secrets"
ACCOUNT = "/api/v1/namespaces/a/serviceaccounts/bot"
TRACKING = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
DAY = 24 * 3600


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), Options(legacy_service_account_token_clean_up_period=10.0 * DAY))


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("kube-system")
    stage.namespace("a")
    stage.create(ACCOUNT.rpartition("/")[0], {"metadata": {"name": "bot"}, "secrets": [{"name": "t"}]})
    return stage


def hold(stage: WorkedStage, name: str = "t", **labels: str) -> None:
    metadata: dict[str, Any] = {"name": name, "annotations": {ACCOUNT_NAME: "bot"}, "labels": labels}
    stage.create(SECRETS, {"metadata": metadata, "type": TYPE})
    stage.work()


def labels(stage: WorkedStage, name: str = "t") -> dict[str, str] | None:
    answer = stage.send("GET", f"{SECRETS}/{name}")
    return None if answer.code == 404 else dict(answer.body["metadata"].get("labels") or {})


def days(stage: WorkedStage, count: int) -> None:
    for _ in range(count):
        stage.pass_by(DAY)


def test_an_unused_token_is_invalidated_and_then_removed(stage: WorkedStage) -> None:
    hold(stage)
    days(stage, 9)
    assert labels(stage) == {}
    days(stage, 3)
    assert list(labels(stage) or ()) == [INVALID_SINCE]
    days(stage, 8)
    assert labels(stage) is not None
    days(stage, 4)
    assert labels(stage) is None


def test_the_start_of_tracking_is_recorded(stage: WorkedStage) -> None:
    stage.work()
    assert stage.send("GET", TRACKING).body["data"] == {"since": day(stage.clock.now())}


def test_a_used_token_is_kept(stage: WorkedStage) -> None:
    hold(stage)
    for _ in range(30):
        stage.patch(f"{SECRETS}/t", {"metadata": {"labels": {LAST_USED: day(stage.clock.now())}}})
        days(stage, 1)
    assert INVALID_SINCE not in (labels(stage) or {})


@pytest.mark.parametrize("used", ["yesterday", "2026-13-01"])
def test_a_token_with_an_unreadable_use_is_kept(stage: WorkedStage, used: str) -> None:
    hold(stage, **{LAST_USED: used})
    days(stage, 30)
    assert labels(stage) == {LAST_USED: used}


def test_a_manually_created_token_is_kept(stage: WorkedStage) -> None:
    hold(stage, "by-hand")
    days(stage, 30)
    assert labels(stage, "by-hand") == {}


def test_a_mounted_token_is_kept(stage: WorkedStage) -> None:
    volume = {"name": "v", "secret": {"secretName": "t"}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "p"}, "spec": spec})
    hold(stage)
    days(stage, 30)
    assert labels(stage) == {}

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


def test_what_has_gone_out_of_use_is_invalidated_and_then_removed(stage: WorkedStage) -> None:
    hold(stage)
    days(stage, 9)
    assert labels(stage) == {}
    days(stage, 3)
    assert list(labels(stage) or ()) == [INVALID_SINCE]
    days(stage, 8)
    assert labels(stage) is not None
    days(stage, 4)
    assert labels(stage) is None


def test_since_when_use_is_noted_is_noted(stage: WorkedStage) -> None:
    stage.work()
    assert stage.send("GET", TRACKING).body["data"] == {"since": day(stage.clock.now())}


def test_one_that_is_used_stays(stage: WorkedStage) -> None:
    hold(stage)
    for _ in range(30):
        stage.patch(f"{SECRETS}/t", {"metadata": {"labels": {LAST_USED: day(stage.clock.now())}}})
        days(stage, 1)
    assert INVALID_SINCE not in (labels(stage) or {})


@pytest.mark.parametrize("used", ["yesterday", "2026-13-01"])
def test_one_whose_use_cannot_be_read_stays(stage: WorkedStage, used: str) -> None:
    hold(stage, **{LAST_USED: used})
    days(stage, 30)
    assert labels(stage) == {LAST_USED: used}


def test_one_that_was_made_by_hand_stays(stage: WorkedStage) -> None:
    hold(stage, "by-hand")
    days(stage, 30)
    assert labels(stage, "by-hand") == {}


def test_one_that_a_pod_mounts_stays(stage: WorkedStage) -> None:
    volume = {"name": "v", "secret": {"secretName": "t"}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "p"}, "spec": spec})
    hold(stage)
    days(stage, 30)
    assert labels(stage) == {}

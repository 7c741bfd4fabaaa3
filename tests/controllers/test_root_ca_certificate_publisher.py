from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.root_ca_certificate_publisher.controller import DESCRIPTION, build
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

MAP = "/api/v1/namespaces/a/configmaps/kube-root-ca.crt"
AUTHORITY = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage, root_ca=AUTHORITY), NoOptions())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.work()
    return stage


def published(stage: WorkedStage) -> dict[str, Any]:
    found: dict[str, Any] = stage.send("GET", MAP).body
    return found


def test_a_namespace_gets_the_servers_certificate(stage: WorkedStage) -> None:
    config_map = published(stage)
    assert config_map["data"] == {"ca.crt": AUTHORITY}
    assert config_map["metadata"]["annotations"] == {
        "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using "
        "internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed "
        "across distributions of Kubernetes clusters."
    }
    assert stage.written() == [("ADDED", "a/kube-root-ca.crt")]


def test_a_deleted_config_map_is_recreated(stage: WorkedStage) -> None:
    stage.delete(MAP)
    stage.work()
    assert published(stage)["data"] == {"ca.crt": AUTHORITY}


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"ca.crt": "theirs"}},
        {"data": {"more": "than that"}},
        {"data": None},
        {"metadata": {"annotations": None}},
        {"metadata": {"annotations": {DESCRIPTION: ""}}},
    ],
)
def test_a_changed_config_map_is_restored(stage: WorkedStage, change: dict[str, Any]) -> None:
    stage.patch(MAP, change)
    stage.work()
    config_map = published(stage)
    assert config_map["data"] == {"ca.crt": AUTHORITY}
    assert config_map["metadata"]["annotations"][DESCRIPTION].startswith("Contains a CA bundle")


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"annotations": {DESCRIPTION: "in other words", "mine": "too"}}},
        {"metadata": {"labels": {"mine": "too"}}},
    ],
)
def test_additions_of_clients_are_kept(stage: WorkedStage, change: dict[str, Any]) -> None:
    changed = stage.patch(MAP, change).body
    stage.work()
    assert published(stage) == changed


def test_the_certificate_of_a_new_authority_replaces_the_old_one(stage: WorkedStage) -> None:
    stage.patch(MAP, {"data": {"ca.crt": "the authority before"}})
    stage.start()
    stage.work()
    assert published(stage)["data"] == {"ca.crt": AUTHORITY}


def test_concurrent_write_is_corrected(stage: WorkedStage) -> None:
    stage.delete(MAP)
    stage.hear()
    stage.create("/api/v1/namespaces/a/configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "?"}})
    assert stage.controller.process_next(timeout=0)
    stage.hear()
    stage.pass_by(1)
    assert published(stage)["data"] == {"ca.crt": AUTHORITY}

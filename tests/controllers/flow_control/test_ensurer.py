"""Tests that the default FlowSchemas and priority levels are maintained as Kubernetes' `ensurer` maintains them."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.flow_control.ensurer import FLOW_SCHEMA, LEVEL, ensured_objects
from ctrlmgr.controllers.flow_control.producer import ConfigurationProducer, new_configuration_producer
from ctrlmgr.kinds.flowcontrol.flow_resources import FLOW_SCHEMAS, LEVELS
from ctrlmgr.kinds.flowcontrol.suggested_configuration import (
    AUTO_UPDATE,
    BOOTSTRAP_LEVELS,
    BOOTSTRAP_SCHEMAS,
    bootstrap_object,
)
from ctrlmgr.manager import Controller
from tests.controllers.customresourcedefinitions.defined import EverythingStage
from tests.controllers.worked_stage import MERGE

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMA_PATH, LEVEL_PATH = f"{GROUP}/flowschemas", f"{GROUP}/prioritylevelconfigurations"


class Stage(EverythingStage):
    def made(self) -> Controller:
        self.producer = ConfigurationProducer(self.informers)
        client = self.apiserver_client
        return new_configuration_producer(self.producer, client, self.log, clock=self.clock, random=self.random)

    def change(self, path: str, **fields: Any) -> None:
        assert self.send("PATCH", path, fields, media_type=MERGE).code == 200

    def found(self, path: str) -> Any:
        return self.send("GET", path).body

    def a_minute_later(self) -> None:
        self.pass_by(60)


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.work()
    return stage


def test_a_new_cluster_has_the_default_objects_of_kubernetes(stage: Stage) -> None:
    assert stage.producer.has_synced()
    assert stage.names(FLOW_SCHEMAS) == sorted(BOOTSTRAP_SCHEMAS)
    assert stage.names(LEVELS) == sorted(BOOTSTRAP_LEVELS)
    assert (len(BOOTSTRAP_SCHEMAS), len(BOOTSTRAP_LEVELS)) == (11, 8)
    for paths, specs in ((SCHEMA_PATH, BOOTSTRAP_SCHEMAS), (LEVEL_PATH, BOOTSTRAP_LEVELS)):
        for name, spec in specs.items():
            fields = stage.found(f"{paths}/{name}")
            assert fields["spec"] == spec
            assert fields["metadata"]["annotations"] == {AUTO_UPDATE: "true"}
    head = stage.log.head().revision
    stage.a_minute_later()
    assert stage.log.head().revision == head, "nothing is written without a difference"


def test_a_deleted_object_is_recreated_within_a_minute(stage: Stage) -> None:
    for path in (f"{SCHEMA_PATH}/probes", f"{SCHEMA_PATH}/catch-all", f"{LEVEL_PATH}/system"):
        stage.delete(path)
    stage.work()
    assert "probes" not in stage.names(FLOW_SCHEMAS)
    stage.a_minute_later()
    assert stage.names(FLOW_SCHEMAS) == sorted(BOOTSTRAP_SCHEMAS)
    assert stage.names(LEVELS) == sorted(BOOTSTRAP_LEVELS)


@pytest.mark.parametrize(
    ("annotation", "is_kept"),
    [
        pytest.param("false", True, id="an administrator's"),
        pytest.param(None, True, id="a changed one without annotation"),
        pytest.param("maybe", True, id="a changed one whose annotation says nothing"),
        pytest.param("true", False, id="a changed one"),
        pytest.param("T", False, id="in another of Go's words"),
    ],
)
def test_suggested_objects_are_corrected_by_their_annotation(
    stage: Stage, annotation: str | None, is_kept: bool
) -> None:
    path = f"{SCHEMA_PATH}/service-accounts"
    stage.change(path, spec={"matchingPrecedence": 1234}, metadata={"annotations": {AUTO_UPDATE: annotation}})
    stage.a_minute_later()
    fields = stage.found(path)
    assert fields["spec"]["matchingPrecedence"] == (1234 if is_kept else 9000)
    wanted = annotation if annotation in ("T", "true") else "false"
    assert fields["metadata"]["annotations"][AUTO_UPDATE] == wanted


def test_an_unchanged_object_without_annotation_gets_it_again(stage: Stage) -> None:
    path = f"{LEVEL_PATH}/system"
    stage.change(path, metadata={"annotations": None})
    stage.a_minute_later()
    assert stage.found(path)["metadata"]["annotations"] == {AUTO_UPDATE: "true"}


def test_the_annotation_of_mandatory_objects_is_always_true(stage: Stage) -> None:
    stage.change(f"{SCHEMA_PATH}/exempt", metadata={"annotations": {AUTO_UPDATE: "false"}, "labels": {"kept": "yes"}})
    stage.a_minute_later()
    metadata = stage.found(f"{SCHEMA_PATH}/exempt")["metadata"]
    assert (metadata["annotations"], metadata["labels"]) == ({AUTO_UPDATE: "true"}, {"kept": "yes"})


def test_the_seats_of_exempt_requests_can_be_configured(stage: Stage) -> None:
    path = f"{LEVEL_PATH}/exempt"
    stage.change(path, spec={"exempt": {"lendablePercent": 1}})
    stage.a_minute_later()
    assert stage.found(path)["spec"]["exempt"] == {"nominalConcurrencyShares": 0, "lendablePercent": 1}
    stage.change(path, spec={"exempt": None})
    stage.a_minute_later()
    assert stage.found(path)["spec"] == BOOTSTRAP_LEVELS["exempt"]


def test_obsolete_objects_are_deleted_and_objects_of_users_are_kept(stage: Stage) -> None:
    for name, said in (("old", "true"), ("odd", "maybe"), ("own", "false")):
        fields = bootstrap_object("FlowSchema", name, BOOTSTRAP_SCHEMAS["global-default"])
        fields["metadata"]["annotations"] = {AUTO_UPDATE: said}
        stage.create(SCHEMA_PATH, fields)
    stage.a_minute_later()
    assert set(stage.names(FLOW_SCHEMAS)) == {*BOOTSTRAP_SCHEMAS, "odd", "own"}


def test_correct_objects_are_not_written(stage: Stage) -> None:
    for kind, resource in ((FLOW_SCHEMA, FLOW_SCHEMAS), (LEVEL, LEVELS)):
        objects = {name: stage.stored(resource, name) for name in stage.names(resource)}
        assert ensured_objects(kind, {name: obj for name, obj in objects.items() if obj is not None}) == ([], [], [])

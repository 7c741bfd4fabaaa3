from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import ATTACHMENTS
from ctrlmgr.controllers.simulated_csi_attacher.controller import build
from ctrlmgr.simulation.csi_objects import DRIVER
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

PATH = "/apis/storage.k8s.io/v1/volumeattachments"
FINALIZER = "external-attacher/csi-simulate-ctrlmgr-io"
NODE, PHRASE = "/api/v1/nodes/node-1", "simulate.ctrlmgr.io/node"


@pytest.fixture
def stage() -> WorkedStage:
    """A node, and a volume of the simulated driver."""
    found = WorkedStage(lambda stage: build(StageContext(stage), NoOptions()))
    found.create("/api/v1/nodes", {"metadata": {"name": "node-1"}})
    csi = {"driver": DRIVER, "volumeHandle": "v"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi}
    found.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    return found


def attach(stage: WorkedStage, attacher: str = DRIVER, volume: str = "v") -> None:
    spec = {"attacher": attacher, "nodeName": "node-1", "source": {"persistentVolumeName": volume}}
    stage.create(PATH, {"metadata": {"name": "x"}, "spec": spec})
    stage.work()


def status(stage: WorkedStage) -> dict[str, Any]:
    found: dict[str, Any] = stage.send("GET", f"{PATH}/x").body.get("status") or {}
    return found


def behave(stage: WorkedStage, phrase: str | None) -> None:
    stage.patch(NODE, {"metadata": {"annotations": {PHRASE: phrase}}})
    stage.work()


def test_a_volume_is_attached_at_once_and_held_by_finalizers(stage: WorkedStage) -> None:
    attach(stage)
    assert status(stage) == {"attached": True}
    for path in (f"{PATH}/x", "/api/v1/persistentvolumes/v"):
        assert FINALIZER in stage.send("GET", path).body["metadata"]["finalizers"]


def test_an_attachment_of_another_driver_is_ignored(stage: WorkedStage) -> None:
    attach(stage, "x.example.com")
    assert status(stage).get("attached") is not True
    assert stage.written() == []


def test_a_deleted_attachment_is_detached(stage: WorkedStage) -> None:
    attach(stage)
    stage.delete(f"{PATH}/x")
    stage.work()
    assert stage.names(ATTACHMENTS) == []


def test_a_slow_node_attaches_later(stage: WorkedStage) -> None:
    behave(stage, "slow attach 30s")
    attach(stage)
    stage.pass_by(29)
    assert status(stage).get("attached") is not True
    stage.pass_by(1.1)
    assert status(stage)["attached"] is True


def test_an_error_is_reported_until_the_node_is_healthy(stage: WorkedStage) -> None:
    behave(stage, "attach error")
    attach(stage)
    assert "attach error" in status(stage)["attachError"]["message"]
    behave(stage, None)
    assert status(stage) == {"attached": True}


def test_an_attachment_of_an_unknown_volume_is_an_error(stage: WorkedStage) -> None:
    attach(stage, volume="other")
    assert 'persistentvolume "other" not found' in status(stage)["attachError"]["message"]

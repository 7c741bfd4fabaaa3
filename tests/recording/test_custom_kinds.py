"""Tests of recordings with custom kinds that are created, changed and deleted, replayed with our
log and controllers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.format import Change, RecordingReader, RecordingWriter
from tests.controllers.customresourcedefinitions.defined import (
    DEFINITIONS,
    GROUP,
    NAME,
    DefinedStage,
    NamespaceStage,
    definition,
    version,
    widget,
)
from tests.controllers.worked_stage import MERGE, WorkedStage
from tests.recording.test_replayer import replay

NAMESPACE = "/api/v1/namespaces"
WIDGETS = f"/apis/{GROUP}/v1/namespaces"


class Recorded(NamespaceStage):
    """A cluster with the controllers of CustomResourceDefinitions and of namespaces, whose log can be recorded."""

    def in_process(self, do: Any) -> None:
        """Write a CustomResourceDefinition in a separate process, and run the controllers of that process."""
        other = DefinedStage.__new__(DefinedStage)
        other.__dict__.update(self.__dict__)
        WorkedStage.start(other)
        do(other)
        other.pass_by(1)
        self.work()

    def record(self, path: Path) -> Path:
        with RecordingWriter(path) as writer:
            for each in history(self.log, lambda obj: is_api_object(obj.resource)):
                writer.change(each.type, each.object, each.recorded_at)
            writer.checkpoint("the end", self.log.head().revision)
        return path


def _undefine(stage: DefinedStage) -> None:
    stage.send("DELETE", f"{DEFINITIONS}/{NAME}")
    stage.work()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Create a custom kind, change its schema, delete a namespace with custom objects, delete the kind, and create the
    kind again.
    """
    stage = Recorded()
    stage.define()
    for name in ("a", "b"):
        stage.create(f"{WIDGETS}/shop/widgets", widget(name, spec={"color": "red"}))
    stage.namespace("other")
    stage.create(f"{WIDGETS}/other/widgets", widget("c"))
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"shape": {"type": "string"}}}}}
    versions = [version(schema={"openAPIV3Schema": schema})]
    stage.in_process(lambda other: other.redefine({"spec": {"versions": versions}}))
    stage.send("PATCH", f"{WIDGETS}/shop/widgets/a", {"spec": {"shape": "round"}}, media_type=MERGE)
    stage.delete(f"{NAMESPACE}/other")
    stage.pass_by(10)
    assert stage.send("GET", f"{NAMESPACE}/other").code == 404
    stage.in_process(_undefine)
    assert stage.send("GET", f"{DEFINITIONS}/{NAME}").code == 404
    stage.define(definition())
    stage.create(f"{WIDGETS}/shop/widgets", widget("a", spec={"size": 7}))
    return stage.record(tmp_path / "widgets.jsonl.gz")


def test_a_recording_with_custom_kinds_replays_twice_to_the_same_hash(recording: Path) -> None:
    reports = []
    for _ in range(2):
        report, log = replay(recording)
        names = [obj.name for obj in log.snapshot(Resource(GROUP, "widgets")).objects]
        log.close()
        assert report.divergences == ()
        assert names == ["a"]
        reports.append(report)
    assert reports[0].hash == reports[1].hash
    assert reports[0].reconciles > 0


def test_the_namespace_controller_deletes_custom_objects_in_a_replay(recording: Path) -> None:
    _, log = replay(recording)
    deleted = [event for event in log.scan() if event.object.name == "c" and event.type.name == "DELETED"]
    assert [event.reconcile is not None for event in deleted] == [True]


def test_an_irregular_plural_is_read_from_its_definition(tmp_path: Path) -> None:
    stage = Recorded()
    stage.define(definition("mice", "Mouse"))
    mouse = {"apiVersion": f"{GROUP}/v1", "kind": "Mouse", "metadata": {"name": "m"}}
    stage.create(f"{WIDGETS}/shop/mice", mouse)
    path = stage.record(tmp_path / "mice.jsonl")
    changes = [each for each in RecordingReader(path) if isinstance(each, Change)]
    assert [str(each.object.resource) for each in changes if each.object.name == "m"] == [f"mice.{GROUP}"]

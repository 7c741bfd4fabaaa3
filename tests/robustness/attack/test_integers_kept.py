"""Tests of stored objects with integers at their limits: on the UI page, in recordings, and with controllers."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.importing import Importer
from ctrlmgr.testing.replays import Replayer
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.object_page import Objects
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from tests.recording.test_exports import export
from tests.recording.test_importing import Log, exported
from tests.robustness.attack.test_integers import KINDS, Cluster
from tests.robustness.attack.test_secrets import questions

MANY = 10
"""Pods."""

REFUSALS = ("Forbidden", "Invalid", "Conflict")
"""Errors that a controller may get for a template from which no pod can be created; any other error is a defect of the
controller.
"""


@pytest.fixture(scope="module")
def log() -> Log:
    """Return the log of a cluster in which an object of each kind had all tested values, one after the other."""
    cluster = Cluster()
    for name, kind in KINDS.items():
        assert cluster.change_through(kind, f"{name.lower()}-kept")
    log = cluster.stage.log
    assert isinstance(log, MemoryEventLog)
    return log


@pytest.fixture(scope="module")
def recording(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "log.jsonl"
    export(log, path)
    return path


@pytest.fixture(scope="module")
def url(recording: Path) -> str:
    """Return the URL of a database into which the recording was imported."""
    url = f"sqlite:///{recording.parent / 'log.db'}"
    with closing(open_log(url, clock=SystemClock(), random=Random(1), migrate=True)) as log:
        Importer(log).run(RecordingReader(recording))
    return url


def test_a_recording_keeps_large_numbers(log: Log, url: str) -> None:
    with closing(open_log(url, clock=SystemClock(), random=Random(1))) as other:
        assert exported(other) == exported(log)


def test_the_page_shows_each_number(log: Log, url: str) -> None:
    last = {(event.resource, event.key): event.revision for event in log.scan()}
    with closing(Reader(url)) as reader:
        for (resource, key), revision in last.items():
            for ask in questions(reader):
                assert msgspec.json.encode(ask(page_parameters(resource, key, revision)))
        for event in log.scan():
            for ask in (Objects(reader).object, Graphs(reader).change):
                assert msgspec.json.encode(ask(page_parameters(event.resource, event.key, event.revision)))


def page_parameters(resource: Resource, key: Key, revision: int) -> Parameters:
    """Return the requests that the UI page sends for an object at a revision."""
    place = {"resource": str(resource), "namespace": key.namespace, "name": key.name}
    moment = {"revision": str(revision), "at": str(revision)}
    return Parameters({name: [value] for name, value in {**place, **moment}.items()})


def test_controllers_finish_with_extreme_numbers(recording: Path, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines()
    (tmp_path / "few.jsonl").write_text("".join(f"{line}\n" for line in lines if not wants_many(json.loads(line))))
    with capture_logs() as told, Replayer(tmp_path) as replay:
        report = replay("few.jsonl", must_compare=False)
    assert report.reconciles > report.inputs / 10
    failures = {str(line.get("error", line)) for line in told if line["log_level"] == "error"}
    assert all(each.partition(":")[0] in REFUSALS for each in failures), failures


def wants_many(change: Any) -> bool:
    """Return whether controllers would have to create very many pods for an object."""
    spec = change["object"].get("spec", {})
    return any(spec.get(name, 0) > MANY for name in ("replicas", "parallelism", "completions", "minReplicas"))

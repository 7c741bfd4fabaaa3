"""Tests that no response of the UI page contains a value of a Secret, with random histories and all queries."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog import Author, EventLog, EventType, Proposal, open_log
from ctrlmgr.recording.capture.redaction import DEFAULT, Redaction
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.listing import Listing
from ctrlmgr.ui.object_page import Objects
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.tables_page import Tables
from ctrlmgr.ui.timeline import Timeline
from tests.cli.conftest import Run
from tests.cli.conftest import run as run  # the fixture

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NAMES = ("a", "password", "tls.key")


class SecretHistory:
    """The random history of a Secret; no response may contain a string in `values`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.values: set[str] = set()

    def _value(self) -> str:
        value = b64encode(self._random.randbytes(12)).decode()
        self.values.add(value)
        return value

    def state(self, uid: str) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "kind": "Secret",
            "apiVersion": "v1",
            "metadata": {"name": "s", "namespace": "n", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"},
        }
        for name in ("data", "stringData"):
            if self._random.random() < 0.7:
                fields[name] = {key: self._value() for key in NAMES if self._random.random() < 0.6}
        annotations = {}
        if self._random.random() < 0.5:
            annotations["note"] = "x"
        if self._random.random() < 0.5:
            annotations[LAST_APPLIED] = json.dumps({"data": {"password": self._value()}})
        if annotations or self._random.random() < 0.3:
            fields["metadata"]["annotations"] = annotations
        return fields

    def live(self, log: EventLog) -> None:
        revision = 0
        for step in range(12):
            kind = EventType.ADDED if revision == 0 else EventType.MODIFIED
            obj = Object.from_dict(self.state(f"u-{step if kind is EventType.ADDED else 0}"))
            revision = log.append([Proposal(kind, obj, revision)], author=Author("alice"))[0].revision
            if step == 7:
                log.append([Proposal(EventType.DELETED, obj, revision)], author=Author("alice"))
                revision = 0


def questions(reader: Reader) -> list[Any]:
    clock = SystemClock()
    timeline, tables, objects, graphs = (
        Timeline(reader, clock=clock),
        Tables(reader, clock=clock),
        Objects(reader),
        Graphs(reader),
    )
    return [
        timeline.picture,
        Listing(reader).events,
        tables.kinds,
        tables.objects,
        objects.object,
        objects.history,
        graphs.change,
    ]


@pytest.mark.parametrize("seed", range(12))
def test_no_response_of_the_page_contains_a_secrets_value(seed: int, tmp_path: Path) -> None:
    story = SecretHistory(Random(seed))
    url = f"sqlite:///{tmp_path / 'log.db'}"
    log = open_log(url, clock=SystemClock(), random=Random(seed), migrate=True)
    story.live(log)
    head = log.head().revision
    reader = Reader(url)
    answered = 0
    try:
        for question in questions(reader):
            for at in range(1, head + 1):
                given = {"resource": "secrets", "namespace": "n", "name": "s", "at": at, "revision": at, "before": at}
                try:
                    told = msgspec.json.encode(question(Parameters({name: [str(v)] for name, v in given.items()})))
                except CtrlmgrError as error:
                    told = str(error).encode()
                else:
                    answered += 1
                assert not [value for value in story.values if value.encode() in told], question
    finally:
        reader.close()
        log.close()
    assert answered > 4 * head


@pytest.mark.parametrize("seed", range(20))
def test_no_recording_contains_a_secrets_value(seed: int) -> None:
    story = SecretHistory(Random(seed))
    redaction = Redaction(DEFAULT)
    for revision in range(1, 20):
        written = redaction.applied(Object.from_dict(story.state("u")).at(revision)).wire()
        assert not [value for value in story.values if value.encode() in written]


def test_a_change_of_a_value_is_reported(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    log = open_log(url, clock=SystemClock(), random=Random(1), migrate=True)
    metadata = {"name": "s", "namespace": "n", "uid": "u"}
    revision = 0
    for value in ("YQ==", "Yg==", "Yg=="):
        obj = Object.from_dict({"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": {"p": value}})
        kind = EventType.MODIFIED if revision else EventType.ADDED
        revision = log.append([Proposal(kind, obj, revision)], author=Author("alice"))[0].revision
    reader = Reader(url)
    place = {"resource": ["secrets"], "namespace": ["n"], "name": ["s"]}
    changes = [each["changes"] for each in Objects(reader).history(Parameters(place))["changes"]]
    reader.close()
    log.close()
    assert changes == [[], [{"path": "data.p", "from": "(hidden)", "to": "(hidden)"}], []]


@pytest.mark.parametrize("seed", range(2))
def test_no_command_prints_a_secrets_value(seed: int, tmp_path: Path, run: Run) -> None:
    story = SecretHistory(Random(seed))
    url = f"sqlite:///{tmp_path / 'log.db'}"
    log = open_log(url, clock=SystemClock(), random=Random(seed), migrate=True)
    story.live(log)
    head = log.head().revision
    log.close()
    answered = 0
    for command in (
        ("history", "secret/s", "-n", "n"),
        *(("blame", "secret/s", "-n", "n", "--at", str(at)) for at in range(1, head + 1)),
        ("blame", "secret/s", "-n", "n", "--history"),
        *(("diff", "secret", "s", "-n", "n", "--from", str(at), "--to", str(head)) for at in range(1, head)),
        ("events", "--resource", "secrets"),
        ("why", "secret/s", "-n", "n"),
    ):
        for form in ((), ("-o", "json")):
            finished = run(*command, "--database", url, *form)
            assert "Traceback" not in finished.err
            answered += finished.code == 0
            told = finished.out + finished.err
            assert not [value for value in story.values if value in told], command
    assert answered > head

"""Tests of `ctrlmgr why` on an imported recording: the output and the page mark inferred causes, with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import yaml

from ctrlmgr.api.resource import ENDPOINTS, SERVICES
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.eventlog.opening import open_log
from ctrlmgr.inspection import causes
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.inferring.rule_application import Inferring
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.importing import Importer
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from tests.cli.conftest import Run

SMALL = Path(__file__).parents[2] / "recordings" / "small.jsonl.gz"
_MODIFIED = """
SELECT revision, namespace, name FROM history
WHERE resource = 'endpoints' AND type = 'MODIFIED' AND actor = 'kube-controller-manager' ORDER BY revision"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('imported') / 'small.db'}"
    log = open_log(url, clock=SystemClock(), random=Random(1), migrate=True)
    Importer(log).run(RecordingReader(SMALL))
    log.close()
    return url


def flips(database: Database) -> list[tuple[int, str, str, Inference]]:
    """Return the changes of Endpoints for which a change of a pod's readiness is an inferred cause."""
    inferring = Inferring(database)
    asked = [(*row, inferring.of(row[0])) for row in database.query(_MODIFIED).rows]
    return [each for each in asked if each[3] is not None and any("Ready" in one.reason for one in each[3].causes)]


def test_why_marks_an_inferred_cause_with_its_evidence(imported: str, run: Run) -> None:
    with open_database(imported) as database:
        revision, namespace, name, found = flips(database)[-1]
    place = ("why", "endpoints", name, "-n", namespace, "--at", str(revision), "--database", imported)
    tree = run(*place).out
    assert "inferred: by endpoints-controller, because the control plane writes the Endpoints of a Service" in tree
    assert tree.count("inferred: explains ") == len(found.causes)
    assert "reconcile of" not in tree
    document = json.loads(run(*place, "-o", "json").out)
    assert document["inferred"] == found.as_json()
    assert {each["revision"]: each["because"] for each in document["links"]} == dict(found.causes)
    assert document["actor"] == "kube-controller-manager"
    assert yaml.safe_load(run(*place, "-o", "yaml").out) == document


def test_most_changes_of_endpoints_have_an_inferred_cause(imported: str) -> None:
    with open_database(imported) as database:
        inferring = Inferring(database)
        asked = [inferring.of(row[0]) for row in database.query(_MODIFIED).rows]
    assert sum(1 for each in asked if each and each.causes) >= 0.9 * len(asked) > 20


def test_nothing_is_inferred_for_objects_outside_the_import(imported: str) -> None:
    log = open_log(imported, clock=SystemClock(), random=Random(1))
    service = log.snapshot(SERVICES).objects[0]
    told = log.get(ENDPOINTS, service.key)
    assert told is not None
    gone = [Proposal(EventType.DELETED, each, each.revision) for each in (service, told)]
    *_, event = log.append(gone, author=Author("recording"))
    log.close()
    with open_database(imported) as database:
        assert Inferring(database).of(event.revision) is None  # with the rights of an import, it would be allowed


def test_the_page_marks_inferred_causes(imported: str) -> None:
    reader = Reader(imported)
    try:
        revision, _, _, found = reader.ask(lambda database: flips(database)[-1])
        graph = Graphs(reader).change(Parameters({"revision": [str(revision)]}))["graph"]
        tree = reader.ask(lambda database: causes.why(database, revision))
    finally:
        reader.close()
    (node,) = [each for each in graph["nodes"] if each["id"] == f"i{revision}"]
    assert (node["inferred"], node["controller"]) == (True, "endpoints-controller")
    assert {each["revision"]: each["reason"] for each in node["because"]} == dict(found.causes)
    assert [f"i{revision}", f"e{revision}"] in [list(edge) for edge in graph["edges"]]
    for cause in tree.links:
        assert [f"e{cause.revision}", f"i{revision}"] in [list(edge) for edge in graph["edges"]]

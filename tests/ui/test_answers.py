"""Tests of the UI page's data on both types of database: the data is equal, and consistent with queries of the log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import Expired, NotFound
from ctrlmgr.eventlog import open_log
from ctrlmgr.inspection import causes, historical_state
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.inspection.field_authors import blame
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.postgres import PostgresCluster
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.listing import QUIET, Listing
from ctrlmgr.ui.object_page import Objects
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.process_page import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.tables_page import Tables
from ctrlmgr.ui.timeline import Timeline
from tests.ui import demo, story

CLOCK = FakeClock(demo.START)
WEB = {"resource": "endpoints", "namespace": "shop", "name": "web"}


@pytest.fixture(scope="module")
def postgres_demo(cluster: PostgresCluster) -> Iterator[str]:
    with cluster.database("ui_demo", template="migrated") as url:
        yield story.write(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest) -> str:
    name = "demo_url" if request.param == "sqlite" else "postgres_demo"
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture
def log(url: str) -> Iterator[Database]:
    with open_database(url) as opened:
        yield opened


@pytest.fixture
def reader(url: str) -> Iterator[Reader]:
    made = Reader(url)
    yield made
    made.close()


def given(**query: Any) -> Parameters:
    return Parameters({name: [str(value)] for name, value in query.items()})


def count(log: Database, statement: str) -> int:
    return int(log.query(statement).rows[0][0])


@pytest.mark.parametrize("axis", ["time", "revision"])
@pytest.mark.parametrize("by", ["actor", "resource"])
def test_a_timeline_counts_every_event_once(reader: Reader, log: Database, axis: str, by: str) -> None:
    picture = Timeline(reader, clock=CLOCK).picture(given(axis=axis, by=by, bars=50))
    bars = picture["items"]
    assert sum(sum(bar["counts"]) for bar in bars) == pytest.approx(picture["head"])
    assert [bar["from"] for bar in bars] == sorted(bar["from"] for bar in bars)
    column = "actor" if by == "actor" else "resource"
    for place, name in enumerate(picture["series"]):
        wanted = log.query(f"SELECT count(*) FROM timeline WHERE {column} = :name", {"name": name}).rows[0][0]
        assert sum(bar["counts"][place] for bar in bars) == pytest.approx(wanted)


def test_a_range_of_a_timeline_is_counted(reader: Reader, log: Database) -> None:
    picture = Timeline(reader, clock=CLOCK).picture(given(**{"from": 101, "to": 200, "axis": "revision", "bars": 10}))
    assert [(bar["from"], bar["to"]) for bar in picture["items"]] == [(n, n + 9) for n in range(101, 200, 10)]
    assert all(sum(bar["counts"]) == 10 for bar in picture["items"])


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"namespace": "shop"}, "namespace = 'shop'"),
        ({"kind": "pods"}, "resource = 'pods'"),
        ({"kind": "events"}, "resource = 'events'"),
        ({"actor": "system:kube-scheduler"}, "actor = 'system:kube-scheduler'"),
        ({"verb": "DELETED"}, "type = 'DELETED'"),
        ({"q": "web"}, "name LIKE '%web%'"),
        ({"q": "we_"}, "name LIKE '%we!_%' ESCAPE '!'"),
        ({"namespace": "shop", "kind": "pods", "verb": "ADDED", "q": "web"},
            "namespace = 'shop' AND resource = 'pods' AND type = 'ADDED' AND name LIKE '%web%'"),
        ({}, "true"),
    ],
)  # fmt: skip
def test_events_are_returned_as_requested(reader: Reader, log: Database, asked: dict[str, str], where: str) -> None:
    """All pages of the list together equal the SQL view `timeline`; events of hidden kinds are only counted."""
    quiet = f"resource IN {QUIET}"
    hides = asked.get("kind") not in QUIET
    left = f"({where}) AND NOT {quiet}" if hides else where
    expected = [row[0] for row in log.query(f"SELECT revision FROM timeline WHERE {left} ORDER BY revision DESC").rows]
    found: list[int] = []
    hidden, at = 0, reader.head(log)
    while at:
        page = Listing(reader).events(given(at=at, limit=7, **asked))
        found += [event["revision"] for event in page["events"]]
        hidden += page["hidden"]
        at = page["looked"] - 1
    assert found == expected
    assert hidden == (count(log, f"SELECT count(*) FROM timeline WHERE ({where}) AND {quiet}") if hides else 0)


def test_infrequent_kinds_are_shown_on_request(reader: Reader, log: Database) -> None:
    page = Listing(reader).events(given(limit=200, quiet=1))
    assert (page["hidden"], len(page["events"])) == (0, 200)
    assert [each["revision"] for each in page["events"]][:3] == [page["at"], page["at"] - 1, page["at"] - 2]


def test_objects_at_a_revision_equal_the_output_of_get(reader: Reader, log: Database) -> None:
    tables = Tables(reader, clock=CLOCK)
    for at in (30, 200, 400):
        known = {each["resource"]: each["namespaces"] for each in tables.kinds(given(at=at))["kinds"]}
        found = tables.objects(given(resource="pods", at=at, limit=500))
        wanted = historical_state.objects(log, Resource("", "pods"), at=at)
        assert [(row["namespace"], row["name"], row["revision"]) for row in found["rows"]] == [
            (obj.namespace, obj.name, obj.revision) for obj in wanted
        ]
        assert found["total"] == len(wanted) == sum(known["pods"].values())


def test_pages_continue_at_the_end_of_the_previous_one(reader: Reader) -> None:
    tables = Tables(reader, clock=CLOCK)
    whole = tables.objects(given(resource="pods", limit=500))
    names: list[str] = []
    after = ""
    while True:
        found = tables.objects(given(resource="pods", limit=4, after=after))
        names += [row["name"] for row in found["rows"]]
        after = found["next"]
        if not after:
            break
    assert names == [row["name"] for row in whole["rows"]]


def test_a_filter_is_matched_literally(reader: Reader) -> None:
    tables = Tables(reader, clock=CLOCK)
    assert tables.objects(given(resource="services", q="shop/c"))["total"] == 2
    assert tables.objects(given(resource="services", q="%"))["total"] == 0
    assert tables.objects(given(resource="services", q="c_rt"))["total"] == 0
    assert tables.objects(given(resource="services", q="'!"))["total"] == 0


def test_an_object_has_the_lines_and_the_blame_of_the_log(reader: Reader, log: Database) -> None:
    found = Objects(reader).object(given(**WEB, at=300))
    changes = historical_state.history(log, Resource("", "endpoints"), Key("shop", "web"), until=300)
    assert found["revision"] == changes[-1].revision
    assert {line[2] for line in found["lines"] if len(line) > 2} == {each.change.revision for each in blame(changes)}
    told = Objects(reader).history(given(**WEB, before=301, limit=2))
    assert [each["revision"] for each in told["changes"]] == [each.revision for each in changes[:-3:-1]]
    assert told["more"]
    with pytest.raises(NotFound):
        Objects(reader).object(given(**{**WEB, "name": "nobody"}))


def revisions(node: causes.Node) -> set[int]:
    return {node.revision}.union(*map(revisions, node.links))


def test_graphs_equal_the_tree_of_why(reader: Reader, log: Database) -> None:
    written = log.query("SELECT revision FROM causes WHERE resource = 'endpoints' ORDER BY revision").rows
    for (revision,) in written[::7]:
        graph = Graphs(reader).change(given(revision=revision))["graph"]
        events = [node for node in graph["nodes"] if node["id"].startswith("e")]
        drawn = {each["revision"] for node in events for each in [node, *node["alike"]]}
        assert drawn == revisions(causes.why(log, revision)) | revisions(causes.effects(log, revision))
        ids = {node["id"] for node in graph["nodes"]}
        assert all(start in ids and end in ids for start, end in graph["edges"])
        assert not any(node["hidden"] for node in graph["nodes"])
    with pytest.raises(NotFound):
        Graphs(reader).change(given(revision=10_000))


def test_leaders_equal_the_view(reader: Reader, log: Database) -> None:
    told = Process(reader, [], clock=CLOCK).leaders(given())["terms"]
    columns = "term, holder, first_revision, last_revision, writes"
    wanted = log.query(f"SELECT {columns} FROM leaders ORDER BY first_revision DESC").rows
    assert [(t["term"], t["holder"], t["firstRevision"], t["lastRevision"], t["writes"]) for t in told] == wanted


def test_nothing_after_the_served_moment_is_returned(url: str) -> None:
    reader = Reader(url, until=250)
    tables = Tables(reader, clock=CLOCK)
    try:
        assert Process(reader, [], clock=CLOCK).status(given())["head"] == 250
        assert Timeline(reader, clock=CLOCK).picture(given())["head"] == 250
        assert Listing(reader).events(given(at=400, quiet=1))["events"][0]["revision"] == 250
        assert tables.kinds(given(at=400)) == tables.kinds(given(at=250))
        assert tables.objects(given(resource="pods", at=400)) == tables.objects(given(resource="pods", at=250))
        assert Objects(reader).object(given(**WEB, at=400))["at"] == 250
        assert max(each["revision"] for each in Objects(reader).history(given(**WEB))["changes"]) <= 250
        assert [term["term"] for term in Process(reader, [], clock=CLOCK).leaders(given())["terms"]] == [1]
        with pytest.raises(NotFound):
            Graphs(reader).change(given(revision=251))
        nodes = Graphs(reader).change(given(revision=249))["graph"]["nodes"]
        assert all(node.get("revision", 0) <= 250 for node in nodes)
    finally:
        reader.close()


def test_compacted_revisions_are_refused_or_marked(demo_url: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    shutil.copy(demo_url.removeprefix("sqlite:///"), tmp_path / "log.db")
    with_log = open_log(url, clock=CLOCK, random=Random(1))
    reader = Reader(url)
    try:
        timeline = Timeline(reader, clock=CLOCK)
        before = timeline.picture(given())
        with_log.compact(with_log.head().revision)
        after = timeline.picture(given())
        assert sum_of(after["items"]) < sum_of(before["items"])
        with pytest.raises(Expired):
            Tables(reader, clock=CLOCK).objects(given(resource="pods", at=200))
        endpoints = Objects(reader).history(given(**WEB))["changes"]
        assert [each["lost"] for each in endpoints] == [True]
        written = endpoints[0]["revision"]
        nodes = Graphs(reader).change(given(revision=written))["graph"]["nodes"]
        lost = f"SELECT cause_revision FROM causes WHERE revision = {written} AND cause_time IS NULL"
        gone = {f"e{row[0]}" for row in reader.ask(lambda database: database.query(lost).rows)}
        assert gone
        assert {node["id"] for node in nodes if node.get("compacted")} == gone
    finally:
        reader.close()
        with_log.close()


def sum_of(items: Sequence[dict[str, Any]]) -> float:
    return sum(sum(bar["counts"]) for bar in items)

"""Tests of users with few permissions: no response of the UI page reveals objects that a user may not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Verdict
from ctrlmgr.errors import ApiError, Forbidden, NotFound
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.inspection.audited_requests import FILE, Row, Store
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.testing import FakeClock
from ctrlmgr.ui.causes_page import Graphs
from ctrlmgr.ui.cluster_page import Cluster
from ctrlmgr.ui.listing import Listing
from ctrlmgr.ui.object_page import Objects
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.process_page import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.requests_page import Requests
from ctrlmgr.ui.rollouts_page import Rollouts
from ctrlmgr.ui.tables_page import Tables
from ctrlmgr.ui.timeline import Timeline
from ctrlmgr.ui.visibility import Visibility
from tests.ui import demo

CLOCK = FakeClock(demo.START)
SECRETS = Resource("", "secrets")
Right = Callable[[Attributes], bool]


def in_shop(asked: Attributes) -> bool:
    return asked.namespace == "shop" and asked.verb in ("get", "list") and asked.resource != "secrets"


def named(asked: Attributes) -> bool:
    return (asked.verb, asked.resource, asked.namespace, asked.name) == ("get", "services", "shop", "web")


def nothing(asked: Attributes) -> bool:
    return False


def given(right: Right, **query: Any) -> Parameters:
    def decide(user: User, asked: Attributes) -> Verdict:
        return ALLOWED if right(asked) else NO_OPINION

    return Parameters({name: [str(value)] for name, value in query.items()}, Visibility(User("ann"), decide))


@pytest.fixture
def log(demo_url: str) -> Iterator[Database]:
    with open_database(demo_url) as opened:
        yield opened


@pytest.fixture
def reader(demo_url: str) -> Iterator[Reader]:
    made = Reader(demo_url)
    yield made
    made.close()


def questions(reader: Reader) -> dict[str, Callable[[Parameters], dict[str, Any]]]:
    timeline, tables, objects = Timeline(reader, clock=CLOCK), Tables(reader, clock=CLOCK), Objects(reader)
    process = Process(reader, [], clock=CLOCK)
    return {
        "status": process.status,
        "leaders": process.leaders,
        "health": process.health,
        "timeline": timeline.picture,
        "events": Listing(reader).events,
        "kinds": tables.kinds,
        "objects": tables.objects,
        "object": objects.object,
        "history": objects.history,
        "cluster": Cluster(reader).cluster,
        "change": Graphs(reader).change,
    }


def places(log: Database) -> list[tuple[Resource, Key, int]]:
    """Return all objects that ever existed in the log, each with the revision of its first event."""
    rows = log.query(
        "SELECT o.resource, o.namespace, o.name, min(e.revision) FROM object AS o JOIN event AS e ON e.object_id = o.id"
        " GROUP BY o.resource, o.namespace, o.name"
    ).rows
    return [(Resource.parse(kind), Key(namespace, name), first) for kind, namespace, name, first in rows]


def told_by(log: Database, visibility: Visibility) -> str:
    """Return a text with all strings in the objects that a user may read, and the authors of these objects."""
    rows = log.query(
        "SELECT o.resource, o.namespace, o.name, e.body, e.actor, r.key FROM event AS e"
        " JOIN object AS o ON o.id = e.object_id LEFT JOIN reconcile AS r ON r.id = e.reconcile_id"
    ).rows
    return " ".join(f"{row[2:]}" for row in rows if visibility.sees(Resource.parse(row[0]), Key(row[1], row[2])))


def words(told: Any) -> Iterator[str]:
    """Yield every string in a response, including the keys of maps."""
    if isinstance(told, dict):
        for key, value in told.items():
            yield str(key)
            yield from words(value)
    elif isinstance(told, list):
        for value in told:
            yield from words(value)
    elif isinstance(told, str):
        yield told


@pytest.mark.parametrize("right", [in_shop, named, nothing])
def test_no_view_shows_invisible_objects(reader: Reader, log: Database, right: Right) -> None:
    all_places = places(log)
    visibility = given(right).visibility
    foreign = [each for each in all_places if not visibility.sees(each[0], each[1])]
    seen = told_by(log, visibility)
    secret = {key.name for _, key, _ in foreign if key.name not in seen and len(key.name) > 5}
    assert "ledger-db" in secret
    answers = refusals = 0
    for resource, key, first in [*foreign[::6], *[each for each in all_places if each not in foreign][::5]]:
        for name, question in questions(reader).items():
            at = first if name != "kinds" else 60
            place = {"resource": resource, "namespace": key.namespace, "name": key.name}
            try:
                told = question(given(right, **place, at=at, revision=first, limit=50))
            except Forbidden:
                refusals += 1
                continue
            except ApiError:
                continue  # it was not there at that moment
            answers += 1
            for word in words(json.loads(msgspec.json.encode(told))):
                assert word not in secret, (name, word)
                assert "payments" not in word, (name, word)
    assert answers > 20
    assert refusals > 20


def test_a_namespace_reader_sees_its_changes(reader: Reader) -> None:
    asked = questions(reader)
    kinds = asked["kinds"](given(in_shop))["kinds"]
    assert {name for kind in kinds for name in kind["namespaces"]} == {"shop"}
    table = asked["objects"](given(in_shop, resource="services"))
    assert {row["namespace"] for row in table["rows"]} == {"shop"}
    assert table["total"] == len(table["rows"])
    assert asked["objects"](given(in_shop, resource="services", namespace="shop"))["rows"] == table["rows"]
    events = asked["events"](given(in_shop, limit=30))["events"]
    assert len(events) == 30
    assert {event["namespace"] for event in events} <= {"shop", ""}
    picture = asked["timeline"](given(in_shop, by="resource"))
    assert "services" in picture["series"]
    assert "leases.coordination.k8s.io" not in picture["series"]
    cluster = asked["cluster"](given(lambda each: in_shop(each) or each.resource == "nodes"))
    assert {pod["namespace"] for node in cluster["nodes"] for pod in node["pods"]} == {"shop"}
    assert asked["cluster"](given(in_shop))["nodes"] == []


def test_rights_to_a_name_show_only_that_object(reader: Reader) -> None:
    asked = questions(reader)
    place = {"resource": "services", "namespace": "shop"}
    assert asked["object"](given(named, **place, name="web"))["kind"] == "Service"
    assert asked["history"](given(named, **place, name="web"))["changes"]
    with pytest.raises(Forbidden, match=r'services "cart" is forbidden: User "ann" cannot get resource "services"'):
        asked["object"](given(named, **place, name="cart"))
    with pytest.raises(Forbidden, match=r'cannot list resource "services" in API group "" in the namespace "shop"'):
        asked["objects"](given(named, **place))


def test_an_invisible_change_is_answered_like_a_missing_one(reader: Reader) -> None:
    change = questions(reader)["change"]
    assert change(given(lambda asked: True, revision=3))["revision"] == 3
    for revision in (3, 1_000_000):
        words = f"there is no event at revision {revision}; it may have been compacted"
        with pytest.raises(NotFound, match=words):
            change(given(lambda asked: False, revision=revision))


def test_a_graph_passes_through_invisible_objects_without_showing_them(reader: Reader, log: Database) -> None:
    def endpoints(asked: Attributes) -> bool:
        return asked.resource == "endpoints"

    written = "SELECT max(e.revision) FROM event AS e JOIN object AS o ON o.id = e.object_id WHERE {where}"
    where = "o.resource = 'endpoints' AND o.name = 'web' AND e.reconcile_id <> 0"
    revision = log.query(written.format(where=where)).rows[0][0]
    nodes = questions(reader)["change"](given(endpoints, revision=revision))["graph"]["nodes"]
    unseen = [node for node in nodes if node.get("forbidden")]
    assert unseen
    assert all(set(node) == {"id", "revision", "forbidden", "hidden", "alike"} for node in unseen)
    assert not any(node["alike"] for node in unseen)
    runs = [node for node in nodes if node["id"].startswith("r")]
    assert any(run["key"] == run["message"] == "" for run in runs)


@pytest.fixture
def audit_folder(tmp_path: Path) -> Path:
    store = Store(tmp_path / FILE, 3600.0, clock=CLOCK)
    at = CLOCK.now()
    abouts: list[tuple[str | None, str | None, str, str, str]] = [
        ("", "services", "", "shop", "web"),
        ("", "secrets", "", "shop", "s"),
        ("apps", "deployments", "scale", "shop", "w"),
        (None, None, "", "", ""),
    ]
    answer = ("/metrics?x=1", 200, "", "", None, None, "", "", None)
    rows = [Row(*(str(number), at, 0.1, "bob", None, "get", *about, *answer)) for number, about in enumerate(abouts)]
    assert store.write(rows)
    store.close()
    return tmp_path


@pytest.mark.parametrize(
    ("right", "seen"),
    [
        (nothing, set()),
        (named, {"services"}),
        (in_shop, {"services", "deployments.apps/scale"}),
        (lambda asked: asked.path == "/metrics", {"/metrics?x=1"}),
    ],
)
def test_requests_are_shown_if_their_objects_are_readable(audit_folder: Path, right: Right, seen: set[str]) -> None:
    assert {each["what"] for each in Requests(audit_folder).newest(given(right))["requests"]} == seen


DEPLOYMENTS = Resource("apps", "deployments")
LEASES = Resource("coordination.k8s.io", "leases")


def written(kind: str, version: str, name: str, namespace: str, said: str) -> Object:
    """Return an object of any kind that contains a string."""
    about = {"name": name, "namespace": namespace, "uid": said, "annotations": {"said": said}}
    template = {"metadata": {"labels": {"said": said}}, "spec": {"containers": []}}
    spec = {"selector": {}, "template": template} if kind == "Deployment" else {}
    return Object.from_dict({"kind": kind, "apiVersion": version, "metadata": about, "spec": spec})


def tenants(said: str) -> list[Object]:
    """Return a namespace and the objects in this namespace."""
    kinds = (("Pod", "v1"), ("Secret", "v1"), ("Deployment", "apps/v1"), ("Lease", "coordination.k8s.io/v1"))
    names = (said, "common")
    space = written("Namespace", "v1", "shop", "", said)
    return [space, *(written(kind, version, name, "shop", said) for kind, version in kinds for name in names)]


@pytest.fixture
def anew(tmp_path: Path) -> Iterator[Reader]:
    """A log in which a namespace with its objects was deleted, at revision 18, and then created again."""
    url = f"sqlite:///{tmp_path}/log.db"
    log = open_log(url, clock=FakeClock(), random=Random(1), migrate=True)
    audit_folder: list[tuple[Object, int]] = []
    for obj in tenants("predecessor"):
        [event] = log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("predecessors-user"))
        audit_folder.append((obj, event.revision))
    for obj, revision in audit_folder[::-1]:
        log.append([Proposal(EventType.DELETED, obj, revision)], author=Author("predecessors-user"))
    for obj in tenants("successor"):
        log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("successors-user"))
    log.close()
    made = Reader(url)
    yield made
    made.close()


def in_shop_all(asked: Attributes) -> bool:
    return asked.namespace == "shop"


def everywhere(asked: Attributes) -> bool:
    return True


def common(asked: Attributes) -> bool:
    return (asked.namespace, asked.name) == ("shop", "common")


def told_of(reader: Reader, right: Right) -> Iterator[Any]:
    """Yield the responses to all queries about all objects that ever existed, at all revisions."""
    asked = {**questions(reader), "rollout": Rollouts(reader).rollout}
    resources = [Resource("", "namespaces"), Resource("", "pods"), SECRETS, DEPLOYMENTS, LEASES]
    for question in asked.values():
        for at in (5, 12, 18, 19, 27):
            for resource in resources:
                for called in ("predecessor", "common", "shop"):
                    namespace = "" if called == "shop" else "shop"
                    place = {"resource": resource, "name": called, "namespace": namespace}
                    with suppress(ApiError):  # it was not there at that moment, or may not be seen
                        yield question(given(right, **place, at=at, revision=at, near=20, quiet=1, before=at + 1))


@pytest.mark.parametrize(("right", "sees"), [(in_shop_all, False), (common, False), (everywhere, True)])
def test_a_recreated_namespace_shows_nothing_of_its_predecessor(anew: Reader, right: Right, sees: bool) -> None:
    said = {word for told in told_of(anew, right) for word in words(json.loads(msgspec.json.encode(told)))}
    assert any("successor" in word for word in said)
    said.discard('deployments.apps "shop/predecessor" never had a template')  # only the requested name
    assert bool([word for word in said if "predecessor" in word]) is sees


def test_a_recreated_namespace_is_counted_from_its_beginning(anew: Reader) -> None:
    asked = questions(anew)
    for at, pods in ((5, None), (18, None), (27, {"shop": 2})):
        kinds = {kind["resource"]: kind["namespaces"] for kind in asked["kinds"](given(in_shop_all, at=at))["kinds"]}
        assert kinds.get("pods") == pods
    table = asked["objects"](given(in_shop_all, resource="pods", at=5))
    assert (table["rows"], table["total"], table["deleted"]) == ([], 0, [])
    assert asked["events"](given(in_shop_all))["hidden"] == 2
    assert asked["events"](given(everywhere))["hidden"] == 6
    place = {"resource": "pods", "namespace": "shop", "name": "common"}
    assert [len(asked["history"](given(right, **place))["changes"]) for right in (in_shop_all, everywhere)] == [1, 3]
    with pytest.raises(NotFound, match="no events for pods shop/common up to revision 5"):
        asked["object"](given(in_shop_all, **place, at=5))
    counts = asked["timeline"](given(in_shop_all, bars=27))["items"]
    assert [bar["from"] for bar in counts] == list(
        range(20, 28)
    )  # the message names no namespace for users without the right to list all namespaces

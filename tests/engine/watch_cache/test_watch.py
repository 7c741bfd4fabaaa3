from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.request_options import ListOptions, parse_list
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.watch_cache.watch import Selection
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.informer.informer import Change
from tests.engine.stage import Stage, builtin_kinds

MAPS = "/api/v1/namespaces/shop/configmaps"
MERGE = "application/merge-patch+json"


def kind(plural: str = "configmaps", group: str = "") -> Kind:
    found = builtin_kinds().find(group, "v1", plural)
    assert found is not None
    return found


def thing(revision: int, name: str = "a", namespace: str = "shop", **labels: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": "u", "labels": labels}
    fields = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    return Object.from_dict(fields).at(revision)


IN, OUT = {"x": "1"}, {"x": "2"}


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (None, IN, ("ADDED", IN)),
        (None, OUT, None),
        (IN, IN, ("MODIFIED", IN)),
        (OUT, IN, ("ADDED", IN)),
        (IN, OUT, ("DELETED", IN)),
        (OUT, OUT, None),
        (IN, None, ("DELETED", IN)),
        (OUT, None, None),
    ],
)
def test_a_change_is_converted_for_the_selection(
    old: dict[str, str] | None, new: dict[str, str] | None, shown: tuple[str, dict[str, str]] | None
) -> None:
    selection = Selection(kind(), "shop", LabelSelector.parse("x=1"))
    before = None if old is None else thing(3, **old)
    after = None if new is None else thing(7, **new)
    event = selection.transition(Change(EventType.MODIFIED, before, after, 7))
    if shown is None:
        assert event is None
    else:
        assert event is not None
        assert (event[0], dict(event[1].labels), event[1].revision) == (*shown, 7)


@pytest.mark.parametrize(
    ("selection", "matches"),
    [
        (Selection(kind()), True),
        (Selection(kind(), "shop"), True),
        (Selection(kind(), "other"), False),
        (Selection(kind(), None, LabelSelector.parse("x")), True),
        (Selection(kind(), "other", LabelSelector.parse("x")), False),
        (Selection(kind(), None, LabelSelector.parse("!x")), False),
        (Selection(kind(), None, LabelSelector(), FieldSelector.parse("metadata.name=a")), True),
        (Selection(kind(), None, LabelSelector.parse("x"), FieldSelector.parse("metadata.name!=a")), False),
    ],
)
def test_a_selection_consists_of_namespace_labels_and_fields(selection: Selection, matches: bool) -> None:
    assert selection.matches(thing(1, x="1")) is matches


def history(stage: Stage) -> None:
    """Create `a`, change it, let it stop and start to match `x=1`, and change it; create and delete `b`: revisions 2 to
    8.
    """
    stage.namespace("shop")
    stage.send("POST", MAPS, {"metadata": {"name": "a", "labels": {"x": "1"}}})
    stage.send("POST", MAPS, {"metadata": {"name": "b"}})
    for change in ({"data": {"b": "2"}}, {"metadata": {"labels": {"x": "2"}}}, {"metadata": {"labels": {"x": "1"}}}):
        stage.send("PATCH", f"{MAPS}/a", change, media_type=MERGE)
    stage.send("PATCH", f"{MAPS}/a", {"metadata": {"annotations": {"n": "1"}}}, media_type=MERGE)
    stage.send("DELETE", f"{MAPS}/b")


def seen(stage: Stage, **query: str) -> list[str]:
    response = stage.send("GET", MAPS, query={"watch": "1", **query})
    assert response.code == 200, response.body
    return [
        f"{event['type']} {event['object']['metadata']['name']}@{event['object']['metadata']['resourceVersion']}"
        for event in response.body
    ]


@pytest.mark.parametrize("window", [10_000, 2, 0])  # events from the cacher, from both, from the log
@pytest.mark.parametrize(
    ("query", "events"),
    [
        (
            {"resourceVersion": "1"},
            "ADDED a@2, ADDED b@3, MODIFIED a@4, MODIFIED a@5, MODIFIED a@6, MODIFIED a@7, DELETED b@8",
        ),
        ({"resourceVersion": "5"}, "MODIFIED a@6, MODIFIED a@7, DELETED b@8"),
        (
            {"resourceVersion": "1", "labelSelector": "x=1"},
            "ADDED a@2, MODIFIED a@4, DELETED a@5, ADDED a@6, MODIFIED a@7",
        ),
        ({"resourceVersion": "2", "labelSelector": "x=1"}, "MODIFIED a@4, DELETED a@5, ADDED a@6, MODIFIED a@7"),
        ({"resourceVersion": "1", "labelSelector": "x=2"}, "ADDED a@5, DELETED a@6"),
        ({"resourceVersion": "1", "labelSelector": "!x"}, "ADDED b@3, DELETED b@8"),
        ({"resourceVersion": "1", "fieldSelector": "metadata.name=b"}, "ADDED b@3, DELETED b@8"),
        ({"resourceVersion": "0"}, "ADDED a@7"),
        ({}, "ADDED a@7"),
        ({"resourceVersion": "8"}, ""),
        ({"resourceVersion": "99"}, ""),
        (
            {"resourceVersion": "6", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"},
            "ADDED a@7",
        ),
        (
            {"resourceVersion": "6", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "false"},
            "MODIFIED a@7, DELETED b@8",
        ),
        ({"resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "false"}, ""),
    ],
)
def test_a_watch_sends_changes_since_its_start(query: dict[str, str], events: str, window: int) -> None:
    stage = Stage(window=window)
    history(stage)
    assert ", ".join(seen(stage, **query)) == events


def test_initial_objects_are_marked_on_request() -> None:
    stage = Stage()
    history(stage)
    run, watch = stage.driver.run, stage.engine.watch
    options = watch_options({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
    start = run(watch(kind(), "shop", options))
    assert ([obj.name for obj in start.initial], start.revision, start.marks_initial) == (["a"], 8, True)
    start = run(watch(kind(), "shop", watch_options({})))
    assert (len(start.initial), start.marks_initial) == (1, False)


def watch_options(query: dict[str, str]) -> ListOptions:
    return parse_list({"watch": ["1"], **{name: [value] for name, value in query.items()}}, kind())


def test_a_watch_from_a_compacted_revision_ends_with_an_error() -> None:
    stage = Stage(window=0)
    history(stage)
    stage.log.compact(6)
    (event,) = stage.send("GET", MAPS, query={"watch": "1", "resourceVersion": "2"}).body
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"] == "too old resource version: 2 (6)"
    assert seen(stage, resourceVersion="6") == ["MODIFIED a@7", "DELETED b@8"]


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"resourceVersion": "abc"}, 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc"'),
        (
            {"resourceVersion": "99", "resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"},
            504,
            "Timeout: Too large resource version: 99, current: 8",
        ),
    ],
)
def test_invalid_watches_are_refused(query: dict[str, str], code: int, message: str) -> None:
    stage = Stage()
    history(stage)
    refused = stage.send("GET", MAPS, query={"watch": "1", **query})
    assert refused.code == code
    assert refused.message.startswith(message)


def test_a_watch_of_another_version_sends_that_version() -> None:
    stage = Stage()
    stage.namespace("shop")
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web"},
        "message": "hello",
        "type": "Normal",
    }
    assert stage.send("POST", "/api/v1/namespaces/shop/events", event).code == 201
    path = "/apis/events.k8s.io/v1/namespaces/shop/events"
    (shown,) = stage.send("GET", path, query={"watch": "1", "resourceVersion": "1"}).body
    assert shown["object"]["apiVersion"] == "events.k8s.io/v1"
    assert (shown["object"]["note"], shown["object"]["regarding"]["name"]) == ("hello", "web")
    assert stage.send("GET", path, query={"fieldSelector": "regarding.name=web"}).body["items"][0]["note"] == "hello"
    assert stage.send("GET", path, query={"fieldSelector": "regarding.name=db"}).body["items"] == []


@pytest.mark.parametrize("seed", range(5))
def test_a_follower_of_events_reaches_the_listed_state(seed: int) -> None:
    random = Random(seed)
    stage = Stage(seed=seed)
    stage.namespace("shop")
    for _ in range(60):
        name, value = f"m{random.randrange(4)}", str(random.randrange(3))
        if random.random() < 0.2:
            stage.send("DELETE", f"{MAPS}/{name}")
            continue
        body = {"metadata": {"name": name, "labels": {"x": value}}, "data": {"at": str(stage.cacher.revision)}}
        if stage.send("POST", MAPS, body).code == 409:
            stage.send("PUT", f"{MAPS}/{name}", body)
    for selector in ("", "x=1", "x!=1", "x in (0,2)"):
        selection = Selection(kind(), "shop", LabelSelector.parse(selector))
        present = {obj.key: obj for obj in stage.cacher.list(kind().storage) if selection.matches(obj)}
        for revision in range(1, stage.cacher.revision + 1, 7):
            past = stage.log.snapshot(kind().storage, at=revision).objects
            state: dict[Key, Object] = {obj.key: obj for obj in past if selection.matches(obj)}
            for change in stage.cacher.changes_after(revision, kind().storage) or ():
                if event := selection.transition(change):
                    apply(state, *event)
            assert state == present


def apply(state: dict[Key, Object], type: str, obj: Object) -> None:
    assert (type == "ADDED") is (obj.key not in state)
    if type == "DELETED":
        del state[obj.key]
    else:
        state[obj.key] = obj

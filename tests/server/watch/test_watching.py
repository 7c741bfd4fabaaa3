"""Tests of watches over real connections: they begin at any revision, send events in order, and end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.watch import watching
from tests.background import background
from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, make, running, serving

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def site() -> Iterator[Site]:
    with running() as site:
        yield site


def short_form(event: Any) -> tuple[str, str]:
    """Return a short form of a watch event: its type and the object's name, or the status code of an error."""
    obj = event["object"]
    return event["type"], obj["metadata"].get("name") or str(obj.get("code", ""))


def version(event: Any) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def test_a_watch_begins_with_existing_objects_and_continues(site: Site) -> None:
    site.create("a")
    with site.watch() as watch:
        assert watch.response.headers["content-type"] == "application/json"
        assert short_form(watch.next()) == ("ADDED", "a")
        site.create("b")
        assert short_form(watch.next()) == ("ADDED", "b")
        site.change("a", k="v")
        event = watch.next()
        assert short_form(event) == ("MODIFIED", "a")
        assert event["object"]["data"] == {"k": "v"}
        site.ask(f"{CONFIG_MAPS}/a", "DELETE")
        deleted = watch.next()
        assert short_form(deleted) == ("DELETED", "a")
        assert version(deleted) == version(event) + 1


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
def test_a_watch_without_a_revision_sends_existing_objects(site: Site, query: str) -> None:
    site.create("a")
    with site.watch(f"{query}&timeoutSeconds=1") as watch:
        assert [short_form(event) for event in watch.rest()] == [("ADDED", "a")]


def test_a_watch_from_a_revision_sends_exactly_the_later_events(site: Site) -> None:
    start = site.create("a")["metadata"]["resourceVersion"]
    site.change("a", k="v")
    site.create("b")
    with site.watch(f"resourceVersion={start}&timeoutSeconds=1") as watch:
        events = watch.rest()
    assert [short_form(event) for event in events] == [("MODIFIED", "a"), ("ADDED", "b")]
    assert [version(event) for event in events] == sorted({version(event) for event in events})


def test_a_watch_from_a_future_revision_sends_nothing_earlier(site: Site) -> None:
    now = int(site.create("a")["metadata"]["resourceVersion"])
    with site.watch(f"resourceVersion={now + 1}") as watch:
        site.create("b")
        site.create("c")
        assert short_form(watch.next()) == ("ADDED", "c")


def test_deprecated_watch_paths_are_supported(site: Site) -> None:
    site.create("a")
    site.create("b")
    path = "/api/v1/watch/namespaces/default/configmaps"
    with site.watch("timeoutSeconds=1", path=f"{path}/b") as watch:
        assert [short_form(event) for event in watch.rest()] == [("ADDED", "b")]
    assert site.ask(f"{path}/b?fieldSelector=metadata.name%3Da").status == 400


def test_all_objects_of_all_namespaces_can_be_watched(site: Site) -> None:
    with site.watch(path="/api/v1/configmaps") as watch:
        site.create("a")
        assert short_form(watch.next()) == ("ADDED", "a")


def test_initial_events_end_with_a_bookmark(site: Site) -> None:
    site.create("a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with site.watch(query) as watch:
        assert short_form(watch.next()) == ("ADDED", "a")
        bookmark = watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert version(bookmark) == site.log.head().revision
        site.create("b")
        assert short_form(watch.next()) == ("ADDED", "b")


def test_metadata_and_bookmarks_can_be_watched_alone(site: Site) -> None:
    site.create("a", k="v")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with site.watch(query, Accept=PARTIAL) as watch:
        events = [watch.next(), watch.next()]
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    assert "data" not in events[0]["object"]


@pytest.mark.parametrize("there", [True, False])
def test_a_table_has_its_columns_in_the_first_event_only(site: Site, there: bool) -> None:
    if there:
        site.create("first")
    with site.watch(Accept=TABLE) as watch:
        if not there:
            site.create("first")
        tables = [watch.next()["object"]]
        for name in ("second", "third"):
            site.create(name)
            tables.append(watch.next()["object"])
    assert [table["rows"][0]["cells"][0] for table in tables] == ["first", "second", "third"]
    assert [table["columnDefinitions"] is None for table in tables] == [False, True, True]


def test_a_short_watch_has_a_bookmark_if_requested(site: Site) -> None:
    with site.watch("resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=3") as watch:
        assert [event["type"] for event in watch.rest()] == ["BOOKMARK"]


def test_events_older_than_the_window_are_read_from_the_log() -> None:
    with running(make(window=4)) as site:
        start = site.log.head().revision
        site.create("a", k="0")
        for number in range(1, 20):
            site.change("a", k=str(number))
        with site.watch(f"resourceVersion={start}") as watch:
            events = [watch.next() for _ in range(20)]
            site.create("b")
            assert short_form(watch.next()) == ("ADDED", "b")
    assert [short_form(event) for event in events] == [("ADDED", "a")] + [("MODIFIED", "a")] * 19
    assert [event["object"]["data"]["k"] for event in events] == [str(number) for number in range(20)]


def test_selectors_apply_to_old_events() -> None:
    with running(make(window=4)) as site:
        start = site.log.head().revision
        merge = {"Content-Type": "application/merge-patch+json"}
        site.create("a")
        for color in ("red", "blue", "blue", "red", "blue"):
            site.ask(
                f"{CONFIG_MAPS}/a", "PATCH", {"metadata": {"labels": {"color": color}}, "data": {"n": color}}, merge
            )
        for number in range(9):
            site.create(f"other-{number}")
        with site.watch(f"resourceVersion={start}&labelSelector=color%3Dblue&timeoutSeconds=1") as watch:
            assert [short_form(event)[0] for event in watch.rest()] == ["ADDED", "DELETED", "ADDED"]


def test_a_compacted_revision_returns_expired() -> None:
    with running(make(window=4)) as site:
        start = site.create("a", k="0")["metadata"]["resourceVersion"]
        for number in range(1, 20):
            site.change("a", k=str(number))
        site.log.compact(site.log.head().revision)
        with site.watch(f"resourceVersion={start}") as watch:
            (error,) = watch.rest()
    assert error["type"] == "ERROR"
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    assert error["object"]["message"].startswith(f"too old resource version: {start} (")


def test_a_list_and_its_watch_are_complete(site: Site) -> None:
    """Guarantee W11: a client that lists and then watches from the list's revision has the server's state, regardless
    of concurrent writes.
    """
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            site.create(f"n-{number % 7}-{number}", n=str(number))
            if number % 3 == 0:
                site.ask(f"{CONFIG_MAPS}/n-{number % 7}-{number}", "DELETE")

    writing = background(write)
    try:
        listed = site.ask(CONFIG_MAPS).json
        state = {item["metadata"]["name"]: item["data"] for item in listed["items"]}
        with site.watch(f"resourceVersion={listed['metadata']['resourceVersion']}") as watch:
            events = [watch.next() for _ in range(60)]
    finally:
        stop.set()
        writing.result(TIMEOUT)
    for event in events:
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            del state[name]
        else:
            state[name] = event["object"]["data"]
    versions = [version(event) for event in events]
    assert versions == sorted(set(versions))
    there = site.ask(f"{CONFIG_MAPS}?resourceVersion={versions[-1]}&resourceVersionMatch=Exact").json
    assert state == {item["metadata"]["name"]: item["data"] for item in there["items"]}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=abc", 500),
        ("labelSelector=a%3Db%3Dc", 400),
        ("fieldSelector=spec.nope%3D1", 400),
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1", 422),
    ],
)
def test_unsupported_watches_are_refused_at_once(site: Site, query: str, code: int) -> None:
    answer = site.ask(f"{CONFIG_MAPS}?watch=true&{query}")
    assert (answer.status, answer.json["code"]) == (code, code)


def test_watches_are_json(site: Site) -> None:
    answer = site.ask(f"{CONFIG_MAPS}?watch=true", headers={"Accept": "application/yaml"})
    assert answer.status == 406
    assert "application/json;stream=watch" in answer.body


def test_initial_events_of_a_future_revision_are_an_error_in_the_stream(site: Site) -> None:
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999"
    with site.watch(query) as watch:  # after the engine's timeout of three seconds
        (error,) = watch.rest()
    assert error["object"]["code"] == 504
    assert error["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_connection_can_be_reused_after_a_watch(site: Site) -> None:
    with site.connect() as connection:
        reading = connection.makefile("rb")
        connection.sendall(f"GET {CONFIG_MAPS}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        while reading.readline() != b"0\r\n":
            pass
        assert reading.readline() == b"\r\n"
        connection.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
        assert reading.readline() == b"HTTP/1.1 200 OK\r\n"


def test_a_stopping_server_ends_its_watches_cleanly() -> None:
    made = make()
    with serving(made.app) as url:
        watching_it = Site(url, made.log).watch()
        watch = watching_it.__enter__()
    assert watch.rest() == []  # the last chunk has arrived: otherwise http.client raises IncompleteRead
    watching_it.__exit__(None, None, None)


def test_a_slow_watcher_is_disconnected_without_affecting_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "READ_PATIENCE", 0.05)
    labels = {"group": "", "resource": "configmaps"}
    name = "apiserver_terminated_watchers_total"
    before = REGISTRY.get_sample_value(name, labels) or 0.0
    with site.connect() as stalled, site.watch() as other:
        stalled.sendall(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        text, number = "x" * 500_000, 0
        while (REGISTRY.get_sample_value(name, labels) or 0.0) == before:
            number += 1
            site.create(f"large-{number}", text=text)
            assert short_form(other.next()) == ("ADDED", f"large-{number}")
            assert number < 200, "100 MB are more than a connection should hold"


def test_running_watches_are_counted(site: Site) -> None:
    labels = {"verb": "WATCH", "group": "", "version": "v1", "resource": "configmaps", "subresource": ""}
    labels["scope"] = "namespace"
    before = REGISTRY.get_sample_value("apiserver_longrunning_requests", labels) or 0.0
    with site.watch() as watch:
        site.create("counted")
        assert watch.next() is not None  # so the request is being processed, and not only received
        assert REGISTRY.get_sample_value("apiserver_longrunning_requests", labels) == before + 1


def test_events_are_lines_of_compact_json(site: Site) -> None:
    obj = site.create("a")
    with site.watch() as watch:
        line = watch.response.readline()
    assert line == b'{"type":"ADDED","object":' + json.dumps(obj, separators=(",", ":")).encode() + b"}\n"

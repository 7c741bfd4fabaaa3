"""Tests of the official Python client's Watch and SharedInformer: from a revision, by selector, with a timeout, after a
410.
"""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import queue
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from tests.e2e.clients import python_client as make
from tests.e2e.serving import DEADLINE, Server


@pytest.fixture
def core(server: Server) -> Iterator[make.Api]:
    with make.connected(server) as api:
        yield client.CoreV1Api(api)


def data(value: str) -> dict[str, Any]:
    return {"data": {"key": value}}


def labelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": value}}}


def received_events(core: make.Api, namespace: str, *, last: str, **options: Any) -> list[tuple[str, str]]:
    """Watch ConfigMaps until a ConfigMap with the name `last` is received; return the received events."""
    watcher, seen = watch.Watch(), []
    for event in watcher.stream(core.list_namespaced_config_map, namespace, _request_timeout=DEADLINE, **options):
        seen.append((event["type"], event["object"].metadata.name))
        if event["object"].metadata.name == last:
            watcher.stop()
    return seen


def test_a_watch_continues_at_the_revision_of_a_list(core: make.Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, make.config_map("before"))
    listed = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, make.config_map("web"))
    core.patch_namespaced_config_map("web", namespace, data("two"))
    core.patch_namespaced_config_map("web", namespace, data("two"))
    core.delete_namespaced_config_map("web", namespace)
    core.create_namespaced_config_map(namespace, make.config_map("last"))
    history = [("ADDED", "web"), ("MODIFIED", "web"), ("DELETED", "web"), ("ADDED", "last")]
    assert received_events(core, namespace, last="last", resource_version=listed) == history, (
        "a patch of nothing is no event"
    )
    state_first = received_events(core, namespace, last="last", label_selector="app=web")
    assert state_first == [("ADDED", "before"), ("ADDED", "last")], "the state, then what comes"


def test_a_selector_decides_between_added_and_deleted(core: make.Api, namespace: str) -> None:
    listed = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, make.config_map("web"))
    core.patch_namespaced_config_map("web", namespace, data("two"))
    core.patch_namespaced_config_map("web", namespace, labelled("other"))
    core.patch_namespaced_config_map("web", namespace, data("three"))
    core.patch_namespaced_config_map("web", namespace, labelled("web"))
    core.create_namespaced_config_map(namespace, make.config_map("last"))
    changes = [("ADDED", "web"), ("MODIFIED", "web"), ("DELETED", "web"), ("ADDED", "web"), ("ADDED", "last")]
    assert received_events(core, namespace, last="last", resource_version=listed, label_selector="app=web") == changes
    by_name = received_events(
        core, namespace, last="last", resource_version=listed, field_selector="metadata.name=last"
    )
    assert by_name == [("ADDED", "last")]


def test_a_watch_ends_at_its_timeout_without_an_error(core: make.Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, make.config_map("web"))
    by_label = {"label_selector": "app=web", "timeout_seconds": 1}
    events = list(watch.Watch().stream(core.list_namespaced_config_map, namespace, **by_label))
    assert [event["type"] for event in events] == ["ADDED"]


def test_the_initial_state_can_precede_a_watch_and_is_marked(core: make.Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, make.config_map("web"))
    events = watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        label_selector="app=web",
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
        timeout_seconds=1,
    )
    added, mark, *rest = [event["raw_object"]["metadata"] | {"type": event["type"]} for event in events]
    assert (added["type"], added["name"]) == ("ADDED", "web")
    assert (mark["type"], mark["annotations"]) == ("BOOKMARK", {"k8s.io/initial-events-end": "true"})
    assert int(mark["resourceVersion"]) >= int(added["resourceVersion"])
    assert {each["type"] for each in rest} <= {"BOOKMARK"}


class ReceivedEvents:
    """The events that an informer's handlers received; a test can wait for them."""

    def __init__(self, informer: SharedInformer) -> None:
        self._events: queue.Queue[tuple[str, str]] = queue.Queue()
        for type_ in (ADDED, MODIFIED, DELETED):
            informer.add_event_handler(type_, lambda obj, type_=type_: self._events.put((type_, obj.metadata.name)))

    def next(self) -> tuple[str, str]:
        return self._events.get(timeout=DEADLINE)


def test_an_informer_follows_changes(core: make.Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, make.config_map("before"))
    informer = SharedInformer(core.list_namespaced_config_map, namespace, label_selector="app=web")
    seen = ReceivedEvents(informer)
    informer.start()
    try:
        assert seen.next() == (ADDED, "before")
        core.create_namespaced_config_map(namespace, make.config_map("web"))
        assert seen.next() == (ADDED, "web")
        core.patch_namespaced_config_map("web", namespace, data("two"))
        assert seen.next() == (MODIFIED, "web")
        assert informer.cache.get_by_key(f"{namespace}/web").data == {"key": "two"}
        core.delete_namespaced_config_map("before", namespace)
        assert seen.next() == (DELETED, "before")
        assert informer.cache.list_keys() == [f"{namespace}/web"]
    finally:
        informer.stop()


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A new server and its database; the test compacts the database."""
    url = f"sqlite:///{tmp_path / 'ctrlmgr.db'}"
    with closing(Server(tmp_path, "--database", url)) as server:
        server.start()
        yield server, url


def test_an_expired_watch_gets_410(forgetful: tuple[Server, str]) -> None:
    server, url = forgetful
    with make.connected(server) as api:
        core: make.Api = client.CoreV1Api(api)
        first = core.create_namespaced_config_map("default", make.config_map("web")).metadata.resource_version
        for value in ("two", "three"):
            core.patch_namespaced_config_map("web", "default", data(value))
        core.create_namespaced_config_map("default", make.config_map("last"))
        with closing(open_log(url, clock=SystemClock(), random=random.Random(1))) as log:
            log.compact(log.head().revision)
        server.stop()
        server.start()
        with pytest.raises(ApiException) as expired:
            received_events(core, "default", last="last", resource_version=first)
        assert (expired.value.status, expired.value.reason.split(":")[0]) == (410, "Expired")
        listed = core.list_namespaced_config_map("default").metadata.resource_version
        core.create_namespaced_config_map("default", make.config_map("new"))
        assert received_events(core, "default", last="new", resource_version=listed) == [("ADDED", "new")]

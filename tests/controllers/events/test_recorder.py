from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS
from ctrlmgr.client import LogClient
from ctrlmgr.controllers.events.recorder import (
    NORMAL,
    PAUSE,
    QUEUED,
    QUIET,
    TRIES,
    WARNING,
    EventBroadcaster,
    reference_to,
)
from ctrlmgr.errors import AlreadyExists, Conflict, CtrlmgrError, Fenced, LogUnavailable, NamespaceTerminating
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.testing.builders import a_service
from tests.engine.stage import Stage

LEASE = ObjectReference("Lease", "kube-system", "leader", "uid-of-lease", "coordination.k8s.io/v1")


def a_lease(name: str) -> ObjectReference:
    return ObjectReference("Lease", "kube-system", name, "", "coordination.k8s.io/v1")


class Client(LogClient):
    """A client that refuses a write if `refuse` returns an error for it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.refuse: Callable[[Object], CtrlmgrError | None] = lambda obj: None
        self.tries = 0

    def create(self, obj: Object) -> Object:
        self._try(obj)
        return super().create(obj)

    def update(self, obj: Object, subresource: str = "") -> Object:
        self._try(obj)
        return super().update(obj, subresource)

    def _try(self, obj: Object) -> None:
        self.tries += 1
        error = self.refuse(obj)
        if error is not None:
            raise error


class RecorderStage(Stage):
    """A log, a broadcaster, and an Event recorder of the component `tester`."""

    def __init__(self) -> None:
        super().__init__()
        self.client = Client(self.log, author=Author("tester"), clock=self.clock, new_uid=lambda: "uid")
        self.broadcaster = EventBroadcaster(clock=self.clock, random=Random(1))
        self.recorder = self.broadcaster.recorder("tester", self.client)

    def recorded(self) -> list[dict[str, Any]]:
        """Write all pending Events, and return the stored Events."""
        self.broadcaster.flush()
        return [each.to_dict() for each in self.log.snapshot(EVENTS).objects]

    def refuse(self, error: CtrlmgrError, times: int = 1_000) -> None:
        left = [error] * times
        self.client.refuse = lambda obj: left.pop() if left else None


def failed(room: RecorderStage, message: str = "it failed") -> None:
    room.recorder.event(LEASE, WARNING, "Failed", message)


def test_an_event_equals_client_gos() -> None:
    room = RecorderStage()
    service = a_service("web").at(12)
    room.recorder.event(service, NORMAL, "Found", "it is there")
    [event] = room.recorded()
    nanoseconds = room.clock.now() * 1000
    reference = {"kind": "Service", "apiVersion": "v1", "resourceVersion": "12"}
    reference |= {"namespace": service.namespace, "name": "web", "uid": service.uid}
    metadata = event["metadata"]
    assert (metadata["name"], metadata["namespace"]) == (f"web.{nanoseconds:x}", service.namespace)
    assert event["involvedObject"] == reference
    wanted = {
        "reason": "Found",
        "message": "it is there",
        "source": {"component": "tester"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "tester",
        "reportingInstance": "",
    }
    assert {field: event[field] for field in event if field not in ("kind", "apiVersion", "metadata")} == {
        "involvedObject": reference,
        **wanted,
    }


def test_an_event_is_stored_like_through_the_api() -> None:
    room = RecorderStage()
    failed(room)
    room.recorded()
    [stored] = room.log.snapshot(EVENTS).objects
    [kind] = [each for each in room.kinds if each.name == "Event" and each.gvk.api_version == "v1"]
    assert kind.codec.encode(kind.codec.decode(stored.body, "application/json").fields) == stored.body
    assert room.log.events_after(0)[-1].actor == "tester"


def test_a_repetition_increases_the_count_of_the_event() -> None:
    room = RecorderStage()
    failed(room)
    room.clock.step(61)
    failed(room)
    [event] = room.recorded()
    assert (event["count"], event["firstTimestamp"]) == (2, "2026-01-01T00:00:00Z")
    assert event["lastTimestamp"] == "2026-01-01T00:01:01Z"
    assert len(room.log.events_after(0)) == 2


def test_similar_events_are_combined_with_the_latest_message() -> None:
    room = RecorderStage()
    for number in range(12):
        failed(room, f"failure {number}")
    events = room.recorded()
    assert len(events) == 10
    [combined] = [each for each in events if each["count"] > 1]
    assert (combined["count"], combined["message"]) == (3, "(combined from similar events): failure 11")


def test_events_about_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    room = RecorderStage()
    room.recorder.event(ObjectReference("Node", name="n", api_version="v1"), WARNING, "Failed", "it failed")
    [event] = room.recorded()
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


@pytest.mark.parametrize("name", ["system:node", "192.0.2.1:6443", "Upper"])
def test_invalid_characters_are_not_part_of_an_events_name(name: str) -> None:
    room = RecorderStage()
    room.recorder.event(a_lease(name), WARNING, "Failed", "it failed")
    [event] = room.recorded()
    assert len(event["metadata"]["name"]) == len("01234567-89ab-cdef-0123-456789abcdef")
    assert event["involvedObject"]["name"] == name


def test_two_events_of_one_moment_have_different_names() -> None:
    room = RecorderStage()
    failed(room)
    failed(room, "it failed otherwise")
    assert len({each["metadata"]["name"] for each in room.recorded()}) == 2


def test_deleted_event_is_recreated_with_its_count() -> None:
    room = RecorderStage()
    failed(room)
    room.recorded()
    [stored] = room.log.snapshot(EVENTS).objects
    room.log.append([Proposal(EventType.DELETED, stored, stored.revision)], author=Author("somebody"))
    failed(room)
    [event] = room.recorded()
    assert (event["metadata"]["name"], event["count"]) == (stored.name, 2)


@pytest.mark.parametrize(
    "error", [NamespaceTerminating(), AlreadyExists(), Fenced()], ids=lambda error: type(error).__name__
)
def test_a_refused_event_is_dropped(error: CtrlmgrError) -> None:
    room = RecorderStage()
    room.refuse(error, times=1)
    failed(room)
    assert room.recorded() == []
    room.clock.step(10 * PAUSE)
    room.recorder.event(LEASE, NORMAL, "Next", "and so on")
    assert [each["reason"] for each in room.recorded()] == ["Next"]


@pytest.mark.parametrize("error", [LogUnavailable(), Conflict()], ids=lambda error: type(error).__name__)
def test_events_wait_for_an_unavailable_log(error: CtrlmgrError) -> None:
    room = RecorderStage()
    room.refuse(error, times=2)
    failed(room)
    room.recorder.event(LEASE, NORMAL, "Next", "and so on")
    assert room.recorded() == []
    room.clock.step(PAUSE)
    assert room.recorded() == []
    room.clock.step(PAUSE - 0.1)
    assert room.recorded() == []
    room.clock.step(0.1)
    assert [each["reason"] for each in room.recorded()] == ["Failed", "Next"]
    assert room.client.tries == 4


def test_events_are_dropped_after_too_many_retries() -> None:
    room = RecorderStage()
    room.refuse(LogUnavailable())
    failed(room)
    for _ in range(TRIES + 5):
        room.broadcaster.flush()
        room.clock.step(PAUSE)
    assert room.client.tries == TRIES


def test_recording_never_blocks_and_drops_events_above_the_limit() -> None:
    room = RecorderStage()

    def tell(count: int) -> None:
        for number in range(count):
            room.recorder.event(a_lease(f"lease-{number}"), WARNING, "Failed", "it failed")

    with capture_logs() as logged:
        tell(QUEUED + 5)
        room.clock.step(QUIET)
        tell(1)
    assert [(each["event"], each["count"]) for each in logged] == [("events dropped", 1), ("events dropped", 5)]
    assert len(room.recorded()) == QUEUED


def test_a_failing_event_does_not_affect_others() -> None:
    room = RecorderStage()

    def refuse(obj: Object) -> None:
        assert "bad" not in obj.name

    room.client.refuse = refuse
    room.recorder.event(a_lease("bad"), WARNING, "Failed", "it failed")
    failed(room)
    assert [each["involvedObject"]["name"] for each in room.recorded()] == ["leader"]


def test_the_recorder_writes_until_its_stop_and_drains_its_queue() -> None:
    room = RecorderStage()
    stop = threading.Event()
    room.client.refuse = lambda obj: stop.set()
    failed(room)
    failed(room, "while it stops")
    room.broadcaster.run(stop)
    failed(room, "too late")
    assert [each["message"] for each in room.recorded()] == ["it failed", "while it stops"]


def test_the_stop_tries_every_event_one_more_time() -> None:
    room = RecorderStage()
    room.refuse(LogUnavailable(), times=2)
    failed(room)
    failed(room, "otherwise")
    failed(room, "and otherwise")
    assert room.recorded() == []
    room.broadcaster.close()
    assert [each["message"] for each in room.recorded()] == ["otherwise", "and otherwise"]


def test_the_reference_contains_the_version_that_was_read() -> None:
    assert reference_to(a_service("web")).resource_version == ""
    assert reference_to(a_service("web").at(3)).resource_version == "3"

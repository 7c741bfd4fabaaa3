"""Tests of kube-scheduler's recorder, which records Events of `events.k8s.io/v1`, in which repeated Events form a
series.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS
from ctrlmgr.client import LogClient
from ctrlmgr.controllers.events.recorder import WARNING, EventBroadcaster
from ctrlmgr.controllers.events.series import FINISH, REFRESH
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.testing.builders import a_service
from tests.engine.stage import Stage


class SeriesStage(Stage):
    """A log, a broadcaster on the machine `host`, and an Event recorder of `default-scheduler`."""

    def __init__(self) -> None:
        super().__init__()
        client = LogClient(self.log, author=Author("tester"), clock=self.clock, new_uid=lambda: "uid")
        self.broadcaster = EventBroadcaster(clock=self.clock, random=Random(1), host="host")
        self.recorder = self.broadcaster.recorder("default-scheduler", client, in_series=True)

    def fail(self, subject: Object, message: str = "it fits nowhere", action: str = "Scheduling") -> None:
        self.recorder.event(subject, WARNING, "FailedScheduling", message, action=action)

    def recorded(self) -> list[dict[str, Any]]:
        self.broadcaster.flush()
        return [each.to_dict() for each in self.log.snapshot(EVENTS).objects]


WEB = a_service("web").at(12)


def test_an_event_equals_client_gos() -> None:
    room = SeriesStage()
    room.recorder.event(WEB, WARNING, "Preempted", "by web-2", action="Preempting", related=a_service("web-2"))
    [event] = room.recorded()
    assert event.pop("metadata")["name"] == f"web.{room.clock.now() * 1000:x}"
    assert event.pop("related")["name"] == "web-2"
    assert event.pop("involvedObject")["resourceVersion"] == "12"
    assert event == {
        "kind": "Event",
        "apiVersion": "v1",
        "reason": "Preempted",
        "message": "by web-2",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Warning",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Preempting",
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
    }


def test_an_event_is_stored_like_through_the_api() -> None:
    room = SeriesStage()
    [kind] = [each for each in room.kinds if each.name == "Event" and each.gvk.api_version == "v1"]
    for _ in range(2):  # the second Event begins a series at once, because the first was deleted
        room.fail(WEB)
        room.recorded()
        [stored] = room.log.snapshot(EVENTS).objects
        assert kind.codec.encode(kind.codec.decode(stored.body, "application/json").fields) == stored.body
        room.log.append([Proposal(EventType.DELETED, stored, stored.revision)], author=Author("expiry"))
    assert b'"series":{"count":2' in stored.body


def test_the_second_occurrence_starts_a_series() -> None:
    room = SeriesStage()
    room.fail(WEB, "first")
    assert "series" not in room.recorded()[0]
    for message in ("second", "third", "fourth"):
        room.clock.step(1)
        room.fail(WEB, message)
        [event] = room.recorded()
    assert event["message"] == "first"
    assert event["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}


def test_an_ended_series_is_written_with_its_count() -> None:
    room = SeriesStage()
    for _ in range(4):
        room.clock.step(1)
        room.fail(WEB)
        room.recorded()
    room.clock.step(2 * FINISH)
    [event] = room.recorded()
    assert event["series"] == {"count": 4, "lastObservedTime": "2026-01-01T00:00:04.000000Z"}
    room.fail(WEB)
    assert len(room.recorded()) == 2


def test_a_continuing_series_is_written_again() -> None:
    room = SeriesStage()
    room.fail(WEB)
    room.recorded()
    for _ in range(10):
        room.clock.step(REFRESH / 10)
        room.fail(WEB)
        room.recorded()
    [event] = room.recorded()
    assert event["series"]["count"] > 2


def test_an_event_without_repetition_expires() -> None:
    room = SeriesStage()
    room.fail(WEB)
    room.recorded()
    room.clock.step(2 * FINISH)
    room.recorded()
    room.fail(WEB)
    assert ["series" in each for each in room.recorded()] == [False, False]


def test_another_version_of_the_subject_or_another_action_is_a_new_event() -> None:
    room = SeriesStage()
    room.fail(WEB)
    room.fail(WEB.at(13))
    room.fail(WEB, action="Binding")
    assert len(room.recorded()) == 3


def test_expired_event_is_recreated_with_its_series() -> None:
    room = SeriesStage()
    room.fail(WEB)
    [event] = room.recorded()
    room.broadcaster.flush()
    [stored] = room.log.snapshot(EVENTS).objects
    LogClient(room.log, author=Author("tester"), clock=room.clock, new_uid=lambda: "uid").delete(stored)
    room.fail(WEB)
    [again] = room.recorded()
    assert (again["metadata"]["name"], again["series"]["count"]) == (event["metadata"]["name"], 2)

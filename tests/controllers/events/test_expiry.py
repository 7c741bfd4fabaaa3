from __future__ import annotations

from ctrlmgr.api.resource import EVENTS, Key
from ctrlmgr.controllers.events.expiry import AT_ONCE, INTERVAL, ROOM, EventExpiry, new_event_expiry
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.controllers.worked_stage import WorkedStage

HOUR = 3600.0
COLLECTION = "/api/v1/namespaces/a/events"


def controller(stage: WorkedStage) -> Controller:
    return new_event_expiry(
        stage.informers, stage.engine_client, stage.log, HOUR, clock=stage.clock, random=stage.random
    )


def a_stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.work()
    return stage


def create_event(stage: WorkedStage, name: str, **metadata: object) -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "a"}
    stage.create(COLLECTION, {"metadata": {"name": name, **metadata}, "involvedObject": involved, "reason": "Told"})


def wait(stage: WorkedStage, seconds: float) -> None:
    """Advance the time step by step, each step as long as the controller's interval."""
    until = stage.clock.monotonic() + seconds
    while stage.clock.monotonic() < until:
        stage.pass_by(min(INTERVAL, until - stage.clock.monotonic()))


def test_an_event_is_deleted_an_hour_after_its_last_occurrence() -> None:
    stage = a_stage()
    create_event(stage, "old")
    wait(stage, 1800)
    create_event(stage, "young")
    wait(stage, HOUR - 1800 - 1)
    assert stage.names(EVENTS) == ["old", "young"]
    wait(stage, 1 + INTERVAL)
    assert stage.names(EVENTS) == ["young"]
    assert stage.written() == [("DELETED", "a/old")]


def test_watchers_receive_changes() -> None:
    stage = a_stage()
    create_event(stage, "old")
    head = stage.log.head().revision
    wait(stage, HOUR + INTERVAL)
    watched = stage.send("GET", COLLECTION, query={"watch": "true", "resourceVersion": str(head)}).body
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in watched] == [("DELETED", "old")]


def test_a_repeated_event_gets_a_new_ttl() -> None:
    stage = a_stage()
    create_event(stage, "counted")
    wait(stage, HOUR - 60)
    stage.patch(f"{COLLECTION}/counted", {"count": 2})
    wait(stage, HOUR - 60)
    assert stage.names(EVENTS) == ["counted"]
    wait(stage, 60 + INTERVAL)
    assert stage.names(EVENTS) == []


def test_an_event_changed_during_its_deletion_is_kept() -> None:
    stage = a_stage()
    create_event(stage, "changing")
    create_event(stage, "old")
    stage.work()
    stage.clock.step(HOUR)
    stage.patch(f"{COLLECTION}/changing", {"count": 2})
    assert stage.controller.process_next(timeout=0), "the cache does not know of the change"
    assert stage.names(EVENTS) == ["changing", "old"]
    stage.hear()
    stage.pass_by(1)
    assert stage.names(EVENTS) == ["changing"]


def test_a_restart_keeps_the_age_of_events() -> None:
    stage = a_stage()
    create_event(stage, "old")
    wait(stage, HOUR - 60)
    stage.start()
    wait(stage, 60 + INTERVAL)
    assert stage.names(EVENTS) == []


def test_finalizers_do_not_hold_expired_events() -> None:
    stage = a_stage()
    create_event(stage, "held", finalizers=["example.com/hold"])
    wait(stage, HOUR + INTERVAL)
    assert stage.names(EVENTS) == []


def test_many_events_are_deleted_in_few_appends() -> None:
    stage = a_stage()
    for number in range(AT_ONCE + 1):
        create_event(stage, f"event-{number}")
    stage.clock.step(HOUR + INTERVAL)
    stage.work()
    gone = [each for each in stage.log.events_after(0, limit=10_000) if each.type is EventType.DELETED]
    assert (len(gone), len({each.append_id for each in gone})) == (AT_ONCE + 1, 2)


def test_standby_controller_keeps_bounded_state() -> None:
    stage = a_stage()
    events = Informers(stage.log, stage.feed, clock=stage.clock)
    standby = EventExpiry(events.informer(EVENTS), stage.log, HOUR, clock=stage.clock)
    events.sync()
    create_event(stage, "counted")
    for count in range(2, 2 * ROOM):
        stage.patch(f"{COLLECTION}/counted", {"count": count})
    stage.feed.catch_up()
    while events.step():
        pass
    assert standby.remembered <= ROOM + 3
    stage.clock.step(HOUR)
    standby.reconcile(Key("", "events"), stage.engine_client)
    assert stage.names(EVENTS) == []


def test_unexpired_events_are_kept() -> None:
    stage = a_stage()
    stage.create("/api/v1/namespaces/a/configmaps", {"metadata": {"name": "old"}})
    wait(stage, 2 * HOUR)
    assert stage.written() == []

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


def tell(stage: WorkedStage, name: str, **metadata: object) -> None:
    involved = {"kind": "Pod", "name": "p", "namespace": "a"}
    stage.create(COLLECTION, {"metadata": {"name": name, **metadata}, "involvedObject": involved, "reason": "Told"})


def wait(stage: WorkedStage, seconds: float) -> None:
    """Advance the time step by step, each step as long as the controller's interval."""
    until = stage.clock.monotonic() + seconds
    while stage.clock.monotonic() < until:
        stage.pass_by(min(INTERVAL, until - stage.clock.monotonic()))


def test_an_event_goes_an_hour_after_it_was_told() -> None:
    stage = a_stage()
    tell(stage, "old")
    wait(stage, 1800)
    tell(stage, "young")
    wait(stage, HOUR - 1800 - 1)
    assert stage.names(EVENTS) == ["old", "young"]
    wait(stage, 1 + INTERVAL)
    assert stage.names(EVENTS) == ["young"]
    assert stage.written() == [("DELETED", "a/old")]


def test_watchers_receive_changes() -> None:
    stage = a_stage()
    tell(stage, "old")
    head = stage.log.head().revision
    wait(stage, HOUR + INTERVAL)
    watched = stage.send("GET", COLLECTION, query={"watch": "true", "resourceVersion": str(head)}).body
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in watched] == [("DELETED", "old")]


def test_one_that_is_counted_once_more_begins_anew() -> None:
    stage = a_stage()
    tell(stage, "counted")
    wait(stage, HOUR - 60)
    stage.patch(f"{COLLECTION}/counted", {"count": 2})
    wait(stage, HOUR - 60)
    assert stage.names(EVENTS) == ["counted"]
    wait(stage, 60 + INTERVAL)
    assert stage.names(EVENTS) == []


def test_one_that_changes_at_that_moment_stays_and_the_others_go() -> None:
    stage = a_stage()
    tell(stage, "changing")
    tell(stage, "old")
    stage.work()
    stage.clock.step(HOUR)
    stage.patch(f"{COLLECTION}/changing", {"count": 2})
    assert stage.controller.process_next(timeout=0), "the cache does not know of the change"
    assert stage.names(EVENTS) == ["changing", "old"]
    stage.hear()
    stage.pass_by(1)
    assert stage.names(EVENTS) == ["changing"]


def test_a_restart_makes_none_younger() -> None:
    stage = a_stage()
    tell(stage, "old")
    wait(stage, HOUR - 60)
    stage.start()
    wait(stage, 60 + INTERVAL)
    assert stage.names(EVENTS) == []


def test_finalizers_hold_no_event_whose_time_is_over() -> None:
    stage = a_stage()
    tell(stage, "held", finalizers=["example.com/hold"])
    wait(stage, HOUR + INTERVAL)
    assert stage.names(EVENTS) == []


def test_many_go_in_few_appends() -> None:
    stage = a_stage()
    for number in range(AT_ONCE + 1):
        tell(stage, f"event-{number}")
    stage.clock.step(HOUR + INTERVAL)
    stage.work()
    gone = [each for each in stage.log.events_after(0, limit=10_000) if each.type is EventType.DELETED]
    assert (len(gone), len({each.append_id for each in gone})) == (AT_ONCE + 1, 2)


def test_standby_controller_keeps_bounded_state() -> None:
    stage = a_stage()
    events = Informers(stage.log, stage.feed, clock=stage.clock)
    standby = EventExpiry(events.informer(EVENTS), stage.log, HOUR, clock=stage.clock)
    events.sync()
    tell(stage, "counted")
    for count in range(2, 2 * ROOM):
        stage.patch(f"{COLLECTION}/counted", {"count": count})
    stage.feed.catch_up()
    while events.step():
        pass
    assert standby.remembered <= ROOM + 3
    stage.clock.step(HOUR)
    standby.reconcile(Key("", "events"), stage.engine_client)
    assert stage.names(EVENTS) == []


def test_nothing_else_goes() -> None:
    stage = a_stage()
    stage.create("/api/v1/namespaces/a/configmaps", {"metadata": {"name": "old"}})
    wait(stage, 2 * HOUR)
    assert stage.written() == []

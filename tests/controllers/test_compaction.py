"""Tests of compaction by rules: which events are removable, and how the reconciler compacts."""

from __future__ import annotations

import random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS, Key, Resource
from ctrlmgr.client import LogClient
from ctrlmgr.controllers.compaction.api_compaction import API, ApiCompactionReconciler
from ctrlmgr.controllers.compaction.controller import CompactionReconciler, compact_by_rule, newest_to_compact
from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.eventlog.api_history import API_COMPACTIONS, oldest_for_clients
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.settings import CompactionSettings, Retention
from ctrlmgr.testing import FakeClock

CONFIG_MAPS = Resource("", "configmaps")
MINUTE = 60.0


def a_log(clock: FakeClock) -> MemoryEventLog:
    """Return a log with ten events at intervals of a minute, the last one now; the events alternate between one
    ConfigMap and one Secret.
    """
    log = MemoryEventLog(clock=clock, random=random.Random(1))
    previous = {"ConfigMap": 0, "Secret": 0}
    for number in range(10):
        kind = "Secret" if number % 2 else "ConfigMap"
        metadata = {"name": "a", "namespace": "default", "uid": "1"}
        obj = Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": metadata, "data": {"n": str(number)}})
        type_ = EventType.MODIFIED if previous[kind] else EventType.ADDED
        clock.step(MINUTE)
        events = log.append([Proposal(type_, obj, previous[kind])], author=Author("alice"))
        previous[kind] = events[0].revision
    return log


def revisions(log: MemoryEventLog) -> list[int]:
    return [event.revision for event in log.scan()]


@pytest.mark.parametrize(
    ("rule", "settings", "newest"),
    [
        pytest.param(Retention(), {"min_age": 0, "min_revisions": 0}, 10, id="nothing in the way"),
        pytest.param(Retention(), {"min_age": 3 * MINUTE, "min_revisions": 0}, 7, id="the minimum age"),
        pytest.param(
            Retention(keep_for=5 * MINUTE), {"min_age": 3 * MINUTE, "min_revisions": 0}, 5, id="the rule's window"
        ),
        pytest.param(
            Retention(keep_for=MINUTE), {"min_age": 3 * MINUTE, "min_revisions": 0}, 7, id="the older of the two"
        ),
        pytest.param(Retention(), {"min_age": 0, "min_revisions": 8}, 2, id="the minimum number of revisions"),
        pytest.param(Retention(), {"min_age": 0, "min_revisions": 80}, -70, id="a log that is too short"),
    ],
)
def test_an_event_is_removed_only_if_all_conditions_hold(
    rule: Retention, settings: dict[str, float], newest: int
) -> None:
    clock = FakeClock()
    rules = CompactionSettings(min_age=settings["min_age"], min_revisions=int(settings["min_revisions"]))
    assert newest_to_compact(a_log(clock), rule, rules, now=clock.now()) == newest


def test_only_the_rules_resource_is_compacted() -> None:
    clock = FakeClock()
    log = a_log(clock)
    rules = CompactionSettings(min_age=0.0, min_revisions=0)
    done = compact_by_rule(log, CONFIG_MAPS, Retention(keep=2), rules, now=clock.now())
    assert done == (10, 3)
    assert revisions(log) == [2, 4, 6, 7, 8, 9, 10]


def test_a_short_log_is_not_compacted() -> None:
    clock = FakeClock()
    log = a_log(clock)
    assert compact_by_rule(log, CONFIG_MAPS, Retention(), CompactionSettings(), now=clock.now()) == (0, 0)
    assert log.floor() == 0


def test_the_reconciler_compacts_the_resource_its_key_names() -> None:
    clock = FakeClock()
    log = a_log(clock)
    rules = CompactionSettings(
        min_age=0.0, min_revisions=0, resources={"configmaps": Retention(), "secrets": Retention()}
    )
    reconciler = CompactionReconciler(log, rules, clock=clock)
    client = LogClient(log, author=Author("x"), clock=clock, new_uid=lambda: "2")
    assert reconciler.due() == [Key("", "configmaps"), Key("", "secrets")]
    reconciler.reconcile(Key("", "configmaps"), client)
    assert revisions(log) == [2, 4, 6, 8, 9, 10]
    reconciler.reconcile(Key("", "pods"), client)
    assert revisions(log) == [2, 4, 6, 8, 9, 10]


def test_the_history_of_secrets_is_removed_by_age_alone() -> None:
    clock = FakeClock()
    log = a_log(clock)
    settings = CompactionSettings(min_age=0.0, secrets_for=3 * MINUTE)
    reconciler = CompactionReconciler(log, settings, clock=clock)
    assert Key("", "secrets") in reconciler.due()
    client = LogClient(log, author=Author("x"), clock=clock, new_uid=lambda: "2")
    reconciler.reconcile(Key("", "secrets"), client)
    assert revisions(log) == [1, 3, 5, 6, 7, 8, 9, 10]
    assert log.floor(SECRETS) == 6
    reconciler.reconcile(Key("", "secrets"), client)
    assert log.floor(SECRETS) == 6, "no floor is raised for nothing"


@pytest.mark.parametrize(
    ("settings", "forgets"),
    [
        (CompactionSettings(), True),
        (CompactionSettings(secrets_for=0.0), False),
        (CompactionSettings(resources={"secrets": Retention(keep=5)}), True),
    ],
)
def test_the_history_of_secrets_is_removed_unless_disabled(settings: CompactionSettings, forgets: bool) -> None:
    log = a_log(FakeClock())
    due = CompactionReconciler(log, settings, clock=FakeClock()).due()
    assert due.count(Key("", "secrets")) == forgets


def test_the_api_keeps_revisions_within_the_interval_and_the_log_keeps_all() -> None:
    clock = FakeClock()
    log = a_log(clock)
    client = LogClient(log, author=Author("server"), clock=clock, new_uid=lambda: "2")
    reconciler = ApiCompactionReconciler(log, 5 * MINUTE, clock=clock)
    reconciler.reconcile(API, client)
    assert oldest_for_clients(log) == 5  # revision 10 was written now, and there is one write per minute
    assert revisions(log) == [*range(1, 12)]
    clock.step(3 * MINUTE)
    reconciler.reconcile(API, client)
    assert oldest_for_clients(log) == 8


def test_compactions_of_the_api_alone_write_no_further_event() -> None:
    clock = FakeClock()
    log = a_log(clock)
    client = LogClient(log, author=Author("server"), clock=clock, new_uid=lambda: "2")
    reconciler = ApiCompactionReconciler(log, 5 * MINUTE, clock=clock)
    for _ in range(6):
        clock.step(10 * MINUTE)
        reconciler.reconcile(API, client)
    assert [each.revision for each in log.events_after(0, resource=API_COMPACTIONS)] == [11]


def test_the_oldest_revision_for_the_api_never_decreases() -> None:
    clock = FakeClock()
    log = a_log(clock)
    client = LogClient(log, author=Author("server"), clock=clock, new_uid=lambda: "2")
    ApiCompactionReconciler(log, MINUTE, clock=clock).reconcile(API, client)
    ApiCompactionReconciler(log, 5 * MINUTE, clock=clock).reconcile(API, client)
    assert oldest_for_clients(log) == 9


def test_a_young_log_is_not_compacted_for_the_api() -> None:
    clock = FakeClock()
    log = a_log(clock)
    client = LogClient(log, author=Author("server"), clock=clock, new_uid=lambda: "2")
    ApiCompactionReconciler(log, 60 * MINUTE, clock=clock).reconcile(API, client)
    assert log.get(API_COMPACTIONS, Key("", "oldest")) is None

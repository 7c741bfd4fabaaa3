from __future__ import annotations

import random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES
from ctrlmgr.controllers.endpoints.pod_changes import PodChanges, stops_being_ready
from ctrlmgr.eventlog.event import Author, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_pod, a_service

WEB = {"app": "web"}
DB = {"app": "db"}
BOTH = {"app": "web", "tier": "a"}
SINCE = "2026-01-01T00:00:01Z"

SERVICES_THERE = [
    a_service("web", selector=WEB),
    a_service("web-tier-a", selector=BOTH),
    a_service("db", selector=DB),
    a_service("all", selector={}),
    a_service("manual", selects_nothing=True),
    a_service("external", selector=WEB, type="ExternalName"),
    a_service("web", namespace="elsewhere", selector=WEB),
]


class Cluster:
    """A log with services, and the informer that reads from this log."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.log = MemoryEventLog(clock=clock, random=random.Random(0))
        self.append(EventType.ADDED, *SERVICES_THERE)
        self.informers = Informers(self.log, EventWindow(self.log, clock=clock), clock=clock)
        self.changes = PodChanges(self.informers.informer(SERVICES))
        self.informers.sync()

    def append(self, kind: EventType, *services: Object) -> None:
        proposals = [Proposal(kind, service, None) for service in services]
        self.log.append(proposals, author=Author("tester"))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def changes(cluster: Cluster) -> PodChanges:
    return cluster.changes


def names(changes: PodChanges, change: Change) -> list[str]:
    keys = changes(change)
    assert {key.namespace for key in keys} <= {"default"}
    return [key.name for key in keys]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(WEB, ["all", "external", "web"], id="every service whose selector matches"),
        pytest.param(BOTH, ["all", "external", "web", "web-tier-a"], id="selectors of several labels"),
        pytest.param(DB, ["all", "db"], id="and no other"),
        pytest.param({}, ["all"], id="an empty selector matches a pod without labels"),
    ],
)
@pytest.mark.parametrize("type_", [EventType.ADDED, EventType.DELETED], ids=["added", "deleted"])
def test_a_created_or_deleted_pod_enqueues_its_services(
    changes: PodChanges, labels: dict[str, str], expected: list[str], type_: EventType
) -> None:
    pod = a_pod(labels=labels)
    change = Change(type_, None, pod, 9) if type_ is EventType.ADDED else Change(type_, pod, None, 9)
    assert names(changes, change) == expected


ALL_OF_WEB = ["all", "external", "web"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(a_pod(), a_pod(ready=False), ALL_OF_WEB, id="it is no longer ready"),
        pytest.param(a_pod(ready=None), a_pod(), ALL_OF_WEB, id="it became ready"),
        pytest.param(a_pod(ips=[]), a_pod(), ALL_OF_WEB, id="it got an address"),
        pytest.param(a_pod(), a_pod(ips=["10.0.0.1", "fd00::1"]), ALL_OF_WEB, id="it got a second address"),
        pytest.param(
            a_pod(ips=["10.0.0.1", "fd00::1"]), a_pod(ips=["fd00::1", "10.0.0.1"]), ALL_OF_WEB, id="addresses swapped"
        ),
        pytest.param(a_pod(), a_pod(deleted_at=SINCE), ALL_OF_WEB, id="its deletion began"),
        pytest.param(
            a_pod(deleted_at=SINCE), a_pod(deleted_at=SINCE), ALL_OF_WEB, id="any update while it is being deleted"
        ),
        pytest.param(a_pod(), a_pod(phase="Failed"), ALL_OF_WEB, id="it came to its end"),
        pytest.param(a_pod(node=""), a_pod(node="node-b"), ALL_OF_WEB, id="it got its node"),
        pytest.param(a_pod(), a_pod(uid="another"), ALL_OF_WEB, id="it is another pod"),
        pytest.param(a_pod(), a_pod(phase="Pending"), [], id="phases of its life do not matter"),
        pytest.param(a_pod(ready_since=SINCE), a_pod(), [], id="nor since when it is ready"),
        pytest.param(a_pod(), a_pod(labels={**WEB, "x": "y"}), [], id="labels that no selector names"),
        pytest.param(a_pod(), a_pod(labels=BOTH), ["web-tier-a"], id="labels that bring it into one more"),
        pytest.param(a_pod(labels=BOTH), a_pod(), ["web-tier-a"], id="labels that take it out of one"),
        pytest.param(
            a_pod(labels=WEB), a_pod(labels=DB), ["db", "external", "web"], id="only those it joins or leaves"
        ),
        pytest.param(
            a_pod(labels=WEB),
            a_pod(labels=DB, ready=False),
            ["all", "db", "external", "web"],
            id="all of the old and the new when the pod changed as well",
        ),
    ],
)
def test_a_changed_pod_enqueues_its_services(
    changes: PodChanges, old: Object, new: Object, expected: list[str]
) -> None:
    assert names(changes, Change(EventType.MODIFIED, old.at(1), new.at(2), 2)) == expected


def test_an_equal_version_is_no_change(changes: PodChanges) -> None:
    assert names(changes, Change(EventType.MODIFIED, a_pod(revision=1), a_pod(ready=False, revision=1), 1)) == []


@pytest.mark.parametrize(
    ("kind", "service", "expected"),
    [
        pytest.param(EventType.ADDED, a_service("new", selector=WEB), ["all", "external", "new", "web"], id="comes"),
        pytest.param(EventType.MODIFIED, a_service("web", selector=DB), ["all", "external"], id="turns away"),
        pytest.param(
            EventType.MODIFIED, a_service("db", selector=WEB), ["all", "db", "external", "web"], id="turns to it"
        ),
        pytest.param(EventType.DELETED, a_service("web", selector=WEB), ["all", "external"], id="goes"),
    ],
)
def test_remembered_pods_are_discarded_when_a_service_changes(
    cluster: Cluster, kind: EventType, service: Object, expected: list[str]
) -> None:
    added = Change(EventType.ADDED, None, a_pod(labels=WEB), 9)
    assert names(cluster.changes, added) == ALL_OF_WEB
    cluster.append(kind, service)
    cluster.informers.step()
    assert names(cluster.changes, added) == expected


def test_too_many_labels_are_not_cached(changes: PodChanges) -> None:
    many = {f"{number}-{'x' * 1000}": "y" for number in range(10_000)}
    assert names(changes, Change(EventType.ADDED, None, a_pod(labels=WEB | many), 9)) == ALL_OF_WEB
    assert changes._known.size == 0


@pytest.mark.parametrize(
    ("before", "after", "stops"),
    [
        (True, False, True),
        (False, True, False),
        (True, True, False),
        (None, False, False),
        (True, None, False),
    ],
)
def test_a_pod_that_stops_being_ready_has_priority(before: bool | None, after: bool | None, stops: bool) -> None:
    old, new = (None if ready is None else a_pod(ready=ready) for ready in (before, after))
    assert stops_being_ready(Change(EventType.MODIFIED, old, new, 9)) is stops

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, PODS, SERVICES, Key, Resource
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.recording_continuation import RecordingEnd
from ctrlmgr.recording.capture.watch_merge import Merger

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
KINDS = {PODS: "Pod", SERVICES: "Service"}


def thing(resource: Resource, name: str, revision: int, uid: str = "") -> Object:
    metadata = {"name": name, "namespace": "a", "uid": uid or name, "resourceVersion": str(revision)}
    return Object.from_dict({"kind": KINDS[resource], "apiVersion": "v1", "metadata": metadata})


def ready_events(merger: Merger) -> list[tuple[str, int, str]]:
    return [(each.type.name, each.object.revision, each.object.name) for each in merger.ready()]


def listed(resources: Sequence[Resource] = (PODS, SERVICES), revision: int = 10) -> Merger:
    merger = Merger(resources)
    for resource in resources:
        merger.listed(resource, revision, [], 0)
    return merger


def test_nothing_is_emitted_before_all_streams_have_listed() -> None:
    merger = Merger([PODS, SERVICES])
    merger.listed(PODS, 10, [thing(PODS, "p", 4), thing(PODS, "q", 2)], 0)
    merger.changed(PODS, ADDED, thing(PODS, "r", 12), 0)
    assert (ready_events(merger), merger.complete, merger.waiting) == ([], 0, 3)
    merger.listed(SERVICES, 11, [thing(SERVICES, "s", 3)], 0)
    assert ready_events(merger) == [("ADDED", 2, "q"), ("ADDED", 3, "s"), ("ADDED", 4, "p")]
    merger.progressed(SERVICES, 12)
    assert ready_events(merger) == [("ADDED", 12, "r")]


def test_a_slower_watch_delays_the_others() -> None:
    merger = listed()
    merger.changed(PODS, ADDED, thing(PODS, "p", 15), 0)
    assert ready_events(merger) == []
    merger.changed(SERVICES, ADDED, thing(SERVICES, "s", 12), 0)
    assert ready_events(merger) == [("ADDED", 12, "s")]
    merger.changed(SERVICES, MODIFIED, thing(SERVICES, "s", 20), 0)
    assert ready_events(merger) == [("ADDED", 15, "p")]


def test_repetitions_of_a_resumed_watch_are_dropped() -> None:
    merger = listed([PODS])
    for _ in range(2):
        merger.changed(PODS, ADDED, thing(PODS, "p", 11), 0)
        merger.changed(PODS, MODIFIED, thing(PODS, "p", 12), 0)
    assert ready_events(merger) == [("ADDED", 11, "p"), ("MODIFIED", 12, "p")]


def test_existing_objects_are_added_first() -> None:
    merger = Merger([PODS])
    merger.listed(PODS, 10, [thing(PODS, "p", 4)], 7)
    merger.changed(PODS, MODIFIED, thing(PODS, "p", 11), 8)
    merger.changed(PODS, DELETED, thing(PODS, "p", 12), 9)
    changes = list(merger.ready())
    assert [(each.type, each.object.revision, each.recorded_at) for each in changes] == [
        (ADDED, 4, 7),
        (MODIFIED, 11, 8),
        (DELETED, 12, 9),
    ]


def test_a_new_list_emits_the_missed_changes() -> None:
    merger = Merger([PODS])
    merger.listed(PODS, 10, [thing(PODS, name, 1 + at) for at, name in enumerate("abcd")], 0)
    assert len(ready_events(merger)) == 4
    now = [thing(PODS, "a", 1), thing(PODS, "b", 15), thing(PODS, "c", 19, uid="another"), thing(PODS, "e", 20)]
    merger.listed(PODS, 20, now, 0)
    changes = ready_events(merger)
    assert [each for each in changes if each[0] != "DELETED"] == [
        ("MODIFIED", 15, "b"),
        ("ADDED", 19, "c"),
        ("ADDED", 20, "e"),
    ]
    assert sorted(name for type_, _, name in changes if type_ == "DELETED") == ["c", "d"]
    revisions = [revision for _, revision, _ in changes]
    assert revisions == sorted(set(revisions))
    assert all(10 < revision <= 20 for revision in revisions)
    order = [(type_, name) for type_, _, name in changes]
    assert order.index(("DELETED", "c")) < order.index(("ADDED", "c"))


def ending(*objects: Object, revision: int) -> RecordingEnd:
    found: dict[Resource, dict[Key, Object]] = {}
    for obj in objects:
        found.setdefault(obj.resource, {})[obj.key] = obj
    return RecordingEnd(Path("earlier.jsonl"), revision, found)


def test_a_continuation_emits_differences_to_the_previous_recording() -> None:
    merger = Merger([PODS, SERVICES])
    kept, changed, gone = (thing(PODS, name, 3) for name in ("kept", "changed", "gone"))
    again = thing(PODS, "again", 2)
    merger.resume(ending(kept, changed, gone, again, revision=10))
    now = [kept, thing(PODS, "changed", 12), thing(PODS, "new", 13), thing(PODS, "again", 15, "other")]
    merger.listed(PODS, 20, now, 0)
    merger.listed(SERVICES, 20, [thing(SERVICES, "s", 4)], 0)
    changes = ready_events(merger)
    assert changes[:4] == [
        ("MODIFIED", 12, "changed"),
        ("ADDED", 13, "new"),
        ("DELETED", 14, "again"),
        ("ADDED", 15, "again"),
    ]
    assert sorted(changes[4:]) == [("ADDED", 20, "s"), ("DELETED", 19, "gone")], "s is older than what was recorded"


@pytest.mark.parametrize(
    ("revision", "uid", "problem"),
    [
        (9, "one", "the cluster is at 9: it is another cluster"),
        (20, "two", "whose namespace kube-system has another uid"),
    ],
)
def test_a_recording_of_another_cluster_is_not_continued(revision: int, uid: str, problem: str) -> None:
    def system(uid: str) -> Object:
        metadata = {"name": "kube-system", "uid": uid, "resourceVersion": "1"}
        return Object.from_dict({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata})

    merger = Merger([NAMESPACES])
    merger.resume(ending(system("one"), revision=10))
    with pytest.raises(SettingsError, match=problem):
        merger.listed(NAMESPACES, revision, [system(uid)], 0)


def test_generated_revisions_are_limited_by_the_gap() -> None:
    merger = Merger([PODS])
    merger.resume(ending(revision=10))
    merger.listed(PODS, 11, [thing(PODS, "a", 1), thing(PODS, "b", 2)], 0)
    with pytest.raises(SettingsError, match="there are more changes than revisions"):
        list(merger.ready())


def test_a_watch_that_starts_later_delays_the_others_from_its_start() -> None:
    merger = listed([PODS])
    merger.changed(PODS, ADDED, thing(PODS, "p", 12), 0)
    merger.begin(SERVICES, 12)
    merger.changed(PODS, MODIFIED, thing(PODS, "p", 15), 0)
    assert ready_events(merger) == [("ADDED", 12, "p")]
    merger.changed(SERVICES, ADDED, thing(SERVICES, "s", 14), 0)
    merger.progressed(SERVICES, 15)
    assert ready_events(merger) == [("ADDED", 14, "s"), ("MODIFIED", 15, "p")]


def test_a_late_event_follows_already_emitted_ones() -> None:
    merger = listed([PODS])
    merger.progressed(PODS, 20)
    assert ready_events(merger) == []
    merger.begin(SERVICES, 0)
    merger.listed(SERVICES, 22, [thing(SERVICES, "old", 3), thing(SERVICES, "new", 22)], 0)
    merger.progressed(PODS, 30)
    assert ready_events(merger) == [("ADDED", 21, "old"), ("ADDED", 22, "new")]


def test_an_ended_watch_emits_deletions_of_its_objects() -> None:
    merger = listed()
    merger.changed(SERVICES, ADDED, thing(SERVICES, "s", 12), 0)
    merger.changed(PODS, ADDED, thing(PODS, "p", 20), 0)
    merger.end(SERVICES, 20, 0)
    assert ready_events(merger) == [("ADDED", 12, "s"), ("DELETED", 19, "s"), ("ADDED", 20, "p")]
    merger.end(PODS, 25, 0)
    assert ready_events(merger) == [("DELETED", 25, "p")]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[Resource, EventType, Object]], list[Any]]:
    """The history of a cluster, and the order in which the cluster's watches send events."""
    existing: set[tuple[Resource, str]] = set()
    history = []
    for revision in range(1, draw(st.integers(1, 25))):
        resource, name = draw(st.sampled_from([PODS, SERVICES])), draw(st.sampled_from("abc"))
        if (resource, name) not in existing:
            type_ = ADDED
            existing.add((resource, name))
        else:
            type_ = draw(st.sampled_from([MODIFIED, DELETED]))
            if type_ is DELETED:
                existing.remove((resource, name))
        history.append((resource, type_, thing(resource, name, revision)))
    return history, draw(st.permutations([PODS] * len(history) + [SERVICES] * len(history)))


@given(histories())
def test_two_watches_are_merged_into_one_history(
    drawn: tuple[list[tuple[Resource, EventType, Object]], list[Any]],
) -> None:
    history, turns = drawn
    merger = listed(revision=0)
    streams = {each: [change for change in history if change[0] == each] for each in KINDS}
    out = []
    for resource in turns:
        if streams[resource]:
            merger.changed(*streams[resource].pop(0), 0)
        out += ready_events(merger)
        assert out == [(type_.name, obj.revision, obj.name) for _, type_, obj in history[: len(out)]]
    for resource in KINDS:
        merger.progressed(resource, len(history))
    out += ready_events(merger)
    assert len(out) == len(history)
    assert out == [(type_.name, obj.revision, obj.name) for _, type_, obj in history]

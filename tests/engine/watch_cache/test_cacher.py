from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, SERVICES, Key, Resource
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.log_history import read_history
from ctrlmgr.engine.watch_cache.resource_store import EVERYWHERE, Span, path_of
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog.event import Event, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer.event_window import EventWindow
from ctrlmgr.informer.informer import Change
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, remove, thing


class CachedLog:
    """A log, and a cacher that follows the log."""

    def __init__(self, *, window: int = 10_000, capacity: int = 10_000) -> None:
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=Random(1))
        self.feed = EventWindow(self.log, capacity=capacity, clock=self.clock)
        self.cacher = Cacher(self.log, self.feed, window=window)

    def put(self, *proposals: Proposal) -> Sequence[Event]:
        events = self.log.append(proposals, author=AUTHOR)
        self.cacher.step()
        return events

    def names(self, resource: Resource = PODS, namespace: str | None = None) -> list[str]:
        return [str(obj.key) for obj in self.cacher.list(resource, namespace)]


def test_the_cache_starts_with_the_logs_state_and_follows_it() -> None:
    fold = CachedLog()
    fold.log.append([add(thing("b")), add(thing("a")), add(thing("s", kind="Service"))], author=AUTHOR)
    cacher = Cacher(fold.log, fold.feed)
    assert (cacher.revision, cacher.oldest) == (3, 3)
    assert [obj.name for obj in cacher.list(PODS)] == ["a", "b"]
    fold.log.append([modify(thing("a", spec=1), 2), remove(thing("b"), 1), add(thing("c"))], author=AUTHOR)
    assert cacher.step() == 3
    assert cacher.step() == 0
    found = cacher.get(PODS, Key("shop", "a"))
    assert found is not None
    assert (found.revision, found.to_dict()["spec"]) == (4, 1)
    assert cacher.get(PODS, Key("shop", "b")) is None
    assert [obj.name for obj in cacher.list(PODS)] == ["a", "c"]
    assert cacher.get(Resource("", "nothings"), Key("", "x")) is None
    assert cacher.list(Resource("", "nothings")) == []


def test_lists_are_sorted_by_path() -> None:
    fold = CachedLog()
    places = [("a", "z"), ("a-b", "c"), ("a", "b"), ("a0", "a"), ("b", "a")]
    fold.put(*(add(thing(name, namespace=namespace)) for namespace, name in places))
    # the character "-" is sorted before "/", and "/" before "0"
    assert fold.names() == ["a-b/c", "a/b", "a/z", "a0/a", "b/a"]
    assert fold.names(namespace="a") == ["a/b", "a/z"]
    assert fold.names(namespace="a-b") == ["a-b/c"]
    assert fold.names(namespace="c") == []


def test_each_resource_has_separate_changes() -> None:
    fold = CachedLog()
    fold.put(add(thing("a")), add(thing("s", kind="Service")))
    fold.put(modify(thing("a", spec=1), 1), remove(thing("s", kind="Service"), 2))
    changes = fold.cacher.changes_after(0, PODS)
    assert changes is not None
    assert [(change.type.name, change.revision) for change in changes] == [("ADDED", 1), ("MODIFIED", 3)]
    assert changes[1].old is changes[0].new
    assert [change.revision for change in fold.cacher.changes_after(0, PODS, 1) or ()] == [1]
    assert [change.revision for change in fold.cacher.changes_after(2, SERVICES) or ()] == [4]
    assert fold.cacher.changes_after(4, PODS) == ()
    assert fold.cacher.changes_after(99, PODS) == ()


def test_the_window_is_bounded_and_reports_discarded_revisions() -> None:
    fold = CachedLog(window=8)
    fold.put(add(thing("a")), add(thing("s", kind="Service")))
    for revision in range(2, 12):
        fold.put(modify(thing("a", spec=revision), None))
    assert (fold.cacher.revision, fold.cacher.oldest) == (12, 3)
    assert fold.cacher.changes_after(2, PODS) is None
    assert [change.revision for change in fold.cacher.changes_after(3, PODS) or ()] == list(range(4, 13))
    assert fold.cacher.changes_after(3, SERVICES) == ()
    assert fold.cacher.at(2, PODS, EVERYWHERE) is None


def test_changes_discarded_by_the_feed_are_read_from_the_log() -> None:
    fold = CachedLog(capacity=1)
    fold.log.append([add(thing(name)) for name in "abc"], author=AUTHOR)
    assert (fold.cacher.step(), fold.cacher.is_behind) == (0, True)
    fold.cacher.take(fold.cacher.read_missing())
    assert (fold.cacher.step(), fold.cacher.is_behind) == (0, False)
    assert (fold.cacher.revision, fold.cacher.oldest) == (3, 0)
    assert [change.revision for change in fold.cacher.changes_after(0, PODS) or ()] == [1, 2, 3]


def test_a_compaction_ahead_of_the_cache_rebuilds_it() -> None:
    fold = CachedLog(capacity=1)
    log, cacher = fold.log, fold.cacher
    for revision in range(4):
        log.append([modify(thing("a", spec=revision), None) if revision else add(thing("a"))], author=AUTHOR)
    log.append([add(thing("b"))], author=AUTHOR)
    log.compact(4)
    assert (cacher.step(), cacher.is_behind) == (0, True)
    cacher.take(cacher.read_missing())
    assert (cacher.step(), cacher.is_behind) == (0, False)
    assert [obj.name for obj in cacher.list(PODS)] == ["a", "b"]
    assert (cacher.revision, cacher.oldest) == (5, 5)
    assert cacher.changes_after(0, PODS) is None


def test_the_cache_reports_changes_of_selected_resources() -> None:
    fold = CachedLog()
    both = (SERVICES, Resource("", "nothings"))
    assert fold.cacher.changed_at(both) == 0
    fold.put(add(thing("a")))
    assert fold.cacher.changed_at(both) == 0
    fold.put(add(thing("s", kind="Service")))
    fold.put(add(thing("b")))
    assert (fold.cacher.changed_at(both), fold.cacher.changed_at((PODS, SERVICES))) == (2, 3)
    fold.put(remove(thing("s", kind="Service"), 2))
    assert fold.cacher.changed_at(both) == 4


def test_a_reset_counts_as_a_change() -> None:
    fold = CachedLog(capacity=5)
    fold.put(add(thing("a")))
    assert fold.cacher.changed_at((SERVICES,)) == 0
    fold.log.append([add(thing("s", kind="Service")), *(add(thing(f"b{n}")) for n in range(20))], author=AUTHOR)
    fold.log.compact(fold.log.head().revision)
    fold.cacher.take(fold.cacher.read_missing())
    assert fold.cacher.list(SERVICES)
    assert fold.cacher.changed_at((SERVICES,)) > 0


def test_old_changes_from_the_log_equal_the_caches() -> None:
    fold = CachedLog()
    fold.put(add(thing("a")), add(thing("b")))
    fold.put(modify(thing("a", spec=1), 1), modify(thing("a", spec=2), None), remove(thing("b"), 2))
    fold.put(add(thing("b", spec=3)), add(thing("s", kind="Service")))
    for revision in range(7):
        ours = fold.cacher.changes_after(revision, PODS)
        assert list(read_history(fold.log, PODS, revision, 500).changes) == list(ours or ())
    two = read_history(fold.log, PODS, 2, 2)
    assert ([change.revision for change in two.changes], two.whole) == ([3, 4], False)
    assert read_history(fold.log, PODS, 2, 500).whole


def test_a_compacted_revision_is_expired_and_kept_ones_have_their_old_states() -> None:
    fold = CachedLog()
    fold.put(add(thing("a")))
    fold.put(modify(thing("a", spec=1), 1), modify(thing("a", spec=2), None))
    fold.log.compact(2)
    with pytest.raises(Expired):
        read_history(fold.log, PODS, 1, 10)
    (change,) = read_history(fold.log, PODS, 2, 10).changes
    assert change.old is not None
    assert change.old.to_dict()["spec"] == 1


PLACES = [("a", "x"), ("a", "y"), ("a-b", "x"), ("a0", "x"), ("b", "z")]
STEPS = st.lists(st.tuples(st.sampled_from(PLACES), st.booleans()), max_size=30)


def play(fold: CachedLog, steps: Sequence[tuple[tuple[str, str], bool]]) -> None:
    """Create or change the object at a key; if `delete` is set and the object exists, delete it."""
    for (namespace, name), keep in steps:
        current = fold.cacher.get(PODS, Key(namespace, name))
        obj = thing(name, namespace=namespace, spec=fold.cacher.revision)
        if current is None:
            fold.put(add(obj))
        else:
            fold.put(modify(obj, current.revision) if keep else remove(current, current.revision))


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([3, 10_000]))
def test_every_past_revision_equals_the_log(steps: list[tuple[tuple[str, str], bool]], window: int) -> None:
    fold = CachedLog(window=window)
    play(fold, steps)
    for revision in range(fold.cacher.revision + 1):
        for span in (EVERYWHERE, Span.of("a"), Span.of("a").after("a/y"), Span.at("a/x"), Span.of("none")):
            objects = fold.log.snapshot(PODS, at=revision).objects
            expected = sorted((obj for obj in objects if path_of(obj.key) in span), key=lambda obj: path_of(obj.key))
            past = fold.cacher.at(revision, PODS, span)
            if past is None:
                assert revision < fold.cacher.oldest
                continue
            assert list(past) == expected
            assert len(past) == len(expected)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_changes_lead_from_any_revision_to_the_present(steps: list[tuple[tuple[str, str], bool]]) -> None:
    fold = CachedLog()
    play(fold, steps)
    present = {obj.key: obj for obj in fold.cacher.list(PODS)}
    for revision in range(fold.cacher.revision + 1):
        state: dict[Key, Object] = {obj.key: obj for obj in fold.log.snapshot(PODS, at=revision).objects}
        for change in fold.cacher.changes_after(revision, PODS) or ():
            follow(state, change)
        assert state == present


def follow(state: dict[Key, Object], change: Change) -> None:
    obj = change.new or change.old
    assert obj is not None
    assert state.pop(obj.key, None) == change.old
    assert (change.old is None, change.new is None) == (
        change.type is EventType.ADDED,
        change.type is EventType.DELETED,
    )
    if change.new is not None:
        state[obj.key] = change.new

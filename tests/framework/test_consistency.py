"""Tests that caches contain the writes of this process, whether the response to a write or its watch event arrives
first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.framework.remote.consistency import ConsistencyStore

PODS = Resource("", "pods")
SHOPS = Resource("example.com", "shops")
A, B = Key("default", "a"), Key("default", "b")
TERMINATING: dict[str, object] = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/held"]}


def pod(key: Key = A, revision: int = 1, uid: str = "1", is_terminating: bool = False) -> Object:
    about: dict[str, object] = {
        "name": key.name,
        "namespace": key.namespace,
        "uid": uid,
        "resourceVersion": str(revision),
    }
    about |= TERMINATING if is_terminating else {}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": about})


class ConsistencyStage:
    """A cache of pods, and the component that tracks this process's writes to the pods."""

    def __init__(self, *cached: Object) -> None:
        self.cache = {each.key: each for each in cached}
        self.store = ConsistencyStore()
        self.store.follow(PODS, self.cache.get)

    @property
    def shows_all(self) -> bool:
        return self.store.shown() >= self.store.newest()

    # Return the two steps of a write, which can be executed in either order.

    def answer(self, key: Key, revision: int) -> Callable[[], None]:
        return lambda: self.store.wrote(PODS, key, revision)

    def event(self, obj: Object) -> Callable[[], None]:
        def happen() -> None:
            self.cache[obj.key] = obj
            self.store.changed(PODS, obj.key, obj.revision)

        return happen

    def answer_deletion(self, obj: Object) -> Callable[[], None]:
        return lambda: self.store.deleted(obj)

    def event_deleted(self, key: Key, revision: int) -> Callable[[], None]:
        def happen() -> None:
            self.cache.pop(key, None)
            self.store.changed(PODS, key, revision)

        return happen

    def listed(self, revision: int, *objects: Object) -> Callable[[], None]:
        def happen() -> None:
            self.cache.clear()
            self.cache.update({each.key: each for each in objects})
            self.store.listed(PODS, revision)

        return happen


def test_writes_are_visible_at_the_end_and_never_early_in_every_order() -> None:
    for order in permutations(range(4)):
        world = ConsistencyStage()
        steps = [world.answer(A, 10), world.answer(B, 12), world.event(pod(A, 10)), world.event(pod(B, 12))]
        if order.index(2) > order.index(3):
            continue  # a watch sends events in the order of revisions
        for at in range(4):
            steps[order[at]]()
            done = order[: at + 1]
            missing = [revision for revision, write in ((10, 0), (12, 1)) if write in done and write + 2 not in done]
            assert world.shows_all == (not missing), order
            assert not missing or world.store.shown() == missing[0] - 1, order


@pytest.mark.parametrize("last", [pytest.param(True, id="answer-last"), pytest.param(False, id="event-last")])
@pytest.mark.parametrize("marks", [False, True])
def test_a_deletion_is_observed_if_the_cache_has_no_or_a_terminating_object(last: bool, marks: bool) -> None:
    world = ConsistencyStage(pod(A, 5))
    event = world.event(pod(A, 9, is_terminating=True)) if marks else world.event_deleted(A, 9)
    first, second = (event, world.answer_deletion(pod(A, 5)))[:: 1 if last else -1]
    first()
    assert world.shows_all == last
    second()
    assert world.shows_all


def test_a_deletion_is_not_observed_by_an_update_of_the_object() -> None:
    world = ConsistencyStage(pod(A, 5), pod(B, 6))
    world.answer_deletion(pod(A, 5))()
    world.event(pod(A, 7))()
    world.event(pod(B, 8))()
    world.store.progressed(PODS, 8)
    assert not world.shows_all
    world.event_deleted(A, 9)()
    assert world.shows_all


def test_a_deletion_is_observed_if_another_object_has_the_name() -> None:
    world = ConsistencyStage(pod(A, 5))
    world.answer_deletion(pod(A, 5))()
    world.event(pod(A, 9, uid="2"))()
    assert world.shows_all


def test_a_write_without_changes_has_no_event_and_is_not_awaited() -> None:
    world = ConsistencyStage()
    world.event(pod(A, 10))()
    world.answer(A, 10)()
    assert world.shows_all


def test_a_write_with_a_lost_response_is_not_awaited_and_hides_no_other() -> None:
    world = ConsistencyStage()
    world.event(pod(A, 10))()  # the answer of this write never arrived
    world.answer(B, 12)()
    assert not world.shows_all
    world.event(pod(B, 12))()
    assert world.shows_all


@pytest.mark.parametrize(("revision", "shows"), [(11, False), (12, True), (13, True)])
def test_a_new_list_shows_all_writes_up_to_its_revision(revision: int, shows: bool) -> None:
    world = ConsistencyStage(pod(A, 5))
    world.answer(A, 12)()
    world.listed(revision, pod(A, 12))()
    assert world.shows_all == shows
    world.store.progressed(PODS, 13)  # the first bookmark after the write
    assert world.shows_all


def test_a_list_before_a_deletion_does_not_show_it_and_a_later_one_does() -> None:
    world = ConsistencyStage(pod(A, 5))
    world.answer_deletion(pod(A, 5))()
    world.listed(8, pod(A, 5))()
    assert not world.shows_all
    world.listed(9)()
    assert world.shows_all


def test_an_older_list_after_a_database_restore_is_accepted() -> None:
    world = ConsistencyStage(pod(A, 500))
    world.store.progressed(PODS, 500)
    world.listed(20, pod(A, 20))()
    world.answer(A, 21)()
    assert not world.shows_all
    world.event(pod(A, 21))()
    assert world.shows_all


def test_an_unserved_kind_blocks_nothing() -> None:
    world = ConsistencyStage(pod(A, 5), pod(B, 6))
    world.answer(A, 12)()
    world.answer_deletion(pod(B, 6))()
    world.listed(0)()
    assert world.shows_all


def test_writes_outside_the_caches_are_not_awaited() -> None:
    world = ConsistencyStage()
    world.store.wrote(SHOPS, A, 40)
    world.store.deleted(Object.from_dict({**pod().to_dict(), "kind": "Shop", "apiVersion": "example.com/v1"}))
    assert world.shows_all
    assert world.store.newest() == 41


def test_writes_outside_the_followed_namespace_are_not_awaited() -> None:
    store = ConsistencyStore()
    store.follow(PODS, lambda key: None, lambda key: key.namespace == "default")
    store.wrote(PODS, Key("elsewhere", "a"), 40)
    assert store.shown() == 40
    store.wrote(PODS, A, 41)
    assert store.shown() == 40

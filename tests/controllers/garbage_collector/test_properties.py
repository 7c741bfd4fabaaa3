"""Property tests of random histories of owners, deletions, restarts and syncs; each test checks all writes and the
final state.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import EventType
from tests.authorization.bootstrap.controllers import account_of
from tests.controllers.garbage_collector.cluster import CONFIG_MAPS, Cluster, absent, blocking, path_of

NAMES = "pqrst"
COLLECTOR = account_of("garbage-collector-controller").name

names = st.sampled_from(NAMES)
references = st.lists(st.tuples(st.sampled_from([*NAMES, "gone"]), st.booleans()), max_size=2)
steps = st.one_of(
    st.tuples(st.just("create"), names, references),
    st.tuples(st.just("own"), names, references),
    st.tuples(st.just("delete"), names, st.sampled_from(["Background", "Foreground", "Orphan"])),
    st.tuples(st.just("hear"), st.integers(1, 4)),
    st.tuples(st.just("work"), st.integers(1, 4)),
    st.tuples(st.just("sync")),
    st.tuples(st.just("start")),
)


class History:
    """A cluster and its clients as a state machine; each step is possible at any time and may do nothing."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.known: dict[str, dict[str, Any]] = {"gone": absent()}

    def take(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        getattr(self, name)(*arguments)

    def create(self, name: str, owners: list[tuple[str, bool]]) -> None:
        if self.cluster.get(name) is None:
            self.known[name] = self.cluster.create(name, *self._references(owners))

    def own(self, name: str, owners: list[tuple[str, bool]]) -> None:
        if self.cluster.get(name) is not None:
            self.cluster.patch(name, ownerReferences=self._references(owners))

    def delete(self, name: str, propagation: str) -> None:
        body = {"propagationPolicy": propagation}
        assert self.cluster.stage.send("DELETE", path_of(name), body).code in (200, 404)

    def hear(self, events: int) -> None:
        self.cluster.informers.step(events)

    def work(self, keys: int) -> None:
        for _ in range(keys):
            self.cluster.controller.process_next(timeout=0)

    def sync(self) -> None:
        self.cluster.informers.sync()

    def start(self) -> None:
        self.cluster.start()

    def _references(self, owners: list[tuple[str, bool]]) -> list[dict[str, Any]]:
        found = [(self.known.get(name, absent(name)), blocks) for name, blocks in owners]
        return [blocking(owner) if blocks else owner for owner, blocks in found]


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=25))
def test_every_history_ends_without_pending_deletions(history: list[tuple[Any, ...]]) -> None:
    run = History()
    for step in history:
        run.take(step)
    cluster = run.cluster
    cluster.settle()
    for _ in range(5):
        cluster.pass_by(10)
    check_the_end(list(cluster.stage.log.snapshot(CONFIG_MAPS).objects))
    check_the_way(cluster)
    head = cluster.head()
    cluster.start()
    cluster.settle()
    assert cluster.head() == head


def check_the_end(left: list[Object]) -> None:
    by_uid = {obj.uid: obj for obj in left}
    for obj in left:
        finalizers = obj.metadata.finalizers or []
        owners = obj.metadata.owner_references or []
        assert "orphan" not in finalizers
        if obj.is_terminating:
            assert any(blocks(each, obj) for each in left), f"nothing holds {obj.name}"
        elif owners:
            assert any(owner.uid in by_uid for owner in owners), f"nobody owns {obj.name}"
            solid = [owner for owner in owners if owner.uid in by_uid and not waits(by_uid[owner.uid])]
            assert solid == owners, f"{obj.name} refers to what does not own it"


def check_the_way(cluster: Cluster) -> None:
    """Check that every owner of each object that the collector deleted was deleted, or waited for the deletion of its
    dependents.
    """
    state: dict[str, Object] = {}
    for event in cluster.stage.log.events_after(0):
        if event.object.resource != CONFIG_MAPS:
            continue
        old = state.pop(event.object.uid, None)
        if event.actor == COLLECTOR and old is not None and ended(event, old):
            owners = old.metadata.owner_references or []
            assert owners
            assert all(owner.uid not in state or waits(state[owner.uid]) for owner in owners if owner.uid != old.uid)
        if event.type is not EventType.DELETED:
            state[event.object.uid] = event.object


def ended(event: Any, old: Object) -> bool:
    """Return whether an event began the deletion of an object, or removed an object whose deletion was not requested
    before.
    """
    return not old.is_terminating and (event.type is EventType.DELETED or event.object.is_terminating)


def waits(obj: Object) -> bool:
    return obj.is_terminating and "foregroundDeletion" in (obj.metadata.finalizers or [])


def blocks(dependent: Object, owner: Object) -> bool:
    owners = dependent.metadata.owner_references or []
    return any(each.uid == owner.uid and each.block_owner_deletion for each in owners)

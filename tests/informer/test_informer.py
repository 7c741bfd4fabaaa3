from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator, Sequence

import pytest

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, SERVICES, Key, Resource, Revision
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog.event import Event, EventType, Snapshot
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.testing import FakeClock
from tests.informer.shared_log import SharedLog, thing

ADDED, MODIFIED, DELETED = EventType


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(clock: FakeClock) -> SharedLog:
    return SharedLog(clock=clock)


@pytest.fixture
def informers(log: SharedLog, clock: FakeClock) -> Informers:
    return Informers(log, EventWindow(log, capacity=4, clock=clock), clock=clock)


def heard(informers: Informers, resource: Resource = PODS) -> list[tuple[str, str, int]]:
    """Record the arguments of handler calls as (type, name, revision)."""
    told: list[tuple[str, str, int]] = []

    def handler(change: Change) -> None:
        obj = change.new or change.old
        assert obj is not None
        assert (change.old is None, change.new is None) == (change.type is ADDED, change.type is DELETED)
        told.append((change.type.name, obj.name, change.revision))

    informers.informer(resource).add_handler(handler)
    return told


def step_all(informers: Informers) -> None:
    while informers.step(3):
        pass


def names(objects: list[Object]) -> list[str]:
    return [obj.name for obj in objects]


def test_sync_loads_the_state_and_step_follows(log: SharedLog, informers: Informers) -> None:
    pods = informers.informer(PODS)
    told = heard(informers)
    log.put(thing("b"), thing("a"))
    assert not informers.has_synced()
    assert informers.sync() == 2
    assert informers.has_synced()
    assert pods.has_synced
    assert told == [("ADDED", "a", 2), ("ADDED", "b", 1)]
    del told[:]
    log.put(thing("a", note="new"))
    log.remove(thing("b"))
    log.put(thing("c"))
    assert informers.revision == 2
    assert informers.step() == 3
    assert informers.revision == 5
    assert told == [("MODIFIED", "a", 3), ("DELETED", "b", 4), ("ADDED", "c", 5)]
    assert names(pods.lister.list("default")) == ["a", "c"]
    assert informers.step() == 0


def test_a_replaced_object_keeps_nothing_decoded(log: SharedLog, informers: Informers) -> None:
    changes: list[Change] = []

    def handler(change: Change) -> None:
        assert change.object.labels == {"app": "web"}
        changes.append(change)

    informers.informer(PODS).add_handler(handler)
    informers.sync()
    log.put(thing("a", labels={"app": "web"}))
    log.put(thing("a", labels={"app": "web"}, note="new"))
    step_all(informers)
    log.remove(thing("a"))
    step_all(informers)
    assert [change.type for change in changes] == [ADDED, MODIFIED, DELETED]
    olds = [change.old for change in changes if change.old is not None]
    assert [old._metadata for old in olds] == [None, None]
    assert [old.name for old in olds] == ["a", "a"]  # the object is decoded a second time


def test_the_revision_of_resources_is_known_after_all_have_synced(log: SharedLog, informers: Informers) -> None:
    informers.informer(PODS)
    informers.informer(SERVICES)
    assert informers.changed_at([PODS]) is None
    log.put(thing("a"))
    informers.sync()
    assert informers.changed_at([PODS, SERVICES]) == 1
    log.put(thing("b"))
    log.put(thing("b", note="new"))
    step_all(informers)
    assert (informers.changed_at([PODS]), informers.changed_at([SERVICES])) == (3, 1)
    assert informers.changed_at([SERVICES, PODS]) == 3
    assert informers.changed_at([]) == 0
    assert informers.changed_at([PODS, Resource("", "nodes")]) is None
    log.put(thing("c"))
    informers.sync()
    assert informers.changed_at([SERVICES]) == 4


def test_step_applies_at_most_its_limit(log: SharedLog, informers: Informers) -> None:
    informers.informer(PODS)
    informers.sync()
    log.put(thing("a"), thing("b"), thing("c"))
    assert informers.step(2) == 2
    assert informers.revision == 2
    assert informers.step(2) == 1


def test_the_old_object_of_a_change_is_the_previous_new_one(log: SharedLog, informers: Informers) -> None:
    chain: list[tuple[Object | None, Object | None]] = []
    informers.informer(PODS).add_handler(lambda change: chain.append((change.old, change.new)))
    informers.sync()
    log.put(thing("a", note="1"))
    log.put(thing("a", note="2"))
    log.remove(thing("a"))
    log.put(thing("a", note="3"))
    step_all(informers)
    assert [old for old, _ in chain] == [None, *[new for _, new in chain[:-1]]]
    assert [new and new.revision for _, new in chain] == [1, 2, None, 4]


def test_informers_are_shared_and_separate_resources(log: SharedLog, informers: Informers) -> None:
    pods, services = informers.informer(PODS), informers.informer(SERVICES)
    assert informers.informer(PODS) is pods
    told = heard(informers, SERVICES)
    informers.sync()
    log.put(thing("p"), thing("s", kind="Service"), thing("x", kind="Secret"))
    step_all(informers)
    assert informers.revision == 3
    assert names(pods.lister.list()) == ["p"]
    assert names(services.lister.list()) == ["s"]
    assert told == [("ADDED", "s", 2)]


def test_all_stores_are_filled_at_one_revision_before_handlers_run(log: SharedLog, informers: Informers) -> None:
    pods, services = informers.informer(PODS), informers.informer(SERVICES)
    seen: list[tuple[int, int, int, bool]] = []
    pods.add_handler(
        lambda change: seen.append((len(pods.lister), len(services.lister), informers.revision, informers.has_synced()))
    )
    log.put(thing("p"), thing("s", kind="Service"))
    informers.sync()
    assert seen == [(1, 1, 2, False)]


def test_a_handler_sees_the_change_in_the_lister_and_the_revision(log: SharedLog, informers: Informers) -> None:
    pods = informers.informer(PODS)
    seen: list[tuple[bool, int]] = []
    pods.add_handler(
        lambda change: seen.append((pods.lister.get(Key("default", "a")) is change.new, informers.revision))
    )
    informers.sync()
    log.put(thing("a"))
    log.put(thing("a", note="2"))
    log.remove(thing("a"))
    step_all(informers)
    assert seen == [(True, 1), (True, 2), (True, 3)]


def test_handlers_are_called_in_the_order_added(log: SharedLog, informers: Informers) -> None:
    order: list[int] = []
    informers.informer(PODS).add_handler(lambda change: order.append(1))
    informers.informer(PODS).add_handler(lambda change: order.append(2))
    informers.sync()
    log.put(thing("a"), thing("b"))
    step_all(informers)
    assert order == [1, 2, 1, 2]


def test_indexes_follow_changes(log: SharedLog, informers: Informers) -> None:
    pods = informers.informer(PODS)
    pods.add_index("note", lambda obj: [obj.to_dict()["note"]])
    pods.add_label_index()
    log.put(thing("a", note="x", labels={"app": "web"}))
    informers.sync()
    log.put(thing("b", note="x", labels={"app": "web"}))
    log.put(thing("a", note="y", labels={"app": "db"}))
    step_all(informers)
    assert names(pods.lister.by_index("note", "x")) == ["b"]
    assert names(pods.lister.list("default", {"app": "web"})) == ["b"]


def test_a_resync_reports_only_differences(log: SharedLog, informers: Informers) -> None:
    log.put(thing("changed"), thing("gone"), thing("same"), thing("recreated"))
    told = heard(informers)
    informers.sync()
    del told[:]
    log.remove(thing("gone"))
    log.put(thing("changed", note="new"))
    log.remove(thing("recreated"))
    log.put(thing("recreated"))
    log.put(thing("brief"))
    log.remove(thing("brief"))
    log.put(thing("new"))
    assert informers.sync() == 11
    assert told == [
        ("DELETED", "gone", 11),
        ("MODIFIED", "changed", 6),
        ("ADDED", "new", 11),
        ("MODIFIED", "recreated", 8),
    ]


def test_the_sync_handler_is_called_after_the_changes_of_a_resync(log: SharedLog, informers: Informers) -> None:
    told = heard(informers)
    asked: list[int] = []
    informers.informer(PODS).add_sync_handler(lambda: asked.append(len(told)))
    log.put(thing("a"))
    informers.sync()
    assert asked == []
    log.put(thing("b"), thing("c"))
    informers.sync()
    assert asked == [3]


def test_the_epoch_is_odd_while_a_sync_calls_handlers(log: SharedLog, informers: Informers) -> None:
    seen: list[int] = []
    informers.informer(PODS).add_handler(lambda change: seen.append(informers.epoch))
    log.put(thing("a"))
    informers.sync()
    log.put(thing("b"))
    informers.step()
    log.put(thing("c"))
    informers.sync()
    assert seen == [1, 2, 3]
    assert informers.epoch == 4


def test_a_compacted_revision_is_expired_and_a_sync_recovers(log: SharedLog, informers: Informers) -> None:
    told = heard(informers)
    informers.sync()
    for number in range(20):
        log.put(thing("a", note=str(number)))
    log.compact(10)
    with pytest.raises(Expired):
        informers.step()
    assert informers.revision == 0
    assert informers.sync() == 20
    assert told == [("ADDED", "a", 20)]


def test_leaving_only_the_window_loses_nothing(log: SharedLog, informers: Informers) -> None:
    told = heard(informers)
    informers.sync()
    for number in range(20):
        log.put(thing("a", note=str(number)))
    step_all(informers)
    assert [revision for _, _, revision in told] == list(range(1, 21))


def test_repeated_events_of_a_feed_change_nothing(log: SharedLog, clock: FakeClock) -> None:
    class RepeatingWindow(EventWindow):
        def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
            return super().events_after(0, limit=limit)

    informers = Informers(log, RepeatingWindow(log, clock=clock), clock=clock)
    told = heard(informers)
    informers.sync()
    log.put(thing("a"))
    informers.step()
    log.remove(thing("a"))
    informers.step()
    informers.step()
    assert told == [("ADDED", "a", 1), ("DELETED", "a", 2)]
    assert informers.revision == 2


def test_a_compaction_between_head_and_snapshot_restarts_the_sync(clock: FakeClock) -> None:
    class Hasty(SharedLog):
        compactions = 2

        def snapshot(
            self, resource: Resource | None = None, *, namespace: str | None = None, at: int | None = None
        ) -> Snapshot:
            if resource == SERVICES and self.compactions:
                self.compactions -= 1
                self.put(thing("a", note=str(self.compactions)))
                self.compact(self.head().revision)
            return super().snapshot(resource, namespace=namespace, at=at)

    log = Hasty(clock=clock)
    log.put(thing("a"), thing("s", kind="Service"))
    informers = Informers(log, EventWindow(log, clock=clock), clock=clock)
    pods, services = informers.informer(PODS), informers.informer(SERVICES)
    assert informers.sync() == 4
    assert [obj.revision for obj in pods.lister.list()] == [4]
    assert names(services.lister.list()) == ["s"]


def test_adding_an_informer_too_late_is_refused(informers: Informers) -> None:
    pods = informers.informer(PODS)
    informers.sync()
    with pytest.raises(RuntimeError, match="services was requested after the sync"):
        informers.informer(SERVICES)
    with pytest.raises(RuntimeError, match="handler of pods was added after it synced"):
        pods.add_handler(print)
    assert informers.informer(PODS) is pods


def test_the_garbage_collector_is_disabled_while_loading(log: SharedLog, informers: Informers) -> None:
    pods = informers.informer(PODS)
    seen: list[bool] = []

    def note_the_collector(obj: Object) -> Iterable[str]:
        seen.append(gc.isenabled())
        return ()

    pods.add_index("gc", note_the_collector)
    log.put(thing("a"))
    informers.sync()
    assert seen == [False]
    assert gc.isenabled()


def test_the_garbage_collector_is_enabled_after_a_failed_sync(log: SharedLog, informers: Informers) -> None:
    informers.informer(PODS).add_index("bad", lambda obj: [obj.labels["missing"]])
    log.put(thing("a"))
    with pytest.raises(KeyError):
        informers.sync()
    assert gc.isenabled()
    assert not informers.has_synced()


def test_objects_decoded_by_handlers_at_the_sync_are_discarded(log: SharedLog, informers: Informers) -> None:
    told = heard(informers)
    log.put(thing("a"))
    informers.sync()
    assert told == [("ADDED", "a", 1)]
    assert [obj._metadata for obj in informers.informer(PODS).lister.list()] == [None]


@pytest.fixture
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_many_objects_are_frozen(log: SharedLog, informers: Informers) -> None:
    informers.informer(PODS)
    log.put(thing("a"))
    informers.sync()
    frozen = gc.get_freeze_count()
    log.put(*[thing(f"p{n}") for n in range(10_000)])
    informers.sync()
    assert gc.get_freeze_count() > frozen + 10_000


class RunningInformers:
    """Informers that a separate thread runs; a test stops the informers by advancing their clock."""

    def __init__(self, informers: Informers, clock: FakeClock) -> None:
        self.informers = informers
        self.stop = threading.Event()
        self.raised: list[Exception] = []
        self._clock = clock
        self._thread = threads.start("informers", self._run)

    def _run(self) -> None:
        try:
            self.informers.run(self.stop)
        except ValueError as error:
            self.raised.append(error)

    def until(self, revision: int) -> None:
        for _ in range(1000):
            if self.informers.has_synced() and self.informers.revision >= revision:
                return
            self._clock.step(1)
            self._thread.join(0.01)
        pytest.fail(f"the informers stay at {self.informers.revision}")

    def join(self) -> None:
        for _ in range(1000):
            if not self._thread.is_alive():
                return
            self._clock.step(1)
            self._thread.join(0.01)
        pytest.fail("the informers do not stop")

    def end(self) -> None:
        self.stop.set()
        self.join()


def test_run_syncs_and_follows_until_stopped(log: SharedLog, informers: Informers, clock: FakeClock) -> None:
    told = heard(informers)
    log.put(thing("a"))
    running = RunningInformers(informers, clock)
    running.until(1)
    log.put(thing("b"))
    log.put(thing("c"))
    running.until(3)
    running.end()
    assert [name for _, name, _ in told] == ["a", "b", "c"]


def test_run_continues_from_an_earlier_sync(log: SharedLog, informers: Informers, clock: FakeClock) -> None:
    told = heard(informers)
    log.put(thing("a"))
    informers.sync()
    log.put(thing("a", note="2"))
    running = RunningInformers(informers, clock)
    running.until(2)
    running.end()
    assert told == [("ADDED", "a", 1), ("MODIFIED", "a", 2)]


def test_an_expired_revision_while_running_causes_a_new_sync(
    log: SharedLog, informers: Informers, clock: FakeClock
) -> None:
    told = heard(informers)
    log.put(thing("a"), thing("b"))
    informers.sync()
    for number in range(20):
        log.put(thing("a", note=str(number)))
    log.remove(thing("b"))
    log.compact(22)
    running = RunningInformers(informers, clock)
    running.until(23)
    log.put(thing("c"))
    running.until(24)
    running.end()
    assert told[2:] == [("DELETED", "b", 23), ("MODIFIED", "a", 22), ("ADDED", "c", 24)]


def test_run_outlives_an_unreachable_log(log: SharedLog, informers: Informers, clock: FakeClock) -> None:
    told = heard(informers)
    informers.sync()
    for number in range(20):
        log.put(thing("a", note=str(number)))  # the revision is older than the window, so the log is read
    log.outages = 3
    running = RunningInformers(informers, clock)
    running.until(20)
    running.end()
    assert log.outages == 0
    assert [revision for _, _, revision in told] == list(range(1, 21))


def test_a_failing_handler_ends_the_run(log: SharedLog, informers: Informers, clock: FakeClock) -> None:
    def handler(change: Change) -> None:
        raise ValueError("a bug")

    informers.informer(PODS).add_handler(handler)
    informers.sync()
    log.put(thing("a"))
    running = RunningInformers(informers, clock)
    running.join()
    assert [str(error) for error in running.raised] == ["a bug"]


def test_a_handler_added_by_another_is_called_at_once_for_existing_objects(
    log: SharedLog, informers: Informers
) -> None:
    pods, told = informers.informer(PODS), list[str]()

    def begin(change: Change) -> None:
        pods.add_handler(lambda change: told.append(f"{change.type.name} {change.object.name}"))

    informers.informer(SERVICES).add_handler(begin)
    log.put(thing("first"))
    informers.sync()
    log.put(thing("s", kind="Service"))
    log.put(thing("second"))
    step_all(informers)
    assert told == ["ADDED first", "ADDED second"]

"""Tests of the search for free values on views that report their changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_network

import pytest

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer.event_window import EventWindow
from ctrlmgr.informer.informer import Change
from ctrlmgr.kinds.allocators import search
from ctrlmgr.kinds.allocators.search import LARGEST_INDEX, PROBES, Range, Searcher
from ctrlmgr.kinds.allocators.service_ranges import AddressRange, PortRange
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import AUTHOR

FOUR = AddressRange(ip_network("10.96.0.0/24"))
SIX = AddressRange(ip_network("fd00:10:96::/120"))
PORTS = PortRange(30000, 30299)
OTHER = Resource("", "configmaps")
RANGES = pytest.mark.parametrize("range_", [FOUR, SIX, PORTS], ids=["IPv4", "IPv6", "ports"])


class CountingCacher(Cacher):
    """A cacher that counts the calls of `get` and `list`."""

    gets = lists = 0

    def get(self, resource: Resource, key: Key) -> Object | None:
        self.gets += 1
        return super().get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        self.lists += 1
        return super().list(resource, namespace)


class Cluster:
    """A log with claims and other objects, and the state that results from the log."""

    def __init__(self, *, window: int = 10_000) -> None:
        clock = FakeClock()
        self.log = MemoryEventLog(clock=clock, random=random.Random(1))
        self.feed = EventWindow(self.log, clock=clock)
        self.state = self.another(window)

    def another(self, window: int = 10_000) -> CountingCacher:
        return CountingCacher(self.log, self.feed, window=window)

    def append(self, type: EventType, resource: Resource, names: Iterable[str]) -> None:
        proposals = []
        for name in names:
            body = b'{"kind":"A","apiVersion":"v1","metadata":{"name":"%s","uid":"u"}}' % name.encode()
            stored = self.state.get(resource, Key("", name))
            revision = stored.revision if stored is not None else 0
            obj = Object(resource, body, revision, ObjectMeta(name=name, uid="u"))
            proposals.append(Proposal(type, obj, 0 if type is EventType.ADDED else revision))
        if proposals:
            self.log.append(proposals, author=AUTHOR)
        self.state.step()

    def claim(self, range_: Range, *indexes: int) -> None:
        self.append(EventType.ADDED, range_.claims, [range_[index] for index in indexes])

    def release(self, range_: Range, *indexes: int) -> None:
        self.append(EventType.DELETED, range_.claims, [range_[index] for index in indexes])


def free(state: Cacher, range_: Range) -> set[int]:
    """Return the free values that are found by checking each value."""
    values = {index for first, end in range_.bands for index in range(first, end)}
    return {index for index in values if state.get(range_.claims, Key("", range_[index])) is None}


@pytest.fixture(params=[0, PROBES], ids=["unprobed", "probed"])
def probes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with probes, and a second time with the index alone."""
    monkeypatch.setattr(search, "PROBES", request.param)


@RANGES
@pytest.mark.usefixtures("probes")
def test_a_found_value_is_free_and_found_while_any_exists(range_: Range) -> None:
    cluster, source = Cluster(), random.Random(3)
    searcher = Searcher(range_)
    held = list(range(20, 240))
    cluster.claim(range_, *held)
    full = 0
    for turn in range(500):
        found = searcher.find(cluster.state, source)
        assert found in free(cluster.state, range_) if found is not None else not free(cluster.state, range_)
        full += found is None
        if found is None or source.random() < 0.3:
            cluster.release(range_, held.pop(source.randrange(len(held))))
        elif found is not None:
            cluster.claim(range_, found)
            held.append(found)
        if turn % 7 == 0:
            cluster.append(EventType.ADDED, OTHER, [f"other-{turn}"])
    assert full


@RANGES
@pytest.mark.usefixtures("probes")
def test_the_preferred_band_is_used_first_and_everything_is_found(range_: Range) -> None:
    cluster, source, searcher = Cluster(), random.Random(1), Searcher(range_)
    found = []
    while (index := searcher.find(cluster.state, source)) is not None:
        cluster.claim(range_, index)
        found.append(index)
    first, second = (set(range(*band)) for band in range_.bands)
    assert set(found[: len(first)]) == first
    assert set(found[len(first) :]) == second
    assert len(found) == len(first) + len(second)
    cluster.release(range_, 77)
    assert searcher.find(cluster.state, source) == 77


def test_claims_are_listed_once_and_only_after_probing_fails() -> None:
    cluster, searcher, source = Cluster(), Searcher(FOUR), random.Random(1)
    cluster.state.gets = cluster.state.lists = 0
    found: list[int] = []
    while (index := searcher.find(cluster.state, source)) is not None:
        found.append(index)
        cluster.claim(FOUR, index)
        assert len(found) > 150 or not cluster.state.lists
    for _ in range(10):
        cluster.state.gets = 0
        assert searcher.find(cluster.state, source) is None
        assert (cluster.state.gets, cluster.state.lists) == (PROBES + 15, 1)


@pytest.mark.usefixtures("probes")
def test_values_taken_in_the_same_write_are_not_found_and_not_remembered() -> None:
    cluster, searcher = Cluster(), Searcher(PORTS)
    cluster.claim(PORTS, *range(298))
    assert searcher.find(cluster.state, random.Random(1), {298}) == 299
    assert searcher.find(cluster.state, random.Random(1), {298, 299}) is None
    assert searcher.find(cluster.state, random.Random(1), {299, 5}) == 298
    cluster.release(PORTS, 5)
    assert searcher.find(cluster.state, random.Random(1), {299, 298}) == 5


@pytest.mark.usefixtures("probes")
def test_claims_outside_the_range_are_ignored() -> None:
    cluster, searcher = Cluster(), Searcher(FOUR)
    names = ["10.96.1.1", "10.96.0.0", "10.96.0.255", "fd00:10:96::1", "fd00:10:96::ffff"]
    cluster.append(EventType.ADDED, FOUR.claims, names)
    before = searcher.find(cluster.state, random.Random(1))
    cluster.append(EventType.DELETED, FOUR.claims, names)
    assert searcher.find(cluster.state, random.Random(1)) == before is not None


def lost_window(cluster: Cluster) -> None:
    cluster.append(EventType.ADDED, OTHER, [f"other-{index}" for index in range(200)])
    assert cluster.state.oldest > 0


def nothing(cluster: Cluster) -> None:
    pass


@pytest.mark.usefixtures("probes")
@pytest.mark.parametrize("between", [lost_window, nothing])
@pytest.mark.parametrize("most", [2, 10_000])
def test_concurrent_changes_are_never_missed(
    between: Callable[[Cluster], None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_CHANGES", most)
    cluster, searcher = Cluster(window=100), Searcher(FOUR)
    cluster.claim(FOUR, *range(250))
    assert searcher.find(cluster.state, random.Random(1)) in range(250, 254)
    cluster.release(FOUR, *range(100, 150))
    cluster.claim(FOUR, *range(250, 254))
    between(cluster)
    assert searcher.find(cluster.state, random.Random(1)) in range(100, 150)


@pytest.mark.usefixtures("probes")
def test_views_have_separate_states() -> None:
    cluster, searcher = Cluster(), Searcher(FOUR)
    behind = cluster.another()
    cluster.claim(FOUR, *range(FOUR.count))
    for _ in range(2):
        assert searcher.find(cluster.state, random.Random(1)) is None
        assert searcher.find(behind, random.Random(1)) is not None
    behind.step()
    assert searcher.find(behind, random.Random(1)) is None


@pytest.mark.usefixtures("probes")
def test_equal_random_numbers_find_equal_values_for_any_index_history() -> None:
    cluster, followed = Cluster(), Searcher(FOUR)
    assert followed.find(cluster.state, random.Random(1)) is not None
    cluster.claim(FOUR, *range(0, 200, 3))
    cluster.release(FOUR, 30, 60)
    fresh = Searcher(FOUR)
    for seed in range(20):
        assert followed.find(cluster.state, random.Random(seed)) == fresh.find(cluster.state, random.Random(seed))


def test_the_largest_ranges_are_probed_value_by_value() -> None:
    six = AddressRange(ip_network("fd00:10:96::/64"))
    assert six.count > LARGEST_INDEX
    cluster, searcher = Cluster(), Searcher(six)
    cluster.state.gets = cluster.state.lists = 0
    found = searcher.find(cluster.state, random.Random(1))
    assert found is not None
    cluster.claim(six, found)
    assert searcher.find(cluster.state, random.Random(1)) not in (None, found)
    assert cluster.state.lists == 0


class ViewWithoutChanges:
    """A view of the log that cannot report changes."""

    def __init__(self, state: Cacher) -> None:
        self.get, self.list = state.get, state.list


def test_other_views_are_probed_value_by_value() -> None:
    cluster, searcher = Cluster(), Searcher(FOUR)
    cluster.claim(FOUR, *range(16, FOUR.count))
    assert searcher.find(ViewWithoutChanges(cluster.state), random.Random(1), {1, 2, 3, 4, 5}) in range(6, 16)
    cluster.claim(FOUR, *range(16))
    assert searcher.find(ViewWithoutChanges(cluster.state), random.Random(1)) is None


class ViewWithoutPast:
    """A view of the log that has dropped all its past changes."""

    def __init__(self, state: Cacher) -> None:
        self.state, self.get, self.list, self.revision = state, state.get, state.list, state.revision

    def changes_after(self, revision: Revision, resource: Resource, limit: int) -> Sequence[Change] | None:
        assert limit > 0
        return None


@pytest.mark.usefixtures("probes")
def test_a_view_without_changes_is_read_every_time() -> None:
    cluster, searcher = Cluster(), Searcher(FOUR)
    view = ViewWithoutPast(cluster.state)
    for index in (*range(1, FOUR.count), 0):
        assert searcher.find(view, random.Random(index)) is not None or index == 0
        cluster.claim(FOUR, index)

"""Tests of both caches: they respect their limits, evict the least recently used entry, and count look-ups."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.caches import BoundedCache, TTLCache
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.testing import FakeClock
from tests.background import DEADLINE, background

NAME = "tests-contract"

AnyCache = BoundedCache[str, int] | TTLCache[str, int]
Make = Callable[..., AnyCache]


def bounded(*, entries: int, size: int | None = None, largest: int | None = None) -> AnyCache:
    return BoundedCache(NAME, entries=entries, size=size, largest=largest)


def expiring(*, entries: int, size: int | None = None, largest: int | None = None) -> AnyCache:
    return TTLCache(NAME, entries=entries, size=size, largest=largest, clock=FakeClock())


def put(cache: AnyCache, key: str, value: int, size: int = 0) -> None:
    if isinstance(cache, TTLCache):
        cache.put(key, value, 60, size)
    else:
        cache.put(key, value, size)


def sample(name: str) -> float:
    return REGISTRY.get_sample_value(f"ctrlmgr_cache_{name}", {"cache": NAME}) or 0.0


both = pytest.mark.parametrize("make", [bounded, expiring])


@both
def test_the_least_recently_used_entry_is_evicted(make: Make) -> None:
    cache = make(entries=2)
    put(cache, "a", 1)
    put(cache, "b", 2)
    assert cache.get("a") == 1
    put(cache, "c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


@both
def test_a_new_value_replaces_the_old_value_and_its_size(make: Make) -> None:
    cache = make(entries=10, size=10)
    put(cache, "a", 1, 6)
    put(cache, "b", 2, 4)
    put(cache, "a", 3, 2)
    assert (cache.get("a"), cache.get("b"), len(cache), cache.size) == (3, 2, 2, 6)


@both
def test_a_too_large_value_is_not_cached_and_evicts_nothing(make: Make) -> None:
    cache = make(entries=10, size=100, largest=10)
    put(cache, "a", 1, 10)
    put(cache, "b", 2, 11)
    assert (cache.get("a"), cache.get("b")) == (1, None)
    put(cache, "a", 3, 11)  # the earlier value must not be returned for the new key
    assert (cache.get("a"), len(cache), cache.size) == (None, 0, 0)


@both
def test_clear_removes_all_entries(make: Make) -> None:
    cache = make(entries=10, size=100)
    put(cache, "a", 1, 10)
    cache.clear()
    assert (cache.get("a"), len(cache), cache.size) == (None, 0, 0)


@both
def test_a_cache_needs_a_positive_size(make: Make) -> None:
    with pytest.raises(ValueError, match="room for at least one"):
        make(entries=0)


@both
def test_metrics_sum_lookups_and_sizes_of_all_caches_of_a_name(make: Make) -> None:
    one, other = make(entries=10, size=100), make(entries=10, size=100)
    hits, misses, entries, size = map(sample, ("hits_total", "misses_total", "entries", "size_bytes"))
    put(one, "a", 1, 7)
    put(other, "a", 1, 8)
    for cache, key in ((one, "a"), (other, "a"), (one, "b")):
        cache.get(key)
    assert (sample("hits_total") - hits, sample("misses_total") - misses) == (2, 1)
    assert (sample("entries") - entries, sample("size_bytes") - size) == (2, 15)


def test_peek_neither_counts_nor_marks_as_used() -> None:
    cache: BoundedCache[str, int] = BoundedCache(NAME, entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    before = cache.counts.hits, cache.counts.misses
    assert (cache.peek("a"), cache.peek("x"), cache.peek("x", 5)) == (1, None, 5)
    cache.put("c", 3)
    assert cache.peek("a") is None
    assert (cache.counts.hits, cache.counts.misses) == before


def test_a_discarded_key_is_absent() -> None:
    cache: BoundedCache[str, int] = BoundedCache(NAME, entries=2, size=10)
    cache.put("a", 1, 4)
    cache.discard("a")
    cache.discard("b")
    assert (cache.get("a"), len(cache), cache.size) == (None, 0, 0)


def test_an_entry_expires_after_its_ttl() -> None:
    clock = FakeClock()
    cache: TTLCache[str, str] = TTLCache(NAME, entries=10, size=100, clock=clock)
    cache.put("a", "yes", 300, 5)
    cache.put("b", "no", 30, 6)
    clock.step(29.5)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("yes", "no", None)
    misses = sample("misses_total")
    clock.step(0.5)
    assert (cache.get("a"), cache.get("b")) == ("yes", None)
    assert (len(cache), cache.size, sample("misses_total") - misses) == (1, 5, 1)


class Model:
    """A model of `BoundedCache`: a list of entries, the least recently used first."""

    def __init__(self, entries: int, size: int, largest: int) -> None:
        self.bounds = entries, size, min(size, largest)
        self.held: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def get(self, key: str) -> int | None:
        if key not in self.held:
            return None
        self.held.move_to_end(key)
        return self.held[key][0]

    def put(self, key: str, value: int, size: int) -> None:
        entries, most, largest = self.bounds
        self.held.pop(key, None)
        if size > largest:
            return
        self.held[key] = value, size
        while len(self.held) > entries or sum(each for _, each in self.held.values()) > most:
            del self.held[next(iter(self.held))]


keys = st.sampled_from("abcdefg")
puts = st.tuples(st.just("put"), keys, st.integers(0, 100), st.integers(0, 12))
others = st.tuples(st.sampled_from(("get", "discard")), keys, st.just(0), st.just(0))


@given(st.integers(1, 5), st.integers(1, 20), st.integers(1, 20), st.lists(puts | others, max_size=60))
def test_the_cache_holds_the_most_recently_used_entries_within_its_bounds(
    entries: int, size: int, largest: int, steps: list[tuple[str, str, int, int]]
) -> None:
    cache: BoundedCache[str, int] = BoundedCache(NAME, entries=entries, size=size, largest=largest)
    model = Model(entries, size, largest)
    for verb, key, value, weight in steps:
        if verb == "put":
            cache.put(key, value, weight)
            model.put(key, value, weight)
        elif verb == "discard":
            cache.discard(key)
            model.held.pop(key, None)
        else:
            assert cache.get(key) == model.get(key)
        assert len(cache) == len(model.held) <= entries
        assert cache.size == sum(each for _, each in model.held.values()) <= size
    assert {each: cache.peek(each) for each in model.held} == {each: value for each, (value, _) in model.held.items()}


@both
def test_threads_share_a_cache(make: Make) -> None:
    cache = make(entries=8, size=64)
    wrong: list[object] = []

    def work(first: int) -> None:
        for step in range(4000):
            number = (first + step * 7) % 31
            found = cache.get(str(number))
            if found not in (None, number):
                wrong.append(found)
            put(cache, str(number), number, number % 9)
            if step % 500 == 0:
                cache.clear()

    for each in [background(partial(work, first)) for first in range(4)]:
        each.result(DEADLINE)
    assert wrong == []
    assert len(cache) <= 8
    assert cache.size <= 64
    cache.clear()
    assert cache.size == 0

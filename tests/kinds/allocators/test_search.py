from __future__ import annotations

import random

import pytest

from ctrlmgr.kinds.allocators.search import PROBES, probe, walk


class CountingPredicate:
    """A predicate that returns whether a value is free, and counts its calls."""

    def __init__(self, taken: set[int]) -> None:
        self.taken = taken
        self.asked = 0

    def __call__(self, candidate: int) -> bool:
        self.asked += 1
        return candidate not in self.taken


def test_probes_cover_exactly_the_band() -> None:
    source = random.Random(1)
    found = {probe(100, 110, CountingPredicate(set()), source) for _ in range(500)}
    assert found == set(range(100, 110))


def test_the_number_of_probes_is_limited() -> None:
    for size, asked in ((1000, PROBES), (5, 5)):
        looking = CountingPredicate(set(range(size)))
        assert probe(0, size, looking, random.Random(1)) is None
        assert looking.asked == asked


def test_the_cost_depends_on_the_free_share_and_not_on_the_size() -> None:
    for size in (1 << 10, 1 << 20, 1 << 64):
        looking = CountingPredicate(set())
        source = random.Random(1)
        nine_in_ten = lambda candidate, looking=looking: looking(candidate) and candidate % 10 == 0  # noqa: E731  # short
        for _ in range(500):
            probe(0, size, nine_in_ten, source)
        assert 8 < looking.asked / 500 < 12


def test_equal_random_numbers_find_equal_values() -> None:
    first, second = (probe(100, 1100, CountingPredicate(set()), random.Random(5)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("start", [100, 150, 199])
def test_a_walk_finds_every_value_once_from_any_start(start: int) -> None:
    looking = CountingPredicate(set())
    found: list[int] = []
    while (candidate := walk(100, 200, start, looking)) is not None:
        looking.taken.add(candidate)
        found.append(candidate)
    assert found == [*range(start, 200), *range(100, start)]
    looking.asked = 0
    assert walk(100, 200, start, looking) is None
    assert looking.asked == 100

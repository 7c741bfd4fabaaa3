from __future__ import annotations

import random

import pytest

from ctrlmgr.resources.allocators.search import PROBES, find_free

BANDS = ((100, 1100), (1, 100))


class Looking:
    """Counts what is asked about."""

    def __init__(self, taken: set[int]) -> None:
        self.taken = taken
        self.asked = 0

    def __call__(self, candidate: int) -> bool:
        self.asked += 1
        return candidate not in self.taken


def test_every_candidate_is_found_once_band_by_band_and_then_nothing() -> None:
    looking = Looking(set())
    source = random.Random(1)
    found: list[int] = []
    while (candidate := find_free(BANDS, looking, source)) is not None:
        assert candidate not in looking.taken
        looking.taken.add(candidate)
        found.append(candidate)
    assert sorted(found[:1000]) == list(range(100, 1100))
    assert sorted(found[1000:]) == list(range(1, 100))


def test_nothing_is_found_after_one_look_at_everything_and_some_probes() -> None:
    looking = Looking(set(range(1, 1100)))
    assert find_free(BANDS, looking, random.Random(1)) is None
    assert looking.asked == 1000 + 99 + 2 * PROBES


@pytest.mark.parametrize("bands", [(), ((5, 5),), ((5, 1),)])
def test_empty_bands_have_nothing(bands: tuple[tuple[int, int], ...]) -> None:
    assert find_free(bands, Looking(set()), random.Random(1)) is None


def test_the_cost_is_what_the_free_share_says_not_the_size() -> None:
    for size in (1 << 10, 1 << 20, 1 << 64):
        looking = Looking(set())
        source = random.Random(1)
        nine_in_ten = lambda candidate, looking=looking: looking(candidate) and candidate % 10 == 0  # noqa: E731  # short
        for _ in range(500):
            assert find_free([(0, size)], nine_in_ten, source) is not None
        assert 8 < looking.asked / 500 < 12


def test_the_same_random_numbers_find_the_same() -> None:
    first, second = (find_free(BANDS, Looking(set()), random.Random(5)) for _ in range(2))
    assert first == second

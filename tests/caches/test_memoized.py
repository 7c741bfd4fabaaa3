import pytest

from ctrlmgr.caches.memoized import SecondHitFilter, memoized
from ctrlmgr.metrics import REGISTRY

Numbers = tuple[int, ...]
"""A string type whose hash is the same in every run."""


def test_results_are_cached_for_short_arguments_from_the_second_call_on() -> None:
    calls: list[Numbers] = []

    @memoized(entries=2, longest=3)
    def doubled(numbers: Numbers) -> Numbers:
        """Twice."""
        calls.append(numbers)
        return numbers * 2

    short, long = (1, 2, 3), (1, 2, 3, 4)
    for numbers in (short, short, short, long, long, long):
        assert doubled(numbers) == numbers * 2
    assert calls == [short, short, long, long, long]
    assert doubled.__doc__ == "Twice."


def test_the_oldest_result_is_evicted() -> None:
    calls: list[Numbers] = []

    @memoized(entries=2, longest=3)
    def same(numbers: Numbers) -> Numbers:
        calls.append(numbers)
        return numbers

    one, two, three = (1,), (2,), (3,)
    for numbers in (one, two, three, one, two, three):  # at the third call, there was no room for the result
        same(numbers)
    calls.clear()
    for numbers in (two, three, one):
        same(numbers)
    assert calls == [one]


def test_calls_are_counted_by_function_name() -> None:
    @memoized(entries=2, longest=3)
    def counted(numbers: Numbers) -> None:
        return None

    for _ in range(5):
        assert counted((1,)) is None
    name = {"cache": f"{__name__}.{counted.__qualname__}"}
    assert REGISTRY.get_sample_value("ctrlmgr_cache_hits_total", name) == 3
    assert REGISTRY.get_sample_value("ctrlmgr_cache_misses_total", name) == 2
    assert REGISTRY.get_sample_value("ctrlmgr_cache_entries", name) == 1


def test_errors_are_not_cached() -> None:
    calls: list[str] = []

    @memoized(entries=2, longest=3)
    def refused(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(3):
        with pytest.raises(ValueError, match="abc"):
            refused("abc")
    assert calls == ["abc", "abc", "abc"]


def test_a_second_hit_filter_recognizes_repeated_keys() -> None:
    returns = SecondHitFilter(2)
    assert [returns(number) for number in (4, 4, 6, 4, 5, 5, 4)] == [False, True, False, False, False, True, True]

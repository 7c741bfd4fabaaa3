import pytest

from ctrlmgr.api.remembered import Returning, for_now, remembered

Numbers = tuple[int, ...]
"""Whose hashes are the same in each run."""


def test_what_is_short_and_comes_again_is_remembered() -> None:
    calls: list[Numbers] = []

    @remembered(entries=2, longest=3)
    def doubled(numbers: Numbers) -> Numbers:
        """Twice."""
        calls.append(numbers)
        return numbers * 2

    short, long = (1, 2, 3), (1, 2, 3, 4)
    for numbers in (short, short, short, long, long, long):
        assert doubled(numbers) == numbers * 2
    assert calls == [short, short, long, long, long]
    assert doubled.__doc__ == "Twice."


def test_it_begins_anew_when_there_are_too_many() -> None:
    calls: list[Numbers] = []

    @remembered(entries=2, longest=3)
    def same(numbers: Numbers) -> Numbers:
        calls.append(numbers)
        return numbers

    one, two, three = (1,), (2,), (3,)
    for numbers in (one, two, three, one, two, three):  # the third time, there was no room
        same(numbers)
    calls.clear()
    same(three)
    same(two)
    assert calls == [two]


def test_of_a_large_body_results_are_remembered_for_now() -> None:
    calls: list[Numbers] = []

    @remembered(entries=2, longest=3)
    def same(numbers: Numbers) -> Numbers:
        calls.append(numbers)
        return numbers

    with for_now():
        for _ in range(3):
            same((1,))
    assert calls == [(1,)]
    same((1,))
    same((1,))
    assert calls == [(1,), (1,), (1,)]
    with for_now():
        same((1,))
    assert len(calls) == 3


def test_errors_are_not_remembered() -> None:
    calls: list[str] = []

    @remembered(entries=2, longest=3)
    def refused(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(3):
        with pytest.raises(ValueError, match="abc"):
            refused("abc")
    assert calls == ["abc", "abc", "abc"]


def test_what_returns_is_told_from_what_comes_once() -> None:
    returns = Returning(2)
    assert [returns(number) for number in (4, 4, 6, 4, 5, 5, 4)] == [False, True, False, False, False, True, True]
    with for_now():
        assert not returns(4)

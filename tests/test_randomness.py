"""Tests of the pool of random numbers."""

from __future__ import annotations

import os
import threading

import pytest

from ctrlmgr.randomness import PooledRandom


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of bytes that the pool requested from the operating system."""
    sizes: list[int] = []
    system = os.urandom

    def urandom(size: int) -> bytes:
        sizes.append(size)
        return system(size)

    monkeypatch.setattr(os, "urandom", urandom)
    return sizes


def test_the_system_is_called_once_for_hundreds_of_numbers(fetched: list[int]) -> None:
    random = PooledRandom()
    numbers = {random.getrandbits(128) for _ in range(256)}
    assert len(numbers) == 256
    assert len(fetched) == 1
    random.random()
    assert len(fetched) == 2


@pytest.mark.parametrize("bits", [0, 1, 53, 63, 127, 128, 129, 1000])
def test_the_requested_number_of_bits_is_returned(bits: int) -> None:
    random = PooledRandom()
    numbers = [random.getrandbits(bits) for _ in range(64)]
    assert all(number >> bits == 0 for number in numbers)
    assert not bits or any(number >> (bits - 1) for number in numbers)  # the highest bit, too, is set in half of them


def test_a_negative_number_of_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        PooledRandom().getrandbits(-1)


def test_derived_numbers_are_in_range() -> None:
    random = PooledRandom()
    assert all(0 <= random.random() < 1 for _ in range(1000))
    assert {random.randrange(3) for _ in range(200)} == {0, 1, 2}
    assert set(random.choices("ab", k=200)) == {"a", "b"}


def test_threads_never_get_the_same_number() -> None:
    random = PooledRandom()
    drawn: list[list[int]] = [[] for _ in range(4)]

    def draw(mine: list[int]) -> None:
        mine += [random.getrandbits(128) for _ in range(2000)]

    workers = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({number for mine in drawn for number in mine}) == 8000

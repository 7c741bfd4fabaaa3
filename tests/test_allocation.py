"""Objects are made apart while that is wanted, whatever becomes of them afterwards, and their memory is given back."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from ctrlmgr.allocation import Apart

MANY = 50_000


def made() -> int:
    """Return how many blocks the interpreter has given out; it is not told of those that are made apart."""
    return sys.getallocatedblocks()


def small(count: int = MANY) -> list[object]:
    return [[number, {}] for number in range(count)]


@pytest.fixture
def collected() -> Iterator[None]:
    """Keep the collector from taking blocks back while they are counted: other tests left it much."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collected")
def test_objects_are_made_apart_until_the_last_caller_has_enough() -> None:
    apart = Apart()
    apart.begin()
    apart.begin()
    apart.end()
    before = made()
    kept = small()
    assert made() - before < MANY / 10
    apart.end()
    before = made()
    kept += small()
    assert made() - before > MANY


def test_objects_outlive_the_way_in_which_they_were_made() -> None:
    apart = Apart()
    usual = {number: [number] for number in range(MANY)}
    apart.begin()
    for number in range(0, MANY, 2):
        del usual[number]
    for each in usual.values():
        each.extend(range(40))  # which moves it
    other = {str(number): [str(number)] for number in range(MANY)}
    apart.end()
    for number in range(0, MANY, 2):
        del other[str(number)]
    for name, list_ in other.items():
        list_.extend([name] * 40)
    assert all(each == [number, *range(40)] for number, each in usual.items())
    assert all(each == [name] * 41 for name, each in other.items())


@pytest.mark.usefixtures("collected")
def test_a_tracer_that_comes_in_between_goes_on() -> None:
    apart = Apart()
    tracemalloc.start()
    try:
        apart.begin()
        before = tracemalloc.get_traced_memory()[0]
        kept = small()
        assert tracemalloc.get_traced_memory()[0] - before > MANY
        apart.end()
        before = tracemalloc.get_traced_memory()[0]
        kept += small()
        assert tracemalloc.get_traced_memory()[0] - before > MANY
    finally:
        tracemalloc.stop()


_ROUNDS = """
import os, sys
from ctrlmgr.allocation import Apart, give_back

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

apart, stays, before = Apart(), [], resident()
for _ in range(3):
    if sys.argv[1] == "apart":
        apart.begin()
    body = []
    for number in range(600_000):
        body.append({})
        if number % 4_000 == 0:
            stays.append({})
    del body
    if sys.argv[1] == "apart":
        apart.end()
    give_back()
print(resident() - before)
"""


def left(how: str) -> int:
    """Return the bytes that a process has more, when large work is over that left a little of its own."""
    done = subprocess.run([sys.executable, "-c", _ROUNDS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_is_given_back() -> None:
    assert left("apart") < 10e6 < 30e6 < left("mixed")

"""Finding something free: random probes first, then every candidate once.

Guarantees:
- Something free is found if there is anything, and None is returned if there is nothing.
- The cost depends on how much is free, not on how large the range is: 1/(free share) probes on average. Only
  when everything is taken is everything looked at.
- No memory is kept, and the same random numbers find the same candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

PROBES = 64
"""Independent draws before going through a band one by one; they keep what is taken spread out evenly, so that
the walk from a random place is seldom long when it comes to it."""


def find_free(bands: Iterable[tuple[int, int]], is_free: Callable[[int], bool], random: Random) -> int | None:
    """Return a free candidate of the first band that has one.

    A band is its first candidate and the one after its last; `is_free` is asked about one candidate at a time.
    """
    for first, end in bands:
        if end > first and (found := _search(first, end - first, is_free, random)) is not None:
            return found
    return None


def _search(first: int, size: int, is_free: Callable[[int], bool], random: Random) -> int | None:
    for _ in range(min(PROBES, size)):
        candidate = first + random.randrange(size)
        if is_free(candidate):
            return candidate
    start = random.randrange(size)
    for step in range(size):
        candidate = first + (start + step) % size
        if is_free(candidate):
            return candidate
    return None

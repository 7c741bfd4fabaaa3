"""Returns random numbers from the operating system; the random bits are fetched in batches.

Guarantees: the random numbers are as suitable for secrets as those of the operating system. No random bits are used
twice, and any thread may request numbers. Without batches, each number would need a system call. A system call takes
microseconds and releases the interpreter's lock, and the thread may then wait half a millisecond for the lock.
"""

from __future__ import annotations

import os
from random import SystemRandom

_BYTES = 16
_BITS = 8 * _BYTES
_FETCHED = 256


class PooledRandom(SystemRandom):
    """`SystemRandom` with a pool of random bits in memory, which is used for up to 128 bits."""

    def __init__(self) -> None:
        """Create a generator with an empty pool."""
        super().__init__()
        self._pool: list[int] = []  # The operations `pop` and `+=` of a list are atomic.

    def getrandbits(self, k: int) -> int:
        """Return `k` random bits as an integer."""
        if not 0 <= k <= _BITS:
            return super().getrandbits(k)
        while True:
            try:
                return self._pool.pop() >> (_BITS - k)
            except IndexError:
                self._fetch()

    def random(self) -> float:
        """Return a number in [0.0, 1.0)."""
        return self.getrandbits(53) * 2.0**-53

    def _fetch(self) -> None:
        data = os.urandom(_BYTES * _FETCHED)
        self._pool += [int.from_bytes(data[at : at + _BYTES], "little") for at in range(0, len(data), _BYTES)]

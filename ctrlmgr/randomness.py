"""Random numbers from the system, fetched in batches.

Guarantees: the numbers are as good for secrets as the system's. No number is returned twice, and any thread may ask. A
system call for each number would cost microseconds, and release the interpreter's lock; the thread could wait half a
millisecond to get it back.
"""

from __future__ import annotations

import os
from random import SystemRandom

_BYTES = 16
_BITS = 8 * _BYTES
_FETCHED = 256


class PooledRandom(SystemRandom):
    """`SystemRandom` with a pool in memory, which it uses for up to 128 bits."""

    def __init__(self) -> None:
        """Start with an empty pool."""
        super().__init__()
        self._pool: list[int] = []  # `pop` and `+=` on a list are atomic

    def getrandbits(self, k: int) -> int:
        """Return `k` random bits."""
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

"""Randomness for a process that needs a little of it all the time.

Guarantees: numbers are the system's, as good for secrets as any, none is given out twice, and any thread may ask.
Asking the system costs microseconds and, worse, the interpreter's lock: a thread that gives it up for a uid can wait
for half a millisecond to get it back. So numbers are fetched by the hundred.
"""

from __future__ import annotations

import os
from random import SystemRandom

_BYTES = 16
_BITS = 8 * _BYTES
_FETCHED = 256


class PooledRandom(SystemRandom):
    """`SystemRandom`, with numbers of up to 128 bits and everything made of them from a pool in memory."""

    def __init__(self) -> None:
        """Start with an empty pool."""
        super().__init__()
        self._pool: list[int] = []  # taking from and adding to a list are atomic

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

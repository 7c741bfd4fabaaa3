"""What requests are called whose clients have no name for them.

Guarantees: no two requests are called the same, within a process and, as far as chance can tell, anywhere; a name costs
a fraction of what a random one would, since every answer bears one (`Audit-Id`).

Rules: apiserver `pkg/endpoints/filters/audit_init.go`.
"""

from __future__ import annotations

from itertools import count
from random import Random

from ctrlmgr.engine.names import new_uid

_COUNTED = 12
"""Digits at the end of a name that count; those before are random, once for each process."""
_WRAP = (1 << 4 * _COUNTED) - 1


class RequestIds:
    """Makes names that look as uuids do; used on one thread."""

    def __init__(self, random: Random) -> None:
        """Begin at a random place."""
        first = new_uid(random)
        self._begin = first[:-_COUNTED].encode()
        self._numbers = count(int(first[-_COUNTED:], 16))

    def new(self) -> bytes:
        """Return a name."""
        return b"%s%012x" % (self._begin, next(self._numbers) & _WRAP)

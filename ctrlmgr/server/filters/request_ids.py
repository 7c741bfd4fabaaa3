"""Generates ids of requests (`Audit-Id`) for clients that send no id.

Guarantees: request ids are unique within a process and, with high probability, among all processes. Generating a
request id takes little time, because its first part is generated once per process and the rest is a counter.

Source: apiserver `pkg/endpoints/filters/audit_init.go`.
"""

from __future__ import annotations

from itertools import count
from random import Random

from ctrlmgr.engine.generated_names import new_uid

_COUNTED = 12
"""Number of digits of the counter at the end of a request id; the preceding digits are generated randomly once per
process.
"""
_WRAP = (1 << 4 * _COUNTED) - 1


class RequestIds:
    """Generates ids in the form of uuids. Used on one thread only."""

    def __init__(self, random: Random) -> None:
        """Create a generator whose counter starts at a random number."""
        first = new_uid(random)
        self._begin = first[:-_COUNTED].encode()
        self._numbers = count(int(first[-_COUNTED:], 16))

    def new(self) -> bytes:
        """Return a new request id."""
        return b"%s%012x" % (self._begin, next(self._numbers) & _WRAP)

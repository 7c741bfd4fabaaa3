"""When the append of a reconcile waits for one of a request to go with.

A commit of its own would hold up the request that comes meanwhile, and cost a sync to disk. So where requests come one
after the other, what controllers write goes along with them: the more so the longer a commit takes.

Guarantees: it waits for a few commits at most, and never longer than `_LONGEST`; where it was in vain it is seldom
tried again, for there may be requests that wait for what reconciles write.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

_LEAST: Final = 0.003
"""Seconds that it waits at least, if it waits."""
_LONGEST: Final = 0.05
"""Seconds that it waits at most."""
_COMMITS: Final = 3
"""How many commits it waits for, between these."""
_OFTEN: Final = 4
"""How many requests must have appended in that many times as long."""
_FEWEST: Final = 16
"""How many do not wait after the first one that did so in vain, and how many of those are let off when one has found
company."""
_MOST: Final = 4096
"""How many do not wait at the most; each in vain makes them four times as many."""


class Company:
    """Says whether to wait, from what has come of it; times are in seconds on a monotonic clock."""

    def __init__(self) -> None:
        """Know of no requests."""
        self.patience = _LEAST
        """Seconds to wait."""
        self._requests = deque((-math.inf,) * _OFTEN, _OFTEN)
        self._alone = 0  # how many are not to wait
        self._in_vain = _FEWEST  # how many that will be when the next one has waited in vain

    def request(self, now: float) -> None:
        """Note that a request appends."""
        self._requests.append(now)

    def may_come(self, now: float) -> bool:
        """Say whether one more append of a reconcile should wait."""
        if self._alone:
            self._alone -= 1
            return False
        return now - self._requests[0] < _OFTEN * self.patience

    def found(self) -> None:
        """Note that some that waited go with a request's append."""
        self._in_vain = max(self._in_vain - _FEWEST, _FEWEST)

    def missed(self) -> None:
        """Note that one has waited in vain."""
        self._alone, self._in_vain = self._in_vain, min(4 * self._in_vain, _MOST)

    def took(self, seconds: float) -> None:
        """Hear how long a commit has taken."""
        self.patience = min(max(_LEAST, _COMMITS * seconds), _LONGEST)

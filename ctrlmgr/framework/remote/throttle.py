"""A limit on requests: so many a second, and so many at once before that (client-go's `flowcontrol`).

Guarantees: requests are let through in the order of asking, never sooner than the rate allows, and never later than
that; any number of threads may ask.
"""

from __future__ import annotations

import threading

from ctrlmgr.clock import Clock


class Throttle:
    """A token bucket."""

    def __init__(self, per_second: float, burst: int, *, clock: Clock) -> None:
        """Let `burst` requests through at once and `per_second` from there on; 0 or less a second: no limit."""
        self._rate = per_second
        self._burst = max(burst, 1)
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(self._burst)
        self._at = clock.monotonic()

    def reserve(self) -> float:
        """Take a turn, and return in how many seconds it comes."""
        if self._rate <= 0:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            self._tokens -= 1
            return max(0.0, -self._tokens / self._rate)

    def wait(self) -> None:
        """Wait for one's turn."""
        pause = threading.Condition()
        if (left := self.reserve()) > 0:
            until = self._clock.monotonic() + left
            with pause:
                while (left := until - self._clock.monotonic()) > 0:
                    self._clock.wait(pause, left)

"""Limits requests to a rate and a burst, like client-go's `flowcontrol`.

Guarantees: requests proceed in the order in which they arrive, as soon as the rate allows. The limiter is thread-safe.
"""

from __future__ import annotations

import threading

from ctrlmgr.clock import Clock


class Throttle:
    """A token bucket."""

    def __init__(self, per_second: float, burst: int, *, clock: Clock) -> None:
        """Create a limiter that allows `burst` requests at once, and then `per_second` requests per second.

        If `per_second` is 0 or less, there is no limit.
        """
        self._rate = per_second
        self._burst = max(burst, 1)
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(self._burst)
        self._at = clock.monotonic()

    def reserve(self) -> float:
        """Take a token; return the seconds until the token is available."""
        if self._rate <= 0:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            self._tokens -= 1
            return max(0.0, -self._tokens / self._rate)

    def wait(self) -> None:
        """Take a token, and wait until the token is available."""
        pause = threading.Condition()
        if (left := self.reserve()) > 0:
            until = self._clock.monotonic() + left
            with pause:
                while (left := until - self._clock.monotonic()) > 0:
                    self._clock.wait(pause, left)

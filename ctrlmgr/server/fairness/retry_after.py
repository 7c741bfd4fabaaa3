"""Determines the delay after which a refused client may try again; the delay increases if many requests are refused.

Guarantees: for each priority level, the Retry-After delay is between 1 and 32 seconds. If at least three requests per
second were refused during the current delay, the delay doubles; otherwise it decreases by a second at the next refusal.

Source: apiserver `pkg/util/flowcontrol/dropped_requests_tracker.go`.
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 32


class RetryAfter:
    """The refused requests of one priority level."""

    def __init__(self) -> None:
        """Create a counter whose delay is one second."""
        self.seconds = 1
        """The current Retry-After delay in seconds."""
        self._second = 0
        self._count = 0
        self._raised_at = 0
        self._history: list[tuple[int, int]] = []

    def note(self, second: int) -> None:
        """Count a refused request; `second` is the time in seconds since 1970."""
        if second == self._second:
            self._count += 1
            return
        self._remember()
        self._second, self._count = second, 1
        self._adjust()

    def _remember(self) -> None:
        self._history.append((self._second, self._count))
        longest = min(2 * self.seconds, _MOST)
        self._history = [each for each in self._history if self._second - each[0] <= longest]

    def _adjust(self) -> None:
        now, delay = self._second, self.seconds
        refused = sum(count for second, count in self._history if now - delay <= second < now)
        if now - self._raised_at >= delay and refused >= 3 * delay:
            self.seconds, self._raised_at = min(2 * delay, _MOST), now
        elif refused < delay and delay > 1:
            self.seconds = delay - 1

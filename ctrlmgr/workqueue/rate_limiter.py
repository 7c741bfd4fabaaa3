"""Rate limiters decide how long an item waits before it is retried (client-go's `default_rate_limiters.go`).

Several queues may share a rate limiter, and any thread may call a rate limiter. Delays are in seconds; no method of a
rate limiter waits.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from math import ldexp
from typing import Generic, Protocol, TypeVar

from ctrlmgr.clock import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[K_contra]):
    """Decides the delay before each item is retried."""

    def when(self, item: K_contra) -> float:
        """Return the item's delay in seconds, and count one more requeue."""

    def forget(self, item: K_contra) -> None:
        """Reset the count of `item`, because it has succeeded or will not be retried."""

    def num_requeues(self, item: K_contra) -> int:
        """Return how often `item` was delayed since its count was last reset."""


class ExponentialBackoff(Generic[K]):
    """Delays an item by `initial` · 2ⁿ seconds after n failures, but at most by `limit`, as client-go does."""

    def __init__(self, initial: float = 0.005, limit: float = 1000.0) -> None:
        """Create a limiter with `initial` and `limit` in seconds; the default values are those of Kubernetes."""
        self._initial = initial
        self._limit = limit
        self._lock = threading.Lock()
        # The number of failures of each item that has failed since its count was last reset.
        self._failures: dict[K, int] = {}

    def when(self, item: K) -> float:
        """Return the item's delay in seconds, and count one more failure."""
        with self._lock:
            failures = self._failures.get(item, 0)
            self._failures[item] = failures + 1
        # Larger exponents are not needed: 2^64 times any delay exceeds every limit. A Python float cannot represent
        # 2^1024.
        return min(self._limit, ldexp(self._initial, min(failures, 64)))

    def forget(self, item: K) -> None:
        """Reset the count of the item, so that its next delay is `initial`."""
        with self._lock:
            self._failures.pop(item, None)

    def num_requeues(self, item: K) -> int:
        """Return how often the item has failed since its count was last reset."""
        with self._lock:
            return self._failures.get(item, 0)


class TokenBucket(Generic[K]):
    """Limits all items together to `rate` per second after a burst of `burst`.

    Each call reserves a token, possibly a future one, and returns the seconds until the token is available. The
    algorithm is that of `Limiter.Reserve` in golang.org/x/time/rate, which client-go's BucketRateLimiter uses.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100, *, clock: Clock) -> None:
        """Set the number of tokens per second and the size of the token bucket, which is full at the start."""
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        # The number of tokens at the time `_at`; it is negative if calls wait for future tokens.
        self._tokens = float(burst)
        self._at = clock.monotonic()

    def when(self, item: K) -> float:
        """Reserve a token and return the seconds until the token is available."""
        with self._lock:
            now = self._clock.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            return max(0.0, -self._tokens / self._rate)

    def forget(self, item: K) -> None:
        """Do nothing, because a reserved token cannot be returned."""

    def num_requeues(self, item: K) -> int:
        """Return 0, because the token bucket does not count per item."""
        return 0


class MaxOf(Generic[K]):
    """Uses the longest delay of several rate limiters (MaxOfRateLimiter)."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        """Combine several rate limiters, at least one."""
        self._limiters = limiters

    def when(self, item: K) -> float:
        """Return the longest delay; every rate limiter counts the call."""
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: K) -> None:
        """Reset the item's count in every rate limiter."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the highest number of requeues of the item that any of the rate limiters has counted."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


def default_rate_limiter(clock: Clock) -> RateLimiter[K]:
    """Return Kubernetes' DefaultTypedControllerRateLimiter.

    The limiter delays an item by 5 ms to 1000 s, and delivers at most 10 items per second after a burst of 100 items.
    """
    return MaxOf(ExponentialBackoff(), TokenBucket(clock=clock))

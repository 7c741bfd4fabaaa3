"""How long an item waits before it is tried again (client-go's `default_rate_limiters.go`).

A limiter may be shared by queues and is safe to call from any thread. Delays are seconds; nothing here waits.
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
    """Decides on delays, item by item."""

    def when(self, item: K_contra) -> float:
        """Return how many seconds `item` has to wait this time; counts as one more requeue of it."""

    def forget(self, item: K_contra) -> None:
        """Stop counting against `item`: it succeeded, or it is given up."""

    def num_requeues(self, item: K_contra) -> int:
        """Return how often `item` was delayed since it was last forgotten."""


class ExponentialBackoff(Generic[K]):
    """`initial` · 2ⁿ seconds after n failures of the item, at most `limit` (ItemExponentialFailureRateLimiter)."""

    def __init__(self, initial: float = 0.005, limit: float = 1000.0) -> None:
        """Take both in seconds; the defaults are Kubernetes'."""
        self._initial = initial
        self._limit = limit
        self._lock = threading.Lock()
        # Only items that failed and were not forgotten, each with how often.
        self._failures: dict[K, int] = {}

    def when(self, item: K) -> float:
        """Return the delay for one more failure."""
        with self._lock:
            failures = self._failures.get(item, 0)
            self._failures[item] = failures + 1
        # 2^64 times anything is past every limit, and a float could not hold 2^1024.
        return min(self._limit, ldexp(self._initial, min(failures, 64)))

    def forget(self, item: K) -> None:
        """Start again from `initial`."""
        with self._lock:
            self._failures.pop(item, None)

    def num_requeues(self, item: K) -> int:
        """Return how often the item failed since it was last forgotten."""
        with self._lock:
            return self._failures.get(item, 0)


class TokenBucket(Generic[K]):
    """All items together: `rate` a second after a burst of `burst`.

    Each call reserves a token, if need be one that does not exist yet, and returns how long until it does; this
    is `Limiter.Reserve` of golang.org/x/time/rate, as client-go's BucketRateLimiter uses it.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100, *, clock: Clock) -> None:
        """Take tokens a second and the size of the bucket, which starts full."""
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        # Tokens left at the moment _at; below zero they are owed to calls that were told to wait.
        self._tokens = float(burst)
        self._at = clock.monotonic()

    def when(self, item: K) -> float:
        """Reserve a token and return the seconds until it exists."""
        with self._lock:
            now = self._clock.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            return max(0.0, -self._tokens / self._rate)

    def forget(self, item: K) -> None:
        """Do nothing: a token once reserved is spent."""

    def num_requeues(self, item: K) -> int:
        """Return 0: the bucket knows no items."""
        return 0


class MaxOf(Generic[K]):
    """Asks several limiters and takes the longest delay (MaxOfRateLimiter)."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        """Take at least one limiter."""
        self._limiters = limiters

    def when(self, item: K) -> float:
        """Return the longest delay; every limiter has counted the call."""
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: K) -> None:
        """Have every limiter forget the item."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the highest count any of them has."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


def default_rate_limiter(clock: Clock) -> RateLimiter[K]:
    """Return Kubernetes' DefaultTypedControllerRateLimiter: per item 5 ms to 1000 s, overall 10 a second after 100."""
    return MaxOf(ExponentialBackoff(), TokenBucket(clock=clock))

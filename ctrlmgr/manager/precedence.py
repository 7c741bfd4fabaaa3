"""Precedence: reconciles give way to requests while the interpreter has no time for both.

Guarantees:
- While the process has time of the processor to spare, or little of what it takes goes into answering, no reconcile
  waits. Nor does one of a controller that has but a few keys to work off.
- Else the reconciles of all controllers begin one after the other, so far apart that with all they cause they take
  about a fifth of the time. So a backlog, as after very many objects were created, does not hold up who asks, and goes
  on being worked off.
- No worker waits longer than `_LONGEST` at a time, and none holds a key meanwhile: what changes gathers in the queue.

CPython runs one thread at a time and knows no priorities. With a handful of workers awake the event loop had it for two
fifths of the time: whenever it wrote to a socket, others came first. (In Kubernetes such a limit is the clients':
kube-controller-manager's `--kube-api-qps`, and API priority and fairness keeps controllers on a level of their own.)
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from ctrlmgr.clock import Clock, pause

T = TypeVar("T")

_FEW = 16
"""Keys that are reconciled at once, whoever else wants the interpreter."""
_APART = 20.0
"""How many times as long as a reconcile takes lies between the beginnings of two: to commit what it writes and to tell
all caches of it takes three times as long as itself."""
_LONGEST = 0.1
"""Seconds that a worker waits at most."""
_LARGEST = 0.01
"""Seconds of the processor that a reconcile counts for at most."""
_WEIGHT = 0.05
"""Of the last reconcile in how long one takes."""

_FULL = 0.9
"""Of a processor: a process that takes more has none to spare, as one thread runs at a time."""
_ASKED = 0.2
"""Of a processor: a thread that takes more of it to answer is asked a lot."""
_WINDOW = 0.02
"""Seconds over which that is measured."""
_STALE = 0.2
"""Seconds after which what was measured says nothing of now."""


class Demand(Protocol):
    """Says whether requests want the interpreter."""

    def is_high(self) -> bool:
        """Whether they want more of it than there is."""


class RequestDemand:
    """A `Demand` by processor time: that of the process, and of the thread that answers requests.

    Asked by one thread at a time.
    """

    def __init__(self, monotonic: Callable[[], float], processor: Callable[[], float] = time.process_time) -> None:
        """Read the time, and how much of the processor's this process has taken, both in seconds."""
        self._monotonic = monotonic
        self._processor = processor
        self._answering: Callable[[], float] | None = None
        self._measured_at = float("-inf")
        self._taken = self._answered = 0.0  # until then
        self._is_high = False

    def answer_here(self) -> None:
        """Take the calling thread for the one that answers; where its time cannot be told, nothing gives way to it."""
        if sys.platform == "linux":
            self._answering = partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))

    def is_high(self) -> bool:
        """Whether the process takes all that it can, and answering a good part of it."""
        now = self._monotonic()
        passed = now - self._measured_at
        if self._answering is not None and passed >= _WINDOW:
            try:
                self._measure(now, passed, self._answering())
            except OSError:  # the thread has ended
                self._is_high = False
        return self._is_high

    def _measure(self, now: float, passed: float, answered: float) -> None:
        taken = self._processor()
        shares = (taken - self._taken) / passed, (answered - self._answered) / passed
        self._is_high = passed < _STALE and shares[0] > _FULL and shares[1] > _ASKED
        self._measured_at, self._taken, self._answered = now, taken, answered


class Precedence:
    """See the module's docstring; any thread may use it."""

    def __init__(self, demand: Demand, *, clock: Clock, thread_time: Callable[[], float] = time.thread_time) -> None:
        """Give way while the `demand` is high; `thread_time` is what the calling thread has taken of the processor."""
        self._demand = demand
        self._clock = clock
        self._thread_time = thread_time
        self._lock = threading.Lock()
        self._usual = 0.0  # seconds of the processor that a reconcile takes
        self._next = 0.0  # when the next one may begin

    def run(self, reconcile: Callable[[], T], waiting: Callable[[], int]) -> T:
        """Return what `reconcile` returns, called when it may begin; raises what it raises.

        `waiting` returns how many keys its controller has to work off.
        """
        if waiting() > _FEW:
            self._wait()
        began = self._thread_time()
        try:
            return reconcile()
        finally:
            self._count(self._thread_time() - began)

    def _wait(self) -> None:
        with self._lock:
            if not self._demand.is_high():
                return
            now = self._clock.monotonic()
            begins = min(max(now, self._next), now + _LONGEST)
            self._next = begins + self._usual * _APART
        pause(self._clock, begins - now)

    def _count(self, taken: float) -> None:
        with self._lock:
            self._usual += _WEIGHT * (min(taken, _LARGEST) - self._usual)

"""Measures the cost of the work queue, compared with the bare minimum for passing items between threads.

A thread passes 100,000 keys to 4 workers, once through a `WorkQueue` (add, get, done, with metrics enabled) and once
through a bare `queue.SimpleQueue` (put, get). With either queue, a worker returns a permit after each item, and the
thread takes a permit before it adds the next item. Therefore a fixed number of items is in flight. With 4 items in
flight, there is one for each worker, so nearly every item wakes a thread; 64 items are a burst.

The other lines of the report have no goal. With 64 items in flight, and even more with all items (a backlog),
SimpleQueue no longer wakes threads. With a backlog, one thread fills a buffer in C while it holds the interpreter's
lock, then another thread empties the buffer, in some 50 to 70 ns per item. The last line shows how much of
SimpleQueue's rate Python code can reach at most: it compares three empty methods, which only take and release a lock on
one thread, with SimpleQueue.

Run `python -m bench.workqueue`; with `--check`, the exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import median

from bench.report import Claim, report, run
from ctrlmgr import threads
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import ShutDown
from ctrlmgr.workqueue import WorkQueue

WORKERS = 4
ROUNDS = 5
GOAL = 0.20
KEYS = [Key("default", f"service-{number}") for number in range(100_000)]

HandOff = Callable[[int | None], float]
"""A function that passes keys to the workers, with this number in flight (None: unlimited); returns keys per second."""


def through_work_queue(in_flight: int | None) -> float:
    """Measure the work queue with its methods add, get and done."""
    permits = _permits(in_flight)
    work: WorkQueue[Key] = WorkQueue("bench", clock=SystemClock(), namespace_of=attrgetter("namespace"))

    def worker() -> None:
        try:
            while (delivery := work.get()) is not None:
                work.done(delivery.item)
                permits.put(None)
        except ShutDown:
            return

    workers = [threads.start(f"bench-{number}", worker) for number in range(WORKERS)]
    started_at = time.perf_counter()
    for key in KEYS:
        if in_flight is not None:
            permits.get()
        work.add(key)
    work.shut_down()
    for thread in workers:
        thread.join()
    return len(KEYS) / (time.perf_counter() - started_at)


def through_simple_queue(in_flight: int | None) -> float:
    """Measure `queue.SimpleQueue` with its methods put and get."""
    permits = _permits(in_flight)
    work: queue.SimpleQueue[Key | None] = queue.SimpleQueue()

    def worker() -> None:
        while work.get() is not None:
            permits.put(None)

    workers = [threads.start(f"bench-{number}", worker) for number in range(WORKERS)]
    started_at = time.perf_counter()
    for key in KEYS:
        if in_flight is not None:
            permits.get()
        work.put(key)
    for _ in workers:
        work.put(None)
    for thread in workers:
        thread.join()
    return len(KEYS) / (time.perf_counter() - started_at)


def _permits(in_flight: int | None) -> queue.SimpleQueue[None]:
    permits: queue.SimpleQueue[None] = queue.SimpleQueue()
    for _ in range(in_flight or 0):
        permits.put(None)
    return permits


class Locked:
    """A minimal queue in Python, whose three methods do nothing while they hold a lock."""

    def __init__(self) -> None:
        """Create the lock."""
        self._lock = threading.Lock()

    def add(self, key: Key) -> None:
        """Do nothing."""
        with self._lock:
            return

    get = done = add


def three_empty_calls(in_flight: int | None) -> float:
    """Measure the three methods that do nothing, on one thread, so that no thread waits for another one."""
    nothing = Locked()
    started_at = time.perf_counter()
    for key in KEYS:
        nothing.add(key)
        nothing.get(key)
        nothing.done(key)
    return len(KEYS) / (time.perf_counter() - started_at)


def compare(hand_off: HandOff, in_flight: int | None) -> tuple[float, float]:
    """Return the median rates of `hand_off` and of the limit.

    The measurements of `hand_off` and of the limit alternate, so that other load on the machine affects both rates
    equally.
    """
    rounds = [(hand_off(in_flight), through_simple_queue(in_flight)) for _ in range(ROUNDS)]
    return median(value for value, _ in rounds), median(limit for _, limit in rounds)


def main(arguments: Sequence[str]) -> int:
    """Print one line per claim, then the lines without a goal."""
    value, limit = compare(through_work_queue, WORKERS)
    status = report(
        [Claim("rate of keys through the workqueue, 4 workers, 4 keys at a time", value, limit, GOAL, "items/s")],
        arguments,
    )
    for name, hand_off, in_flight in (
        ("rate of keys through the workqueue, 4 workers, 64 keys at a time", through_work_queue, 64),
        ("rate of keys through the workqueue, 4 workers, all keys waiting", through_work_queue, None),
        ("three empty calls under a lock, backlog", three_empty_calls, None),
    ):
        value, limit = compare(hand_off, in_flight)
        print(f"{name:<48} {value:>12,.0f} items/s    limit {limit:>12,.0f} ratio {value / limit:>6.2f}  (no goal)")
    return status


if __name__ == "__main__":
    run(main, __doc__)

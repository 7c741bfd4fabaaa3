"""A reference implementation of Kubernetes' fair queuing; it is slow, because it examines every queue at each event.

Source: apiserver `pkg/util/flowcontrol/fairqueuing/queueset/queueset.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

SERVICE = 0.003


@dataclass(eq=False)
class QueuedRequest:
    """A request."""

    number: int
    initial: int
    final: int
    latency: float
    arrived: float = 0.0
    started: float = 0.0
    queue: RequestQueue | None = None

    @property
    def work(self) -> float:
        return self.initial * SERVICE + self.final * self.latency

    @property
    def seats(self) -> int:
        return max(self.initial, self.final)


@dataclass(eq=False)
class RequestQueue:
    """A queue."""

    index: int
    next_start: float = 0.0
    seats: int = 0
    waiting: list[tuple[QueuedRequest, float]] = field(default_factory=list)
    """The requests in a queue, each with the work that it was estimated to need when it was queued."""
    running: list[QueuedRequest] = field(default_factory=list)

    def bound(self) -> None:
        if self.waiting:
            self.next_start = max(self.next_start, self.waiting[0][0].arrived)


class Reference:
    """The queues of one priority level."""

    def __init__(
        self, queues: int, length: int, limit: int, later: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self.lines = [RequestQueue(index) for index in range(queues)]
        self.length = length
        self.limit = limit
        self.started: list[int] = []
        """The numbers of the requests, in the order in which the requests were started."""
        self._later = later
        self._progress = 0.0
        self._last: float | None = None
        self._robin = 0
        self._enqueued = 0
        self.in_use = 0

    def advance(self, now: float) -> None:
        passed = now - (self._last if self._last is not None else now)
        self._last = now
        active = sum(bool(line.waiting or line.running) for line in self.lines)
        wanted = sum(line.seats + sum(each.seats for each, _ in line.waiting) for line in self.lines)
        if active:
            self._progress += min(wanted, self.limit) / active * passed

    def start(self, now: float, asked: QueuedRequest, hand: tuple[int, ...]) -> bool:
        self.advance(now)
        offset = self._enqueued % len(hand)
        self._enqueued += 1
        best, least = None, float("inf")
        for index in range(len(hand)):
            line = self.lines[hand[(offset + index) % len(hand)]]
            work = sum(work for _, work in line.waiting)
            if round(work, 9) < round(least, 9):
                best, least = line, work
        assert best is not None
        asked.queue, asked.arrived = best, self._progress
        if self.in_use >= self.limit and len(best.waiting) >= self.length:
            best.bound()
            return False
        if not (best.waiting or best.running):
            best.next_start = self._progress
        best.waiting.append((asked, asked.work))
        best.bound()
        self.dispatch(now)
        return True

    def dispatch(self, now: float) -> None:
        while any(line.waiting for line in self.lines) and self.in_use < self.limit and self._dispatch_one(now):
            pass

    def _dispatch_one(self, now: float) -> bool:
        best, least = None, float("inf")
        for step in range(1, len(self.lines) + 1):
            line = self.lines[(self._robin + step) % len(self.lines)]
            if line.waiting:
                end = line.next_start + line.waiting[0][1]
                if end < least - 1e-12:
                    best, least = line, end
        assert best is not None
        asked = best.waiting[0][0]
        if not self._fits(asked.seats):
            return False
        work = best.waiting.pop(0)[1]
        self._robin = best.index
        if asked.final > self.limit:
            asked.latency *= asked.final / self.limit
            asked.final = self.limit
        asked.started = now
        self.started.append(asked.number)
        self.in_use += asked.seats
        best.seats += asked.seats
        best.running.append(asked)
        best.next_start += work
        best.bound()
        return True

    def _fits(self, seats: int) -> bool:
        if seats > self.limit:
            return not any(line.running for line in self.lines)
        return self.in_use + seats <= self.limit

    def finish(self, now: float, asked: QueuedRequest) -> None:
        self.advance(now)
        line = asked.queue
        assert line is not None
        line.running.remove(asked)
        line.next_start -= asked.initial * (SERVICE - (now - asked.started))
        line.bound()

        def release() -> None:
            self.in_use -= asked.seats
            line.seats -= asked.seats

        if asked.latency > 0:

            def release_late() -> None:
                assert self._last is not None
                self.advance(now + asked.latency)
                release()
                self.dispatch(now + asked.latency)

            self._later(asked.latency, release_late)
        else:
            release()
        self.dispatch(now)

    def cancel(self, now: float, asked: QueuedRequest) -> None:
        self.advance(now)
        line = asked.queue
        assert line is not None
        line.waiting = [each for each in line.waiting if each[0] is not asked]
        line.bound()
        self.dispatch(now)

    def configure(self, now: float, limit: int) -> None:
        self.advance(now)
        self.limit = limit
        self.dispatch(now)

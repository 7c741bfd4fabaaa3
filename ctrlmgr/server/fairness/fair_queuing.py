"""Queues the requests of one priority level fairly: the level has several queues, which share the level's seats.

Each waiting request is in one of the queues that belong to its flow. In a virtual world, all queues with requests are
served at the same time, each at the same rate. When seats are free, the request that would end first in the virtual
world starts next. The clock of the virtual world is `progress`, in seats times seconds. A queue's `next_start` is the
progress at which its next request starts in the virtual world. The expected duration of a request is 3 ms. When a
request ends, the difference between the real and the expected duration is added to `next_start` of its queue.

Guarantees:
- At most `limit` seats are in use, with one exception: a request that needs more seats than the limit runs alone.
- A queue that was empty for some time gains no advantage from this time.
- Each request takes its seats once and returns its seats once, even if the request is cancelled or refused.
- If many requests arrive at once, only a few begin to run in each turn of the event loop, in the order of fair queuing.
  Therefore a client with many connections does not delay other clients by the number of its requests.
- No function of this module waits. When a queued request may run, `QueueSet` calls the request's callback `wake`. Used
  on the event loop's thread only.

While no request waits, the cost of a request does not depend on the number of queues.

Source: apiserver `pkg/util/flowcontrol/fairqueuing/queueset/queueset.go`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.fairness.queue_settings import (
    NARROW,
    SCALE,
    SEAT_WORK,
    SERVICE,
    DemandIntegrals,
    QueuedFlow,
    Queuing,
    SeatDemand,
    Width,
)
from ctrlmgr.server.fairness.seat_counts import SECONDS
from ctrlmgr.server.filters.in_flight_limits import Seat

_WAITING: Final = -1.0
_ENDED: Final = -2.0

Later = Callable[[float, Callable[[], None]], object]


class Ticket(Seat):
    """One request at a priority level, which waits, runs, or has ended."""

    __slots__ = ("arrived", "asked", "came", "flow", "queue", "started", "wake", "width")

    wake: Callable[[], None] | None
    """The callback that `QueueSet` calls when the waiting request may run; set while the request waits."""
    arrived: int
    """The `progress` of the level at the request's arrival, if the request waits."""
    came: float
    """The monotonic time of the request's arrival, in seconds."""

    def __init__(self, flow: QueuedFlow, attributes: Attributes) -> None:
        """Create the ticket of a request of `flow` that needs one seat and has not started."""
        self.flow = flow
        self.asked = attributes
        self.width = NARROW
        """The number of seats that the request needs; it may be changed before the start."""
        self.queue: Queue | None = None
        """The queue in which the request waits or waited; None if the request was never queued."""
        self.started = _ENDED
        """The monotonic time of the request's start in seconds; -1 while the request waits, -2 if the request neither
        runs nor waits.
        """

    @property
    def is_running(self) -> bool:
        """Whether the request has seats and has not ended."""
        return self.started >= 0

    @property
    def is_waiting(self) -> bool:
        """Whether the request is in a queue."""
        return self.started == _WAITING


class Queue:
    """The requests of one queue."""

    __slots__ = ("index", "next_start", "running", "seats", "waiting", "waiting_work")

    def __init__(self, index: int) -> None:
        """Create an empty queue with this index."""
        self.index = index
        self.next_start = 0
        self.seats = 0
        self.running = 0
        """The number of running requests, without requests that have ended but still keep their seats."""
        self.waiting: deque[Ticket] = deque()
        self.waiting_work = 0

    def bound(self) -> None:
        """Move the virtual start of the queue's next request to the request's arrival, if the start is earlier."""
        if self.waiting and self.next_start < self.waiting[0].arrived:
            self.next_start = self.waiting[0].arrived


class QueueSet:
    """The queues of one priority level."""

    def __init__(self, queuing: Queuing, limit: int, *, now: Callable[[], float], later: Later, burst: int = 0) -> None:
        """Create queues that share `limit` seats; the function `now` returns monotonic seconds.

        At most `burst` queued requests begin to run in one turn of the event loop; 0 means any number.
        """
        self._burst = burst
        self._begun = 0  # the number of requests that have begun to run since the last pause
        self._is_paused = False  # whether requests wait for the next turn
        self._now = now
        self._later = later
        self.queuing = queuing
        self.limit = limit
        """The number of seats that the queues share."""
        self.queues: list[Queue] = []
        self.running: set[Ticket] = set()
        """The running requests, except those that have ended but still keep their seats."""
        self.progress = 0
        self.waiting = 0
        """The number of waiting requests."""
        self.seats_in_use = 0
        self.seats_waiting = 0
        self.dispatched = 0
        self.rejected = 0
        self.cancelled = 0
        self.dispatched_start = 0
        """The start of the last started request in the virtual world, for metrics."""
        self._last = now()
        self._active = 0  # the number of queues with requests
        self._occupied: set[Queue] = set()  # the queues in which requests wait
        self._robin = 0
        self._enqueued = 0
        self._demand = DemandIntegrals()
        self.configure(queuing, limit)

    def configure(self, queuing: Queuing, limit: int) -> None:
        """Change the configuration of the queues, and start requests that may run now.

        A queue beyond the new number of queues gets no new requests, and is removed when the queue is empty.
        """
        self._advance()
        for index in range(len(self.queues), max(queuing.queues, 0)):
            self.queues.append(Queue(index))
        if queuing.queues < 1:
            queuing = queuing._replace(length=self.queuing.length, hand=self.queuing.hand)
        self.queuing = queuing
        self.limit = limit
        for queue in [each for each in self.queues[max(queuing.queues, 0) :] if not each.waiting]:
            self._drop(queue)
        self._dispatch_all()

    @property
    def is_idle(self) -> bool:
        """Whether no request is waiting or running."""
        return not self.waiting and not self.running

    def start(self, ticket: Ticket) -> bool:
        """Start a request, or put the request into a queue; return False if the request is refused.

        After the call, `started` of the ticket shows whether the request runs. The code is optimized for the common
        case, in which seats are free and no request waits.
        """
        self._advance()
        flow, width = ticket.flow, ticket.width
        seats = 1 if width is NARROW else width.seats
        number = self.queuing.queues
        if number < 1:
            if not (number < 0 or self._fits(seats)):
                return self._refuse(flow, "concurrency-limit")
            self._run(ticket, seats)
            return True
        if self.waiting:
            queue = self._choose(flow)
        else:
            hand = flow.hand
            queue = self.queues[hand[self._enqueued % len(hand)]]
            self._enqueued += 1
        ticket.queue = queue
        is_full = self._is_paused or self.seats_in_use >= self.limit
        if is_full and len(queue.waiting) >= self.queuing.length:
            queue.bound()
            return self._refuse(flow, "queue-full")
        if not (queue.waiting or queue.running):
            queue.next_start = self.progress
            self._active += 1
        free = self.limit - self.seats_in_use
        if self.waiting or is_full or (seats > free and not self._fits(seats)) or width.final > self.limit:
            self._enqueue(ticket, queue)
            self._dispatch_all()
            return True
        queue.next_start = max(queue.next_start, self.progress)
        self._take(ticket, queue, seats)
        return True

    def finish(self, ticket: Ticket) -> None:
        """End a running request; free its seats now or after its latency, and start other requests."""
        self._advance()
        self.running.discard(ticket)
        took = self._last - ticket.started
        ticket.started = _ENDED
        durations = ticket.flow.durations
        durations.buckets[bisect_left(SECONDS, took)] += 1
        durations.total += took
        width, queue = ticket.width, ticket.queue
        if queue is not None:
            queue.running -= 1
            if not (queue.running or queue.waiting):
                self._active -= 1
            queue.next_start -= round(width.initial * (SERVICE - took) * SCALE)
            if queue.waiting:
                queue.bound()
        if width is NARROW:
            self.seats_in_use -= 1
            if queue is not None:
                queue.seats -= 1
                if len(self.queues) > self.queuing.queues:
                    self._drop(queue)
        elif width.latency > 0:
            self._later(width.latency, lambda: self._release_late(width.seats, queue))
        else:
            self._release(width.seats, queue)
        if self.waiting:
            self._dispatch_all()

    def cancel(self, ticket: Ticket) -> None:
        """Remove a waiting request from its queue."""
        queue = ticket.queue
        assert queue is not None, "only queued requests wait"
        self._advance()
        queue.waiting.remove(ticket)
        self._dequeued(ticket, queue)
        ticket.started = _ENDED
        if not (queue.running or queue.waiting):
            self._active -= 1
        queue.bound()
        self._refuse(ticket.flow, "time-out")
        self.cancelled += 1
        self._drop(queue)
        self._dispatch_all()

    def measure(self) -> SeatDemand:
        """Return the measured demand for seats since the last call."""
        self._advance()
        return self._demand.measured(self.seats_in_use + self.seats_waiting)

    def next_starts(self) -> Sequence[tuple[int, int]]:
        """Return `next_start` of each queue in which requests wait, with and without the work in progress."""
        return [(each.next_start, each.next_start - each.seats * SEAT_WORK) for each in list(self._occupied)]

    def tickets(self) -> Sequence[Ticket]:
        """Return the requests that wait or run at this priority level. The method is thread-safe."""
        waiting = (ticket for queue in list(self._occupied) for ticket in list(queue.waiting))
        return [*waiting, *list(self.running)]

    def _advance(self) -> None:
        """Advance the virtual world and the integrals of the demand to the present."""
        now = self._now()
        passed = now - self._last
        if passed <= 0:
            return
        self._last = now
        seats = self.seats_in_use + self.seats_waiting
        demand = self._demand
        demand.elapsed += passed
        if seats:
            demand.total += seats * passed
            demand.squares += seats * seats * passed
            if seats > demand.peak:
                demand.peak = seats
            if self._active:
                limit = self.limit
                self.progress += round(min(seats, limit) / self._active * passed * SCALE)

    def _choose(self, flow: QueuedFlow) -> Queue:
        """Return the queue of a flow that has the least waiting work."""
        hand = flow.hand
        offset = self._enqueued % len(hand)
        self._enqueued += 1
        queues = [self.queues[index] for index in (*hand[offset:], *hand[:offset])]
        return min(queues, key=lambda queue: queue.waiting_work)

    def _enqueue(self, ticket: Ticket, queue: Queue) -> None:
        ticket.started, ticket.came, ticket.arrived, ticket.wake = _WAITING, self._last, self.progress, None
        queue.waiting.append(ticket)
        queue.waiting_work += ticket.width.work
        self._occupied.add(queue)
        self.waiting += 1
        self.seats_waiting += ticket.width.seats
        ticket.flow.counts.lengths.note(len(queue.waiting))
        queue.bound()
        self._note_peak()

    def _dequeued(self, ticket: Ticket, queue: Queue) -> None:
        queue.waiting_work -= ticket.width.work
        if not queue.waiting:
            self._occupied.discard(queue)
        self.waiting -= 1
        self.seats_waiting -= ticket.width.seats

    def _fits(self, seats: int) -> bool:
        """Return whether a request for this number of seats can run now.

        A request for more seats than the limit runs alone.
        """
        if self.queuing.queues < 0:
            return True
        if seats > self.limit:
            return not self.running
        return self.seats_in_use + seats <= self.limit

    def _dispatch_all(self) -> None:
        while self.waiting and not self._is_paused and self.seats_in_use < self.limit and self._dispatch():
            pass

    def _dispatch(self) -> bool:
        """Start the waiting request that would end first in the virtual world.

        The method returns False if too few seats are free.
        """
        count, first = len(self.queues), self._robin + 1
        queue = min(
            self._occupied,
            key=lambda each: (each.next_start + each.waiting[0].width.work, (each.index - first) % count),
        )
        ticket = queue.waiting[0]
        if not self._fits(ticket.width.seats):
            ticket.flow.counts.unaccommodated += 1
            return False
        queue.waiting.popleft()
        self._dequeued(ticket, queue)
        work, width = ticket.width.work, ticket.width
        if width.final > self.limit:
            ticket.width = Width(width.initial, self.limit, width.latency * width.final / self.limit)
        self._take(ticket, queue, ticket.width.seats)
        queue.next_start += work - ticket.width.work
        queue.bound()
        if ticket.wake is not None:
            ticket.wake()
        return True

    def _take(self, ticket: Ticket, queue: Queue, seats: int) -> None:
        """Start a request that waits in a queue."""
        queue.running += 1
        queue.seats += seats
        self.dispatched_start = queue.next_start
        width = ticket.width
        queue.next_start += SEAT_WORK if width is NARROW else width.work
        self._robin = queue.index
        self._run(ticket, seats)
        self._begun += 1
        if self._begun == self._burst:
            self._is_paused = True
            self._later(0.0, self._resume)

    def _resume(self) -> None:
        """Start further requests in a new turn of the event loop."""
        self._begun, self._is_paused = 0, False
        self._advance()
        self._dispatch_all()

    def _run(self, ticket: Ticket, seats: int) -> None:
        if ticket.started != _WAITING:
            ticket.came = self._last
        ticket.started = self._last
        self.running.add(ticket)
        self.dispatched += 1
        self.seats_in_use += seats
        ticket.flow.counts.dispatched += 1
        demand = self._demand
        if self.seats_in_use + self.seats_waiting > demand.peak:
            self._note_peak()

    def _release_late(self, seats: int, queue: Queue | None) -> None:
        self._advance()
        self._release(seats, queue)
        self._dispatch_all()

    def _release(self, seats: int, queue: Queue | None) -> None:
        """Free the seats of a request that has ended and whose latency is over."""
        self.seats_in_use -= seats
        if queue is not None:
            queue.seats -= seats
            if len(self.queues) > self.queuing.queues:
                self._drop(queue)

    def _drop(self, queue: Queue) -> None:
        """Remove a queue that is beyond the configured number, if it is empty."""
        if len(self.queues) <= max(self.queuing.queues, 0) or queue.waiting or queue.running or queue.seats:
            return
        is_there = queue.index < len(self.queues) and self.queues[queue.index] is queue
        if is_there:
            del self.queues[queue.index]
            for each in self.queues[queue.index :]:
                each.index -= 1
            if self._robin >= queue.index:
                self._robin -= 1

    def _refuse(self, flow: QueuedFlow, reason: str) -> bool:
        self.rejected += 1
        flow.counts.rejected[reason] = flow.counts.rejected.get(reason, 0) + 1
        return False

    def _note_peak(self) -> None:
        self._demand.peak = max(self._demand.peak, self.seats_in_use + self.seats_waiting)

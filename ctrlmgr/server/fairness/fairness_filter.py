"""The step of the handler chain that lets a request run, wait for its seats, or be refused.

Guarantees:
- A request waits at most a quarter of a minute for its seats, and is then refused with 429 and Retry-After.
- Every classified request is answered with the uids of its FlowSchema and its priority level.
- A request holds no seat while the server waits for its body. A client that withholds the body occupies nothing.
- A watch holds its seats only until its initial events are sent. Other long-running requests are not limited.
- A request returns its seats however it ends. A client that disconnects leaves its queue.

Rules: apiserver `pkg/server/filters/priority-and-fairness.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.metrics import in_flight
from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.level_state import Flow, LevelStates
from ctrlmgr.server.fairness.queue_settings import NARROW, Width
from ctrlmgr.server.fairness.request_width import WATCHES_PER_SEAT, ObjectStats, kept_seats, list_seats
from ctrlmgr.server.in_flight_limits import FREE, LONG_RUNNING, READING, Overloaded, Seat
from ctrlmgr.server.request import Request

PATIENCE: Final = 15.0
"""The seconds that a request waits for its seats: a quarter of kube-apiserver's --request-timeout."""

_WRITING: Final = frozenset({"create", "update", "patch", "delete"})
_WIDE: Final = _WRITING | {"list", "watch"}
"""The verbs of requests that can take several seats."""
_MOST_FLOWS: Final = 8192
"""The maximum number of remembered assignments."""
_LONGEST: Final = 1024
"""The maximum length of a remembered request's user, resource and path, in characters."""

_FlowKey = tuple[str, tuple[str, ...], str, str, str, str, str]
_WatchKey = tuple[str, str, str, str]


class FairSeat(Ticket):
    """The seats of a request at its priority level."""

    __slots__ = ("_fairness", "_request", "watch")

    flow: Flow

    def __init__(self, fairness: Fairness, flow: Flow, request: Request, asked: Attributes) -> None:
        """Create the seats without taking them."""
        super().__init__(flow, asked)
        self._fairness = fairness
        self._request = request
        self.watch: _WatchKey | None = None
        """The watch that ends with the seats."""

    @property
    def waits(self) -> bool:  # type: ignore[override]  # a constant of seats that are always free
        """Whether the request has to wait for its `turn`."""
        return self.is_waiting

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The request's query."""
        return self._request.query

    async def turn(self) -> None:
        """Wait until the request may run; raises `Overloaded`, and `Disconnected` if the client is gone."""
        fairness, loop = self._fairness, asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        began = fairness.clock.monotonic()
        self.wake = lambda: _tell(told)
        self._request.on_lost(self.wake)
        timer = loop.call_later(PATIENCE, _tell, told)
        try:
            await told
        finally:
            timer.cancel()
            self.wake = None
        self.flow.counts.waits["true" if self.is_running else "false"].note(fairness.clock.monotonic() - began)
        if self._request.is_lost:
            raise Disconnected
        if not self.is_running:
            self.leave()
            raise fairness.refusal(self.flow)

    async def take(self) -> None:
        """Take the seats again after `pause`; raises `Overloaded`."""
        self._fairness.start(self)
        if self.is_waiting:
            await self.turn()

    def pause(self) -> None:
        """Return the seats; a write keeps none for watches yet."""
        width = self.width
        self.width = width._replace(latency=0.0)
        self.leave()
        self.width = width

    def leave(self) -> None:
        """Return the seats, or leave the queue."""
        if self.started >= 0:
            self.flow.queues.finish(self)
        elif self.is_waiting:
            self.flow.queues.cancel(self)

    def end(self) -> None:
        """Return the seats for good: the request has been answered."""
        self.leave()
        if self.watch is not None:
            self._fairness.forget(self.watch)
        self._request.seat = FREE  # the request and its seat refer to each other; this breaks the cycle


def _tell(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)


class Fairness:
    """API priority and fairness. Used on the event loop only."""

    def __init__(self, total: int, cacher: Cacher, *, clock: Clock) -> None:
        """Divide `total` seats as the objects of `cacher` say."""
        self.clock = clock
        self.levels = LevelStates(total, now=clock.monotonic, later=_call_later)
        """The state of the priority levels."""
        cacher.feed(self.levels)
        self._stats = ObjectStats(cacher.list, now=clock.monotonic)
        self._flows: BoundedCache[_FlowKey, Flow] = BoundedCache("request-flows", entries=_MOST_FLOWS, largest=_LONGEST)
        self._generation = -1
        self._watches: dict[_WatchKey, int] = {}
        in_flight("readOnly").set_function(lambda: self._running(reads=True))
        in_flight("mutating").set_function(lambda: self._running(reads=False))

    def seat(self, request: Request, asked: Attributes) -> Seat:
        """Start a request, and return its seats; raises `Overloaded`.

        All its answers name its FlowSchema and its priority level.
        """
        if asked.subresource in LONG_RUNNING or asked.verb == "proxy":
            return FREE
        user = request.user
        where = asked.namespace if asked.is_resource else asked.path
        key = (user.name, user.groups, asked.verb, asked.group, asked.resource, asked.subresource, where)
        if self._generation != self.levels.generation:
            self._generation = self.levels.generation
            self._flows.clear()
        flow = self._flows.peek(key)
        if flow is None:
            flow = self._assigned(key, user, asked)
        else:
            self._flows.counts.hits += 1
        request.headers = (*request.headers, *flow.headers) if request.headers else flow.headers
        seat = FairSeat(self, flow, request, asked)
        if asked.verb in _WIDE:
            seat.width = self._width(seat)
        self.start(seat)
        if asked.verb == "watch":
            seat.watch = self._count_watch(asked)
        return seat

    def _assigned(self, key: _FlowKey, user: User, asked: Attributes) -> Flow:
        """Return the flow of a request, and remember it unless a client made the key long."""
        self._flows.counts.misses += 1
        flow = self.levels.assign(user, asked)
        self._flows.put(key, flow, len(user.name) + sum(map(len, user.groups)) + sum(map(len, key[2:])))
        return flow

    def start(self, seat: FairSeat) -> None:
        """Start a request, or let it wait; raises `Overloaded`."""
        if not seat.flow.queues.start(seat):
            raise self.refusal(seat.flow)

    def _width(self, seat: FairSeat) -> Width:
        """Return the seats of a request that reads many objects, or whose event many watches receive."""
        asked, counts, widest = seat.asked, seat.flow.counts, seat.flow.level.widest
        width = NARROW
        if asked.verb in _WRITING:
            watches = self._interested(asked) if self._watches else 0
            if not watches:
                counts.unwatched += 1
                return NARROW
            counts.watchers.note(watches)
            if watches >= WATCHES_PER_SEAT:
                width = kept_seats(watches, widest)
        else:
            stats = self._stats.of(Resource(asked.group, asked.resource))
            width = Width(list_seats(asked, seat.query, stats, widest))
        if width.seats == 1:
            return width if width.latency else NARROW
        counts.widths.note(width.seats)
        return width

    def refusal(self, flow: Flow) -> Overloaded:
        """Return the error for a request that does not get its seats."""
        retry_after = flow.level.retry_after
        retry_after.note(self.clock.now() // 1_000_000)
        return Overloaded(retry_after.seconds)

    def tick(self) -> None:
        """Adjust the levels' seats; call it about once a second."""
        self.levels.tick()

    def _count_watch(self, asked: Attributes) -> _WatchKey | None:
        """Count a watch among those that writes are sent to, and return the key to `forget` it by.

        Return None for a watch of the pods of one node: few writes are sent to it, so Kubernetes does not count it.
        """
        if asked.resource == "pods" and any(each.key == "spec.nodeName" and any(each.values) for each in asked.fields):
            return None
        key = (asked.group, asked.resource, asked.namespace, asked.name)
        self._watches[key] = self._watches.get(key, 0) + 1
        return key

    def forget(self, key: _WatchKey) -> None:
        """Stop counting a watch."""
        left = self._watches[key] - 1
        if left:
            self._watches[key] = left
        else:
            del self._watches[key]

    def _interested(self, asked: Attributes) -> int:
        """Return the number of watches that the event of a write may be sent to."""
        if asked.subresource == "token":  # creating a token changes no object
            return 0
        group, resource, namespace, name = asked.group, asked.resource, asked.namespace, asked.name
        keys = {(group, resource, "", "")}
        if namespace:
            keys.add((group, resource, namespace, ""))
        if name:
            keys.add((group, resource, namespace, name))
        return sum(self._watches.get(key, 0) for key in keys)

    def _running(self, *, reads: bool) -> int:
        tickets = (ticket for level in self.levels.present for ticket in level.queues.tickets())
        return sum((ticket.asked.verb in READING) is reads for ticket in tickets if ticket.is_running)


def _call_later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)

"""Implements the step of the handler chain in which a request gets seats, waits for seats, or is refused.

Guarantees:
- A request waits at most 15 seconds for its seats; after this time, the server refuses the request with 429 and
  Retry-After.
- The response to every classified request contains the uids of its FlowSchema and its priority level.
- A request holds no seats while the server waits for the request's body, so that a client that does not send the body
  occupies no seats.
- A watch holds its seats only until the watch's initial events are sent. Long-running requests other than watches need
  no seats.
- A request always returns its seats, even if the request fails. If a client disconnects, the client's waiting request
  is removed from the queue.

Source: apiserver `pkg/server/filters/priority-and-fairness.go`.
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
from ctrlmgr.golang.go_duration import write_go_duration
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.metrics import in_flight
from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.level_state import Flow, LevelStates
from ctrlmgr.server.fairness.queue_settings import NARROW, Width
from ctrlmgr.server.fairness.request_width import WATCHES_PER_SEAT, ObjectStats, kept_seats, list_seats
from ctrlmgr.server.filters.in_flight_limits import FREE, LONG_RUNNING, READING, Overloaded, Seat
from ctrlmgr.server.request import Request

PATIENCE: Final = 15.0
"""The default of the maximum seconds that a request waits for its seats.

As in kube-apiserver, the default is a quarter of the maximum duration of requests.
"""

_WRITING: Final = frozenset({"create", "update", "patch", "delete"})
_WIDE: Final = _WRITING | {"list", "watch"}
"""The verbs of requests that can need several seats."""
_MOST_FLOWS: Final = 8192
"""The maximum number of cached assignments of requests to flows."""
_LONGEST: Final = 1024
"""The maximum length of the user, resource and path of a cached assignment, in characters."""

_FlowKey = tuple[str, tuple[str, ...], str, str, str, str, str]
_WatchKey = tuple[str, str, str, str]


class FairSeat(Ticket):
    """The seats of a request at its priority level."""

    __slots__ = ("_fairness", "_request", "watch")

    flow: Flow

    def __init__(self, fairness: Fairness, flow: Flow, request: Request, attributes: Attributes) -> None:
        """Create the seats of a request without taking them."""
        super().__init__(flow, attributes)
        self._fairness = fairness
        self._request = request
        self.watch: _WatchKey | None = None
        """The key of the watch that is no longer counted when the seats are returned."""

    @property
    def waits(self) -> bool:  # type: ignore[override]  # a constant of seats that are always free
        """Whether the request has to wait until `turn` returns."""
        return self.is_waiting

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The query parameters of the request."""
        return self._request.query

    async def turn(self) -> None:
        """Wait until the request may run.

        Raises `Overloaded` if it gets no seats in time, and `Disconnected` if the client disconnects.
        """
        fairness, loop = self._fairness, asyncio.get_running_loop()
        admitted: asyncio.Future[None] = loop.create_future()
        began = fairness.clock.monotonic()
        self.wake = lambda: _tell(admitted)
        self._request.on_lost(self.wake)
        timer = loop.call_later(fairness.patience, _tell, admitted)
        try:
            await admitted
        finally:
            timer.cancel()
            self.wake = None
        self.flow.counts.waits["true" if self.is_running else "false"].note(fairness.clock.monotonic() - began)
        if self._request.is_disconnected:
            raise Disconnected
        if not self.is_running:
            self.release()
            raise fairness.refusal(self.flow)

    async def take(self) -> None:
        """Take the seats again after `pause`; raises `Overloaded` if the request gets no seats in time."""
        self._fairness.start(self)
        if self.is_waiting:
            await self.turn()

    def pause(self) -> None:
        """Return the seats; in contrast to `end`, a write keeps no seats for the watches that receive its event."""
        width = self.width
        self.width = width._replace(latency=0.0)
        self.release()
        self.width = width

    def release(self) -> None:
        """Return the seats, or remove the request from its queue."""
        if self.started >= 0:
            self.flow.queues.finish(self)
        elif self.is_waiting:
            self.flow.queues.cancel(self)

    def end(self) -> None:
        """Return the seats for the last time, because the request has been answered."""
        self.release()
        if self.watch is not None:
            self._fairness.forget(self.watch)
        self._request.seat = FREE  # the request and its seats refer to each other; this breaks the reference cycle

    def log_fields(self) -> dict[str, object]:
        """Return the priority level, the flow schema and the width of the request, as kube-apiserver logs them."""
        width = self.width
        return {
            "apf_pl": self.flow.level.name,
            "apf_fs": self.flow.schema.name,
            "apf_iseats": width.initial,
            "apf_fseats": width.final,
            "apf_additionalLatency": write_go_duration(width.latency),
        }


def _tell(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


class Fairness:
    """Applies API priority and fairness to the requests of a server. Used on the event loop's thread only."""

    def __init__(self, total: int, cacher: Cacher, *, clock: Clock, patience: float = PATIENCE) -> None:
        """Create the filter, which divides `total` seats as the FlowSchemas and priority levels in `cacher` specify.

        A request waits at most `patience` seconds for its seats.
        """
        self.patience = patience
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

    def seat(self, request: Request, attributes: Attributes) -> Seat:
        """Start a request or queue it, and return the request's seats; raises `Overloaded` if the request is refused.

        All responses to the request contain the uids of its FlowSchema and its priority level.
        """
        if attributes.subresource in LONG_RUNNING or attributes.verb == "proxy":
            return FREE
        user = request.user
        where = attributes.namespace if attributes.is_resource else attributes.path
        key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            where,
        )
        if self._generation != self.levels.generation:
            self._generation = self.levels.generation
            self._flows.clear()
        flow = self._flows.peek(key)
        if flow is None:
            flow = self._assigned(key, user, attributes)
        else:
            self._flows.counts.hits += 1
        request.headers = (*request.headers, *flow.headers) if request.headers else flow.headers
        seat = FairSeat(self, flow, request, attributes)
        if attributes.verb in _WIDE:
            seat.width = self._width(seat)
        self.start(seat)
        if attributes.verb == "watch":
            seat.watch = self._count_watch(attributes)
        return seat

    def _assigned(self, key: _FlowKey, user: User, attributes: Attributes) -> Flow:
        """Return the flow of a request; the result is cached, unless the cache key would be too long."""
        self._flows.counts.misses += 1
        flow = self.levels.assign(user, attributes)
        self._flows.put(key, flow, len(user.name) + sum(map(len, user.groups)) + sum(map(len, key[2:])))
        return flow

    def start(self, seat: FairSeat) -> None:
        """Start a request, or put the request into a queue; raises `Overloaded` if the queue is full."""
        if not seat.flow.queues.start(seat):
            raise self.refusal(seat.flow)

    def _width(self, seat: FairSeat) -> Width:
        """Return the width of a request that reads many objects, or of a write whose event many watches receive."""
        attributes, counts, widest = seat.asked, seat.flow.counts, seat.flow.level.widest
        width = NARROW
        if attributes.verb in _WRITING:
            watches = self._interested(attributes) if self._watches else 0
            if not watches:
                counts.unwatched += 1
                return NARROW
            counts.watchers.note(watches)
            if watches >= WATCHES_PER_SEAT:
                width = kept_seats(watches, widest)
        else:
            stats = self._stats.of(Resource(attributes.group, attributes.resource))
            width = Width(list_seats(attributes, seat.query, stats, widest))
        if width.seats == 1:
            return width if width.latency else NARROW
        counts.widths.note(width.seats)
        return width

    def refusal(self, flow: Flow) -> Overloaded:
        """Return the error for a request that does not get seats."""
        retry_after = flow.level.retry_after
        retry_after.note(self.clock.now() // 1_000_000)
        return Overloaded(retry_after.seconds)

    def tick(self) -> None:
        """Adjust the seats of the priority levels; the caller must do this about once a second."""
        self.levels.tick()

    def _count_watch(self, attributes: Attributes) -> _WatchKey | None:
        """Count a watch among those that receive writes, and return the key with which `forget` stops counting it.

        Return None for a watch of the pods of one node, which Kubernetes does not count because it receives few writes.
        """
        if attributes.resource == "pods" and any(
            each.key == "spec.nodeName" and any(each.values) for each in attributes.fields
        ):
            return None
        key = (attributes.group, attributes.resource, attributes.namespace, attributes.name)
        self._watches[key] = self._watches.get(key, 0) + 1
        return key

    def forget(self, key: _WatchKey) -> None:
        """Stop counting the watch with this key."""
        left = self._watches[key] - 1
        if left:
            self._watches[key] = left
        else:
            del self._watches[key]

    def _interested(self, attributes: Attributes) -> int:
        """Return the number of watches to which the event of a write may be sent."""
        if attributes.subresource == "token":  # creating a token changes no object
            return 0
        group, resource, namespace, name = attributes.group, attributes.resource, attributes.namespace, attributes.name
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

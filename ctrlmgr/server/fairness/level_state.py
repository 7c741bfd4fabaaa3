"""Keeps the state of a server's priority levels: their seats, and the assignment of requests to the levels.

Guarantees:
- The FlowSchemas and PriorityLevelConfigurations are always those in the log. A FlowSchema whose priority level is
  missing or unusable is ignored. The levels `exempt` and `catch-all` always exist; until the objects of these levels
  exist, Kubernetes' default values apply.
- A priority level that was deleted keeps its seats until its last request has ended.
- The sum of the seats of all levels is about the number of the server's seats. Every ten seconds, levels lend unused
  seats to other levels.

Source: apiserver `pkg/util/flowcontrol/apf_controller.go`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.http.framing import Header
from ctrlmgr.kinds.flowcontrol.flow_resources import FLOW_SCHEMAS, LEVELS, is_usable
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import CATCH_ALL, EXEMPT
from ctrlmgr.kinds.flowcontrol.suggested_configuration import BOOTSTRAP_LEVELS, BOOTSTRAP_SCHEMAS
from ctrlmgr.server.fairness.fair_queuing import Later, QueueSet
from ctrlmgr.server.fairness.flow_matching import Schema, compile_schema
from ctrlmgr.server.fairness.queue_settings import UNLIMITED, Queuing
from ctrlmgr.server.fairness.retry_after import RetryAfter
from ctrlmgr.server.fairness.seat_allocation import Demand, allocate
from ctrlmgr.server.fairness.seat_counts import SchemaCounts
from ctrlmgr.server.fairness.shuffle_sharding import deal, hash_flow

PERIOD: Final = 10.0
"""Seconds between adjustments of the levels' seats."""

_DECAY: Final = 0.977
"""The part of the smoothed demand that remains after one adjustment; half of the demand remains after 5 minutes."""
_BURST: Final = 4
"""The maximum number of a level's requests that begin to run in one turn of the event loop.

The number is limited because all requests share one thread, regardless of the requests' seats.
"""
_WIDEST: Final = 0.15
"""The maximum part of a level's seats that one request may take."""


class Level:
    """The state of one priority level."""

    def __init__(self, name: str, queues: QueueSet) -> None:
        """Create the level with this name, whose seats `queues` shares."""
        self.name = name
        self.queues = queues
        self.uid = ""
        self.spec: Mapping[str, Any] = {}
        self.is_quiescing = False
        """Whether the level was deleted and still has requests."""
        self.nominal = self.minimum = self.maximum = self.current = 0
        """The level's numbers of seats.

        `nominal` is the configured number of seats. `minimum` is `nominal` minus the seats that the level may lend;
        `maximum` is `nominal` plus the seats that the level may borrow. `current` is the current number of seats.
        """
        self.peak = 0
        self.average = self.deviation = self.smoothed = self.target = 0.0
        """The demand for seats in the last period, in seats."""
        self.widest = 0
        """The maximum number of seats that one request may take; 0 if the level has no queues."""
        self.retry_after = RetryAfter()

    @property
    def is_exempt(self) -> bool:
        """Whether the level's requests are never limited."""
        return self.spec.get("type") == "Exempt"

    @property
    def queuing(self) -> Queuing:
        """The configuration of the level's queues."""
        if self.is_exempt:
            return Queuing(UNLIMITED)
        queuing = self.spec["limited"]["limitResponse"].get("queuing")
        return Queuing(0) if queuing is None else Queuing(*(queuing[each] for each in _QUEUING))

    def share(self, total: int, shares: float) -> None:
        """Compute the level's seats from its share of the server's `total`."""
        limits = self.limits
        own = limits.get("nominalConcurrencyShares") or 0
        self.nominal = math.ceil(total * own / shares) if shares else 0
        self.minimum = self.nominal - _rounded(self.nominal * (limits.get("lendablePercent") or 0) / 100)
        borrows = limits.get("borrowingLimitPercent")
        more = total if borrows is None or self.is_exempt else _rounded(self.nominal * borrows / 100)
        self.maximum = self.nominal + more
        queuing = self.queuing
        if queuing.queues > 0:
            narrow = min(math.ceil(self.nominal * _WIDEST), self.nominal // queuing.hand)
            self.widest = max(1, narrow)

    @property
    def limits(self) -> Mapping[str, Any]:
        """The fields of the level's spec that configure seats."""
        found: Mapping[str, Any] = self.spec.get("limited") or self.spec.get("exempt") or {}
        return found

    def measure(self) -> None:
        """Record the demand since the last call."""
        measured = self.queues.measure()
        self.peak = measured.peak
        if measured.seconds <= 0:
            return
        self.average, self.deviation = measured.average, measured.deviation
        envelope = measured.average + measured.deviation
        self.smoothed = max(envelope, _DECAY * self.smoothed + (1 - _DECAY) * envelope)

    @property
    def least(self) -> int:
        """The lower bound of the number of seats that the level gets in the next adjustment."""
        return max(self.minimum, self.peak if self.is_exempt else min(self.nominal, self.peak))


_QUEUING: Final = ("queues", "handSize", "queueLengthLimit")


class Flow:
    """The requests of one user for one verb, resource and namespace, which are assigned to one FlowSchema and level."""

    __slots__ = ("counts", "distinguisher", "durations", "hand", "headers", "level", "queues", "schema", "user")

    def __init__(self, user: str, schema: Schema, distinguisher: str, level: Level, counts: SchemaCounts) -> None:
        """Create the flow of `user`, assigned to a FlowSchema and its priority level."""
        self.user = user
        self.schema = schema
        self.distinguisher = distinguisher
        self.level = level
        self.queues = level.queues
        queuing = level.queuing
        self.hand: tuple[int, ...] = ()
        """The indexes of the queues that belong to the flow."""
        if queuing.queues > 0:
            self.hand = deal(hash_flow(schema.name, distinguisher), queuing.queues, queuing.hand)
        self.counts = counts
        self.durations = counts.durations["regular"]
        self.headers: Sequence[Header] = (
            (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        )
        """The headers in the response to every request of the flow."""


class LevelStates:
    """All priority levels of a server, as an index of the cacher. Used on the event loop's thread only."""

    resources: Sequence[Resource] = (FLOW_SCHEMAS, LEVELS)
    """The resources whose objects determine the priority levels."""

    def __init__(self, total: int, *, now: Callable[[], float], later: Later) -> None:
        """Create the levels, which share `total` seats; `now` returns monotonic seconds."""
        self._total = total
        self._now = now
        self._later = later
        self._objects: dict[Resource, dict[str, Object]] = {FLOW_SCHEMAS: {}, LEVELS: {}}
        self._is_outdated = True
        self._schemas: Sequence[Schema] = ()
        self._levels: dict[str, Level] = {}
        self._counts: dict[tuple[str, str], SchemaCounts] = {}
        self._adjusted_at = now()
        self.fair_fraction = 0.0
        self.generation = 0
        """A number that increases when flows must be assigned to levels again."""

    def reset(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Replace all objects of a resource."""
        self._objects[resource] = {obj.name: obj for obj in objects}
        self._outdate()

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Record the new state of an object; None means that the object was deleted."""
        if obj is None:
            self._objects[resource].pop(key.name, None)
        else:
            self._objects[resource][key.name] = obj
        self._outdate()

    def _outdate(self) -> None:
        self._is_outdated = True
        self.generation += 1

    @property
    def levels(self) -> Sequence[Level]:
        """The priority levels, by name."""
        self._update()
        return [self._levels[name] for name in sorted(self._levels)]

    @property
    def present(self) -> Sequence[Level]:
        """The priority levels, without changes of objects that have not been applied yet.

        The property is thread-safe.
        """
        return list(self._levels.values())

    @property
    def counts(self) -> Sequence[SchemaCounts]:
        """The counts of all FlowSchemas that have had requests. The property is thread-safe."""
        return list(self._counts.values())

    def assign(self, user: User, attributes: Attributes) -> Flow:
        """Return the flow of a request."""
        self._update()
        schema = next((each for each in self._schemas if each.match(user, attributes)), None) or self._catch_all
        level = self._levels[schema.level]
        distinguisher = schema.distinguisher(user, attributes) if level.queuing.queues > 1 else ""
        names = (level.name, schema.name)
        counts = self._counts.get(names)
        if counts is None:
            counts = self._counts[names] = SchemaCounts(*names, is_queued=level.queuing.queues > 0)
        flow = Flow(user.name, schema, distinguisher, level, counts)
        if attributes.verb == "watch":
            flow.durations = counts.durations["watch"]
        return flow

    @property
    def _catch_all(self) -> Schema:
        """The FlowSchema for requests that no other FlowSchema matches.

        The catch-all FlowSchema is only a fallback, because every user is in a group that some FlowSchema matches.
        """
        return next(each for each in self._schemas if each.name == CATCH_ALL)

    def tick(self) -> None:
        """Adjust the levels' seats if a period has passed, and remove deleted levels that are idle."""
        if any(level.is_quiescing and level.queues.is_idle for level in self._levels.values()):
            self._outdate()
        self._update()
        if self._now() - self._adjusted_at >= PERIOD:
            self._adjust()

    def _update(self) -> None:
        """Apply the FlowSchemas and PriorityLevelConfigurations, if they have changed."""
        if not self._is_outdated:
            return
        self._is_outdated = False
        old, self._levels = self._levels, {}
        for name, obj in self._objects[LEVELS].items():
            spec = obj.to_dict().get("spec") or {}
            if is_usable(name, spec):
                self._add(name, obj.uid, spec, old.get(name))
        self._schemas = self._compiled()
        for name, level in old.items():
            if name not in self._levels and (name in _MANDATORY or not level.queues.is_idle):
                level.is_quiescing = name not in _MANDATORY
                self._levels[name] = level
        for name in _MANDATORY:
            if name not in self._levels:
                self._add(name, "", BOOTSTRAP_LEVELS[name], None)
        self._forget_counts()
        self._divide()

    def _add(self, name: str, uid: str, spec: Mapping[str, Any], level: Level | None) -> None:
        if level is None:
            queues = QueueSet(Queuing(0), 0, now=self._now, later=self._later, burst=_BURST)
            level = Level(name, queues)
        level.uid, level.spec, level.is_quiescing = uid, spec, False
        self._levels[name] = level

    def _compiled(self) -> Sequence[Schema]:
        """Return the usable FlowSchemas in order.

        Mandatory FlowSchemas that are missing are added at the beginning or the end.
        """
        objects = self._objects[FLOW_SCHEMAS].values()
        compiled = [compile_schema(obj.name, obj.uid, obj.to_dict().get("spec") or {}) for obj in objects]
        schemas = sorted(each for each in compiled if each.level in self._levels)
        names = {each.name for each in schemas}
        first = [] if EXEMPT in names else [compile_schema(EXEMPT, "", BOOTSTRAP_SCHEMAS[EXEMPT])]
        last = [] if CATCH_ALL in names else [compile_schema(CATCH_ALL, "", BOOTSTRAP_SCHEMAS[CATCH_ALL])]
        return [*first, *schemas, *last]

    def _forget_counts(self) -> None:
        """Drop the counts of FlowSchemas that no longer exist, so that the number of counts stays bounded."""
        names = {(each.level, each.name) for each in self._schemas}
        self._counts = {key: each for key, each in self._counts.items() if key in names}

    def _divide(self) -> None:
        """Give each level its share of the server's seats."""
        shares = sum(level.limits.get("nominalConcurrencyShares") or 0 for level in self._levels.values())
        for level in self._levels.values():
            level.share(self._total, shares)
        self._adjust()

    def _adjust(self) -> None:
        """Let levels borrow the seats that other levels have not used since the last adjustment."""
        self._adjusted_at = self._now()
        levels = self._levels.values()
        for level in levels:
            level.measure()
        total = sum(level.nominal for level in levels)
        limited = [level for level in levels if not level.is_exempt]
        left = total - sum(level.least for level in levels if level.is_exempt)
        minimum, least = (sum(level.minimum for level in limited), sum(level.least for level in limited))
        self.fair_fraction = 0.0
        if left <= minimum:
            seats: Sequence[float] = [float(level.minimum) for level in limited]
        elif left <= least:
            part = (left - minimum) / (least - minimum)
            seats = [level.minimum + (level.least - level.minimum) * part for level in limited]
        else:
            seats = self._borrowed(total, limited)
        for level, own in zip(limited, seats, strict=True):
            level.current = _rounded(own)
        for level in levels:
            if level.is_exempt:
                level.current = level.least
            level.queues.configure(level.queuing, level.current)

    def _borrowed(self, total: int, limited: Sequence[Level]) -> Sequence[float]:
        for level in limited:
            level.target = max(level.least, level.smoothed)
        demands = [Demand(level.least, level.maximum, level.target) for level in limited]
        try:
            seats, self.fair_fraction = allocate(total, demands)
        except ValueError:  # the bounds may contradict each other because of rounding; in this case nothing is changed
            return [float(level.current or level.nominal) for level in limited]
        return seats


_MANDATORY: Final = (EXEMPT, CATCH_ALL)


def _rounded(value: float) -> int:
    """Return a number of seats, rounded to an integer; halves are rounded up as in Go."""
    return math.floor(value + 0.5)

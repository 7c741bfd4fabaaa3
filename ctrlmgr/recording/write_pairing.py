"""Compares every single write: pairs each write of a recorded controller with a write of our controllers.

A recorded write depends on the state that the recorded controller had read. Because caches are slightly behind, the
state that the controller read may lack changes that precede the write in the recording. One write may also react to
several changes. For these reasons, the replay plays a recording twice. In the first replay, our controllers act after
each input, so that they act on every state. Each recorded write is paired with our first equal write after the previous
pair; the pair shows after which input the recorded controller acted. In the second replay, our controllers act exactly
after the inputs that the pairs determine.

Guarantees: pairs keep the order of both sides, and a write is paired only with a write that our controllers made from
inputs that precede it in the recording. A write without a counterpart is a divergence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.recording.object_comparison import ABSENT, Divergence, Verdict, differences

Subject: TypeAlias = tuple[Resource, Key]
States: TypeAlias = Callable[[Event], Sequence[tuple[Key, Any]]]
"""A function that returns the keys of the subjects that a write changes, each with its state after the write (None if
deleted).
"""
Moments: TypeAlias = Mapping[Revision, Sequence[Subject]]
"""The recorded revisions after which our controllers act, with the subjects on which they act."""


class Plan(NamedTuple):
    """The results of the first replay that the second replay needs."""

    moments: Moments
    held: Mapping[str, Sequence[Object]]
    """Stand-ins for unrecorded objects that delay the deletion of a namespace; see `owned.replayed_namespaces`."""


class PairCounts(msgspec.Struct, frozen=True, rename="camel"):
    """The numbers of writes of a kind: recorded writes, recorded writes with a counterpart, and our writes."""

    resource: str
    recorded: int
    paired: int
    ours: int


class WriteState(NamedTuple):
    """One write of a subject: the write's position, and the subject's state after it (None if deleted)."""

    revision: Revision
    """The revision of a recorded write; for our writes, the recorded revision that the replay had reached."""
    line: int
    state: Any
    is_late: bool = False
    """Whether our controllers may make the counterpart of a recorded write later, because they act only in pauses of
    the recording.
    """


class WriteTracker:
    """Records the writes of both sides, by kind; only the replay's thread may use it."""

    def __init__(self) -> None:
        """Create an empty instance."""
        self.position: Revision = 0
        """The recorded revision that the replay has reached."""
        self._recorded: dict[Subject, list[WriteState]] = defaultdict(list)
        self._ours: dict[Subject, list[WriteState]] = defaultdict(list)
        self._states: dict[Resource, States] = {}

    def follow(self, resource: Resource, states: States) -> None:
        """Record our writes of a kind."""
        self._states[resource] = states

    def recorded(self, subject: Subject, written: WriteState) -> None:
        """Record a write of a recorded controller."""
        self._recorded[subject].append(written)

    def named(self, proposal: Any) -> Any:
        """Return the proposal unchanged."""
        return proposal

    def written(self, events: Sequence[Event]) -> None:
        """Record the writes of ctrlmgr's controllers."""
        for event in events:
            if (states := self._states.get(event.resource)) is not None:
                for key, state in states(event):
                    self._ours[event.resource, key].append(WriteState(self.position, 0, state))

    def moments(self) -> Moments:
        """Return the recorded revisions after which our controllers made the writes with a recorded counterpart."""
        found: dict[Revision, list[Subject]] = defaultdict(list)
        for subject, recorded in self._recorded.items():
            for _, ours in _pairs(recorded, self._ours.get(subject, ())):
                if ours is not None and subject not in found[ours.revision]:
                    found[ours.revision].append(subject)
        return dict(found)

    def paired(self) -> tuple[PairCounts, ...]:
        """Return the number of writes with a counterpart, by kind."""
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for (resource, _), written in self._ours.items():
            counts[str(resource)][2] += len(written)
        for subject, recorded in self._recorded.items():
            count = counts[str(subject[0])]
            count[0] += len(recorded)
            count[1] += sum(1 for _, ours in _pairs(recorded, self._ours.get(subject, ())) if ours is not None)
        return tuple(PairCounts(resource, *count) for resource, count in sorted(counts.items()) if count[0])

    def divergences(self) -> Iterator[Divergence]:
        """Yield the recorded writes without a counterpart, each compared with our state at the time of the write."""
        for (resource, key), recorded in self._recorded.items():
            ours = self._ours.get((resource, key), ())
            for each, found in _pairs(recorded, ours):
                if found is None:
                    then = next((one.state for one in reversed(ours) if one.revision <= each.revision), None)
                    unequal = tuple(differences(_or_absent(each.state), _or_absent(then)))
                    at = f"revision {each.revision}"
                    place = (str(resource), key.namespace, key.name)
                    yield Divergence(at, each.line, Verdict.UNPAIRED, *place, unequal, checkpoints=1)


def _or_absent(state: Any) -> Any:
    return ABSENT if state is None else state


def _pairs(
    recorded: Sequence[WriteState], ours: Sequence[WriteState]
) -> Iterator[tuple[WriteState, WriteState | None]]:
    """Yield each recorded write with its counterpart, which is our first equal write after the previous pair.

    If a recorded write leaves the compared state as it was after the previous pair, it has the same counterpart as that
    pair.
    """
    begin, last = 0, None
    for each in recorded:
        if last is not None and each.state == last.state:
            yield each, last
            continue
        until = len(ours) if each.is_late else bisect_right(ours, each.revision, key=attrgetter("revision"))
        at = next((at for at in range(begin, until) if ours[at].state == each.state), None)
        if at is None:
            yield each, None
            continue
        begin, last = at + 1, ours[at]
        yield each, last


def whole(compared: Callable[[Object], Any]) -> States:
    """Return a function that maps a write to the object's state after it, in the form that `compared` returns."""

    def states(event: Event) -> Sequence[tuple[Key, Any]]:
        return [(event.key, None if event.type is EventType.DELETED else compared(event.object))]

    return states

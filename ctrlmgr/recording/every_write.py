"""Replaying every write: each that a recorded controller made is paired with one of ours.

A recorded write shows what its controller had seen, which is not all that stood above it: caches are a little behind,
and several changes become one write. So a recording is replayed twice. First our controllers answer each input at once,
which passes through every state that there is; the first of them that is equal to a recorded write, later than the one
that the write before was paired with, tells after which input the recorded controller looked. Then they act at just
these moments.

Guarantees: a pairing keeps the order of both sides, and pairs a write only with what ours made of inputs that stand
above it; what has no counterpart is a divergence that says so.
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
from ctrlmgr.recording.divergence import ABSENT, Divergence, Verdict, differences

Subject: TypeAlias = tuple[Resource, Key]
States: TypeAlias = Callable[[Event], Sequence[tuple[Key, Any]]]
"""Returns what a write is of, and what is there after it (None: nothing)."""
Moments: TypeAlias = Mapping[Revision, Sequence[Subject]]
"""After which recorded revision our controllers are to act, and on what."""


class Plan(NamedTuple):
    """What a first replay has found out for the second."""

    moments: Moments
    held: Mapping[str, Sequence[Object]]
    """What stands in for what holds a namespace, and is not in the recording: see `owned.namespaces`."""


class Paired(msgspec.Struct, frozen=True, rename="camel"):
    """How many writes of a kind the recorded controllers made, how many have a counterpart, how many ours made."""

    resource: str
    recorded: int
    paired: int
    ours: int


class Written(NamedTuple):
    """One write of a subject: where it stands, and what is there after it (None: nothing)."""

    revision: Revision
    """Of the recording; of ours, that up to which it had been played."""
    line: int
    state: Any
    is_late: bool = False
    """Of a recorded one: whether ours may come to it later, for they act in pauses only."""


class WriteTracker:
    """Takes down what both sides write, kind by kind; for the thread of the replay."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.position: Revision = 0
        """The revision of the recording up to which it has been played."""
        self._recorded: dict[Subject, list[Written]] = defaultdict(list)
        self._ours: dict[Subject, list[Written]] = defaultdict(list)
        self._states: dict[Resource, States] = {}

    def follow(self, resource: Resource, states: States) -> None:
        """Take down what ours write of a kind."""
        self._states[resource] = states

    def recorded(self, subject: Subject, written: Written) -> None:
        """Take down a write of a recorded controller."""
        self._recorded[subject].append(written)

    def named(self, proposal: Any) -> Any:
        """Return what is to be appended: what was proposed."""
        return proposal

    def written(self, events: Sequence[Event]) -> None:
        """Take down what ours wrote."""
        for event in events:
            if (states := self._states.get(event.resource)) is not None:
                for key, state in states(event):
                    self._ours[event.resource, key].append(Written(self.position, 0, state))

    def moments(self) -> Moments:
        """Return after which recorded revisions our controllers wrote what is paired with a recorded write."""
        found: dict[Revision, list[Subject]] = defaultdict(list)
        for subject, recorded in self._recorded.items():
            for _, ours in _pairs(recorded, self._ours.get(subject, ())):
                if ours is not None and subject not in found[ours.revision]:
                    found[ours.revision].append(subject)
        return dict(found)

    def paired(self) -> tuple[Paired, ...]:
        """Return how many writes have a counterpart, by kind."""
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for (resource, _), written in self._ours.items():
            counts[str(resource)][2] += len(written)
        for subject, recorded in self._recorded.items():
            count = counts[str(subject[0])]
            count[0] += len(recorded)
            count[1] += sum(1 for _, ours in _pairs(recorded, self._ours.get(subject, ())) if ours is not None)
        return tuple(Paired(resource, *count) for resource, count in sorted(counts.items()) if count[0])

    def divergences(self) -> Iterator[Divergence]:
        """Yield the recorded writes that ours have no counterpart to, each held against what ours had then."""
        for (resource, key), recorded in self._recorded.items():
            ours = self._ours.get((resource, key), ())
            for each, found in _pairs(recorded, ours):
                if found is None:
                    then = next((one.state for one in reversed(ours) if one.revision <= each.revision), None)
                    told = tuple(differences(_or_absent(each.state), _or_absent(then)))
                    at = f"revision {each.revision}"
                    place = (str(resource), key.namespace, key.name)
                    yield Divergence(at, each.line, Verdict.UNPAIRED, *place, told, checkpoints=1)


def _or_absent(state: Any) -> Any:
    return ABSENT if state is None else state


def _pairs(recorded: Sequence[Written], ours: Sequence[Written]) -> Iterator[tuple[Written, Written | None]]:
    """Yield each recorded write with the first equal one of ours that is later than the last that was paired.

    One that changed nothing of what is compared, since the last that was paired, has the same counterpart as that.
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
    """Return what tells of an object what is there after a write, compared as `compared` says."""

    def states(event: Event) -> Sequence[tuple[Key, Any]]:
        return [(event.key, None if event.type is EventType.DELETED else compared(event.object))]

    return states

"""The kept log of a run, as oracles read it: all events in memory, with the states between them.

Guarantees: Events, Leases and internal objects are left out of `events` and of all states, because operators renew and
repeat them at rest. All functions are pure; the log is read only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, EVENTS_V1, INTERNAL_GROUP, LEASES, Key, Resource, Revision
from ctrlmgr.eventlog import Event, EventLog, EventType
from ctrlmgr.trial.run_record import RunRecord

_EVENTS: Final = frozenset((EVENTS, EVENTS_V1))
_SYSTEM: Final = "system:"
_ADMINISTRATOR: Final = "system:admin"


class Place(NamedTuple):
    """The place of an object in a cluster."""

    resource: Resource
    key: Key


State = Mapping[Place, Object]
"""The objects of a cluster at one revision."""


class Step(NamedTuple):
    """One event, with the object before it; `before` is None if the event created the object."""

    event: Event
    before: Object | None

    @property
    def place(self) -> Place:
        """The place of the changed object."""
        return place_of(self.event.object)


class KeptLog:
    """The events of one run, and its record."""

    def __init__(self, events: Sequence[Event], record: RunRecord) -> None:
        """Keep the events of a run up to its end, except Events, Leases and internal objects."""
        self.record = record
        self.events: Sequence[Event] = tuple(
            each for each in events if each.revision <= record.ended_at and _is_of_interest(each)
        )

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The events, each with the object before it."""
        state: dict[Place, Object] = {}
        found: list[Step] = []
        for event in self.events:
            found.append(Step(event, state.get(place_of(event.object))))
            _advance(state, event)
        return found

    @property
    def run(self) -> Sequence[Step]:
        """The events since the operator was started."""
        return [each for each in self.steps if each.event.revision > self.record.started_at]

    @property
    def by_operator(self) -> Sequence[Step]:
        """The events that the operator wrote."""
        return [each for each in self.run if self.is_operator(each.event)]

    @property
    def at_rest(self) -> Sequence[Step]:
        """The events after the last step of the scenario."""
        return [each for each in self.run if each.event.revision > self.last_step]

    @property
    def last_step(self) -> Revision:
        """The revision at which the last step of the scenario ended."""
        return max((each.ended for each in self.record.steps), default=self.record.started_at)

    @cached_property
    def end(self) -> State:
        """The objects at the end of the run."""
        return self.at(self.record.ended_at)

    def at(self, revision: Revision) -> State:
        """Return the objects at a revision."""
        state: dict[Place, Object] = {}
        for event in self.events:
            if event.revision > revision:
                break
            _advance(state, event)
        return state

    def is_operator(self, event: Event) -> bool:
        """Return whether the operator wrote an event."""
        return event.actor == self.record.user

    def is_user(self, event: Event) -> bool:
        """Return whether the scenario's user wrote an event in a step of the scenario.

        The result is False for writes of the operator and of the components of Kubernetes.
        """
        if self.is_operator(event) or (event.actor.startswith(_SYSTEM) and event.actor != _ADMINISTRATOR):
            return False
        return any(each.began < event.revision <= each.ended for each in self.record.steps)

    @cached_property
    def creators(self) -> Mapping[str, Event]:
        """The event that created each object, by the object's uid."""
        return {each.object.uid: each for each in self.events if each.type == EventType.ADDED}


def read(log: EventLog, record: RunRecord) -> KeptLog:
    """Read the log of a run."""
    return KeptLog([*log.scan()], record)


def place_of(obj: Object) -> Place:
    """Return the place of an object."""
    return Place(obj.resource, obj.key)


def named(obj: Object) -> str:
    """Return `kind namespace/name`, as findings name objects."""
    return f"{obj.kind} {obj.key}"


def fields_of(obj: Object | None) -> dict[str, Any]:
    """Return the decoded fields of an object without `metadata.managedFields`; empty if there is no object."""
    if obj is None:
        return {}
    fields: dict[str, Any] = msgspec.json.decode(obj.body)
    fields["metadata"].pop("managedFields", None)
    return fields


def written_by(steps: Sequence[Step]) -> Iterator[tuple[Place, list[Step]]]:
    """Yield the events of each object, in the order in which the objects first occur."""
    by_place: dict[Place, list[Step]] = {}
    for step in steps:
        by_place.setdefault(step.place, []).append(step)
    yield from by_place.items()


def _advance(state: dict[Place, Object], event: Event) -> None:
    if event.type == EventType.DELETED:
        state.pop(place_of(event.object), None)
    else:
        state[place_of(event.object)] = event.object


def _is_of_interest(event: Event) -> bool:
    resource = event.resource
    return resource not in _EVENTS and resource != LEASES and resource.group != INTERNAL_GROUP

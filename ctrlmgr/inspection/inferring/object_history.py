"""Gives the inference rules access to the log, as the steps in the history of each object.

Guarantees: a history contains every step in the log up to `until`, oldest first. Each history is read from the log only
once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.database import Database

_decode: Final[Callable[[str], Any]] = msgspec.json.Decoder().decode
_UNHEARD: Final = 3_000
"""The minimum microseconds from an event to a write that the event causes through a watch and a reconcile. If fewer
microseconds lie between an event and a write, the event is not the cause.
"""

_NOTHING: Final[Mapping[str, Any]] = {}


class Step:
    """One event in an object's history."""

    __slots__ = ("_body", "_fields", "actor", "key", "previous", "recorded_at", "resource", "revision", "type")

    def __init__(
        self,
        revision: Revision,
        type: EventType,
        resource: Resource,
        key: Key,
        body: str,
        *,
        previous: Step | None = None,
        actor: str = "",
        recorded_at: int = 0,
    ) -> None:
        """Create a step with its fields.

        `previous` is the previous step of the object; None for ADDED, or if the previous step is unknown.
        """
        self.revision = revision
        self.type = type
        self.resource = resource
        self.key = key
        self.previous = previous
        self.actor = actor
        self.recorded_at = recorded_at
        self._body = body
        self._fields: Mapping[str, Any] | None = None

    @property
    def fields(self) -> Mapping[str, Any]:
        """The state of the object after the step; for DELETED, the object's last state."""
        if self._fields is None:
            self._fields = _decode(self._body)
        return self._fields

    @property
    def before(self) -> Mapping[str, Any]:
        """The state of the object before the step.

        The result is empty if the step created the object, or if the previous state is unknown.
        """
        return self.previous.fields if self.previous is not None else _NOTHING

    @property
    def after(self) -> Mapping[str, Any]:
        """The state of the object after the step; empty if the step deleted the object."""
        return _NOTHING if self.type is EventType.DELETED else self.fields

    def mentions(self, text: str) -> bool:
        """Return whether the object's JSON contains a string. A search in the bytes is faster than decoding."""
        return text in self._body

    def changes(self, *path: str) -> bool:
        """Return whether the step changed the value at a path."""
        return bool(at(self.before, *path) != at(self.after, *path))


class PastSteps(Protocol):
    """The steps of objects before a point in time."""

    def history(self, resource: Resource, key: Key, *, until: Revision) -> Sequence[Step]:
        """Return every step of one object before a revision, oldest first."""

    def histories(self, resource: Resource, namespace: str, *, until: Revision) -> Sequence[Step]:
        """Return every step of all objects of a namespace before a revision, oldest first."""


def newest(steps: Sequence[Step], is_it: Callable[[Step], bool] = lambda step: True) -> Step | None:
    """Return the newest matching step, None if no step matches."""
    return next((step for step in reversed(steps) if is_it(step)), None)


def heard(steps: Sequence[Step], is_it: Callable[[Step], bool], effect: Step, *, since: Revision = 0) -> Step | None:
    """Return the newest matching step after `since` that the writer of `effect` can have observed.

    If all matching steps are too recent, return the oldest matching step, because the timestamps are too coarse for a
    decision. The method returns None if no step matches.
    """
    found = [step for step in steps if step.revision > since and is_it(step)]
    in_time = [step for step in found if step.recorded_at <= effect.recorded_at - _UNHEARD]
    return in_time[-1] if in_time else found[0] if found else None


class StepsOf:
    """The sorted steps of some objects, from which the steps before any revision can be returned."""

    def __init__(self, steps: Sequence[Step]) -> None:
        """Create a history of steps, which must be sorted, oldest first."""
        self._steps = steps
        self._revisions = [step.revision for step in steps]

    def until(self, revision: Revision) -> Sequence[Step]:
        """Return the steps before a revision."""
        return self._steps[: bisect_left(self._revisions, revision)]


_STEPS: Final = """
SELECT o.namespace, o.name, e.revision, e.previous, e.type, e.recorded_at, e.actor, e.body
FROM object AS o JOIN event AS e ON e.object_id = o.id
WHERE o.resource = :resource AND o.namespace = :namespace {more}
ORDER BY e.revision"""


class LoggedPast:
    """The steps as recorded in a log; an instance serves one thread and one query."""

    def __init__(self, database: Database) -> None:
        """Create an instance that reads steps from `database`."""
        self._database = database
        self._read: dict[tuple[Resource, str, str | None], StepsOf] = {}

    def history(self, resource: Resource, key: Key, *, until: Revision) -> Sequence[Step]:
        """Return every step of one object before a revision, oldest first."""
        if (resource, key.namespace, None) in self._read:
            return [step for step in self._steps(resource, key.namespace).until(until) if step.key == key]
        return self._steps(resource, key.namespace, key.name).until(until)

    def histories(self, resource: Resource, namespace: str, *, until: Revision) -> Sequence[Step]:
        """Return every step of all objects of a namespace before a revision, oldest first."""
        return self._steps(resource, namespace).until(until)

    def _steps(self, resource: Resource, namespace: str, name: str | None = None) -> StepsOf:
        place = (resource, namespace, name)
        if place not in self._read:
            self._read[place] = StepsOf(list(self._query(*place)))
        return self._read[place]

    def _query(self, resource: Resource, namespace: str, name: str | None) -> Iterator[Step]:
        desired = {"resource": str(resource), "namespace": namespace, **({} if name is None else {"name": name})}
        statement = _STEPS.format(more="" if name is None else "AND o.name = :name")
        known: dict[Revision, Step] = {}
        for within, called, revision, previous, number, recorded_at, actor, body in self._database.query(
            statement, desired
        ).rows:
            happened = EventType(number)
            was = None if happened is EventType.ADDED else known.get(previous)
            key = Key(within, called)
            step = Step(revision, happened, resource, key, body, previous=was, actor=actor, recorded_at=recorded_at)
            known[revision] = step
            yield step

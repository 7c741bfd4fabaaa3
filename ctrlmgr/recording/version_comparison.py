"""Compares the writes that two versions of our controllers made in replays of one recording.

The two replays had equal inputs. Because the inputs are equal, this module compares the controllers' writes between two
inputs. For each object, only the state just before the next input is compared, so several writes between two inputs
count as one write. EndpointSlices are compared by Service, as in `replayed_slices`, because their names are random. If
the states of an object after the same input differ, the versions differ. If both versions made an equal write after
different inputs, the write counts as moved.

Inputs may differ slightly, because deletions in a terminating namespace are inputs only until our controller has made
them. The inputs that both replays have in common are aligned with each other.

Guarantee: each log is read only once, from beginning to end, and never written.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, NAMESPACES, Key, Resource, Revision
from ctrlmgr.eventlog.event import Event, EventType
from ctrlmgr.recording.object_comparison import Difference, comparable, differences
from ctrlmgr.recording.owned.replayed_slices import said, service_of
from ctrlmgr.recording.replay_stage import RECORDING

Subject: TypeAlias = tuple[Resource, Key]
_Token: TypeAlias = tuple[int, str, str, str]


class DifferenceKind(enum.Enum):
    """The type of a difference between the writes of two versions."""

    DIFFERS = "differs"
    """The two versions of the controller wrote the object after the same input, but with different results."""
    MISSING = "missing"
    """Only the other version of ctrlmgr made the write."""
    EXTRA = "extra"
    """Only this version of ctrlmgr made the write."""
    MOVED = "moved"
    """The two versions of the controller made an equal write, but after different inputs."""


class WriteDifference(msgspec.Struct, frozen=True, rename="camel"):
    """One write in which the versions differ.

    `input` is the number of inputs before the write, in the log of the version that made the write. If both versions
    made the write, this version's log counts. `revision` and `other_revision` are the revisions of the write in both
    logs; the revision is 0 if a log does not contain the write. In `differences`, the values called `recorded` are
    those of the other version of ctrlmgr.
    """

    verdict: DifferenceKind
    resource: str
    namespace: str
    name: str
    input: int
    revision: Revision
    other_revision: Revision
    differences: tuple[Difference, ...] = ()

    @property
    def subject(self) -> str:
        """The name of the written object in kubectl's form: `endpoints shop/web`."""
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a comparison: the numbers of compared writes, and all differences, sorted by input and object."""

    inputs: int
    other_inputs: int
    writes: int
    other_writes: int
    same: int
    differences: tuple[WriteDifference, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain JSON values."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for each in fields["differences"]:
            for difference in each["differences"]:
                difference["other"] = difference.pop("recorded")
        return fields


class ScannableLog(Protocol):
    """An event log whose events can be read in order."""

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every event."""


class _ObjectState(NamedTuple):
    """The state of an object just before the next input; None if it was deleted."""

    revision: Revision
    state: Any


class _ReplayContents(NamedTuple):
    """The contents of a replay's log: the inputs, and the controllers' writes by the number of preceding inputs."""

    inputs: Sequence[_Token]
    written: Mapping[Subject, dict[int, _ObjectState]]

    @property
    def writes(self) -> int:
        return sum(map(len, self.written.values()))


def compare(ours: ScannableLog, others: ScannableLog) -> Comparison:
    """Compare the logs of two replays of one recording, by this version and by another version."""
    mine, theirs = _read(ours), _read(others)
    place = _aligned(mine.inputs, theirs.inputs)
    found: list[WriteDifference] = []
    same = 0
    for subject in mine.written.keys() | theirs.written.keys():
        other = _moved_to(place, theirs.written.get(subject, {}))
        equal, different = _compare_one(subject, mine.written.get(subject, {}), other)
        same += equal
        found += different
    found.sort(key=lambda each: (each.input, each.resource, each.namespace, each.name))
    return Comparison(len(mine.inputs), len(theirs.inputs), mine.writes, theirs.writes, same, tuple(found))


def _read(log: ScannableLog) -> _ReplayContents:
    inputs: list[_Token] = []
    written: dict[Subject, dict[int, _ObjectState]] = {}
    slices: dict[Key, dict[Key, Object]] = {}
    for event in log.scan():
        obj = event.object
        if event.actor == RECORDING.actor:
            inputs.append((event.type, str(obj.resource), obj.namespace, obj.name))
        if obj.resource == ENDPOINT_SLICES:
            subject, state = (obj.resource, service_of(obj)), _slices_after(slices, event)
        else:
            subject, state = (obj.resource, obj.key), _state(event)
        if event.actor != RECORDING.actor:
            written.setdefault(subject, {})[len(inputs)] = _ObjectState(event.revision, state)
    return _ReplayContents(inputs, written)


def _slices_after(slices: dict[Key, dict[Key, Object]], event: Event) -> Any:
    """Return the endpoints of all slices of a Service after `event`, which changes one of the slices."""
    kept = slices.setdefault(service_of(event.object), {})
    if event.type is EventType.DELETED:
        kept.pop(event.key, None)
    else:
        kept[event.key] = event.object
    return said(kept.values())


def _state(event: Event) -> Any:
    if event.type is EventType.DELETED:
        return None
    fields = comparable(event.object)
    if event.resource == NAMESPACES:
        for condition in (fields.get("status") or {}).get("conditions") or ():
            condition.pop("lastTransitionTime", None)
    return fields


def _aligned(mine: Sequence[_Token], theirs: Sequence[_Token]) -> list[int]:
    """Return the number of inputs in our log that corresponds to each number of inputs in the other log (0, 1, …)."""
    if mine == theirs:
        return list(range(len(mine) + 1))
    most = min(len(mine), len(theirs))
    start = next((index for index in range(most) if mine[index] != theirs[index]), most)
    matcher = difflib.SequenceMatcher(None, mine[start:], theirs[start:], autojunk=False)
    place = list(range(start + 1)) + [0] * (len(theirs) - start)
    for left, right, size in matcher.get_matching_blocks():
        for offset in range(size):
            place[start + right + offset + 1] = start + left + offset + 1
    for index in range(1, len(place)):  # an input that only the other log has does not increase our number
        place[index] = max(place[index], place[index - 1])
    return place


def _moved_to(place: Sequence[int], written: Mapping[int, _ObjectState]) -> dict[int, _ObjectState]:
    return {place[inputs]: each for inputs, each in written.items()}


def _compare_one(
    subject: Subject, mine: Mapping[int, _ObjectState], theirs: Mapping[int, _ObjectState]
) -> tuple[int, list[WriteDifference]]:
    """Return the number of equal writes of one object, and the differences between its other writes."""
    both = mine.keys() & theirs.keys()
    unequal = [at for at in both if mine[at].state != theirs[at].state]
    found = [_difference(subject, DifferenceKind.DIFFERS, at, mine[at], theirs[at]) for at in unequal]
    later = {at: theirs[at] for at in sorted(theirs.keys() - both)}
    for at in sorted(mine.keys() - both):
        twin = next((other for other, each in later.items() if each.state == mine[at].state), None)
        if twin is None:
            found.append(_difference(subject, DifferenceKind.EXTRA, at, mine[at], None))
        else:
            found.append(_difference(subject, DifferenceKind.MOVED, at, mine[at], later.pop(twin)))
    found += [_difference(subject, DifferenceKind.MISSING, at, None, each) for at, each in later.items()]
    return len(both) - len(unequal), found


def _difference(
    subject: Subject, verdict: DifferenceKind, at: int, mine: _ObjectState | None, theirs: _ObjectState | None
) -> WriteDifference:
    resource, key = subject
    found: Iterable[Difference] = ()
    if verdict is DifferenceKind.DIFFERS and mine and theirs:
        found = differences(theirs.state, mine.state)
    revisions = (mine.revision if mine else 0, theirs.revision if theirs else 0)
    return WriteDifference(verdict, str(resource), key.namespace, key.name, at, *revisions, tuple(found))

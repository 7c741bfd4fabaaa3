"""What two versions of our controllers made of one recording: the logs that their replays left, compared.

Both replays had the same inputs, so what counts is what the controllers wrote between them. Of each object that is its
state at the end of every stretch without inputs in which it was written: several writes in a row are one. Slices are
compared by service, as in `owned_slices`: their names are random. Where the two versions left an object in another
state after the same input, they differ; where they came to the same state after different inputs, it moved.

Inputs may differ a little, too: the deletions in a namespace that ends are inputs only until our controller has come to
them. The others are what is aligned.

Guarantee: the logs are only read, each once and from its beginning to its end.
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
from ctrlmgr.recording.divergence import Difference, comparable, differences
from ctrlmgr.recording.owned.slices import said, service_of
from ctrlmgr.recording.stage import RECORDING

Subject: TypeAlias = tuple[Resource, Key]
_Token: TypeAlias = tuple[int, str, str, str]


class Departure(enum.Enum):
    """How what one version wrote differs from what the other did."""

    DIFFERS = "differs"
    """Both wrote it after the same input, and not the same."""
    MISSING = "missing"
    """The other version wrote it, this one did not."""
    EXTRA = "extra"
    """This version wrote it, the other did not."""
    MOVED = "moved"
    """Both wrote the same, after different inputs."""


class WriteDifference(msgspec.Struct, frozen=True, rename="camel"):
    """One write in which the versions differ.

    `input` counts the inputs before it, in the log of the version that made it (this one's, if both did); `revision`
    and `other_revision` are where it stands in the logs, 0 where it does not. In `differences` of two states the side
    `recorded` is the other version's.
    """

    verdict: Departure
    resource: str
    namespace: str
    name: str
    input: int
    revision: Revision
    other_revision: Revision
    differences: tuple[Difference, ...] = ()

    @property
    def subject(self) -> str:
        """What was written, as kubectl names it: `endpoints shop/web`."""
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """What comparing found: how much was compared, and every difference, in the order of inputs and then objects."""

    inputs: int
    other_inputs: int
    writes: int
    other_writes: int
    same: int
    differences: tuple[WriteDifference, ...]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON values."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for each in fields["differences"]:
            for told in each["differences"]:
                told["other"] = told.pop("recorded")
        return fields


class Scannable(Protocol):
    """A log, as far as it is read here."""

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every event."""


class _Written(NamedTuple):
    """The state of an object after a stretch without inputs; None if it was deleted."""

    revision: Revision
    state: Any


class _Story(NamedTuple):
    """What a replay left in its log: its inputs, and what was written after how many of them."""

    inputs: Sequence[_Token]
    written: Mapping[Subject, dict[int, _Written]]

    @property
    def writes(self) -> int:
        return sum(map(len, self.written.values()))


def compare(ours: Scannable, others: Scannable) -> Comparison:
    """Compare the logs of two replays of one recording, ours and another version's."""
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


def _read(log: Scannable) -> _Story:
    inputs: list[_Token] = []
    written: dict[Subject, dict[int, _Written]] = {}
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
            written.setdefault(subject, {})[len(inputs)] = _Written(event.revision, state)
    return _Story(inputs, written)


def _slices_after(slices: dict[Key, dict[Key, Object]], event: Event) -> Any:
    """Return what all slices of a service say after `event`, one of theirs."""
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
    """Return, for so many of their inputs (0, 1, …), how many of ours that is."""
    if mine == theirs:
        return list(range(len(mine) + 1))
    most = min(len(mine), len(theirs))
    start = next((index for index in range(most) if mine[index] != theirs[index]), most)
    matcher = difflib.SequenceMatcher(None, mine[start:], theirs[start:], autojunk=False)
    place = list(range(start + 1)) + [0] * (len(theirs) - start)
    for left, right, size in matcher.get_matching_blocks():
        for offset in range(size):
            place[start + right + offset + 1] = start + left + offset + 1
    for index in range(1, len(place)):  # an input that is theirs alone is no step
        place[index] = max(place[index], place[index - 1])
    return place


def _moved_to(place: Sequence[int], written: Mapping[int, _Written]) -> dict[int, _Written]:
    return {place[inputs]: each for inputs, each in written.items()}


def _compare_one(
    subject: Subject, mine: Mapping[int, _Written], theirs: Mapping[int, _Written]
) -> tuple[int, list[WriteDifference]]:
    """Return in how many writes of one object the versions agree, and where they do not."""
    both = mine.keys() & theirs.keys()
    unequal = [at for at in both if mine[at].state != theirs[at].state]
    found = [_difference(subject, Departure.DIFFERS, at, mine[at], theirs[at]) for at in unequal]
    later = {at: theirs[at] for at in sorted(theirs.keys() - both)}
    for at in sorted(mine.keys() - both):
        twin = next((other for other, each in later.items() if each.state == mine[at].state), None)
        if twin is None:
            found.append(_difference(subject, Departure.EXTRA, at, mine[at], None))
        else:
            found.append(_difference(subject, Departure.MOVED, at, mine[at], later.pop(twin)))
    found += [_difference(subject, Departure.MISSING, at, None, each) for at, each in later.items()]
    return len(both) - len(unequal), found


def _difference(
    subject: Subject, verdict: Departure, at: int, mine: _Written | None, theirs: _Written | None
) -> WriteDifference:
    resource, key = subject
    told: Iterable[Difference] = ()
    if verdict is Departure.DIFFERS and mine and theirs:
        told = differences(theirs.state, mine.state)
    revisions = (mine.revision if mine else 0, theirs.revision if theirs else 0)
    return WriteDifference(verdict, str(resource), key.namespace, key.name, at, *revisions, tuple(told))

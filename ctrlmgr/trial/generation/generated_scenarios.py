"""Arranges generated changes as histories of one object: single changes and sequences, with a way back.

Guarantees: the server accepts each valid step of a history after the steps before it, and refuses each step that is
marked as refused. A history ends in its first state; if rules forbid the way back (an immutable field), the object is
deleted and created again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, Final, NamedTuple

from ctrlmgr.extensions.definition import Definition, Version
from ctrlmgr.extensions.structural import MISSING
from ctrlmgr.trial.generation.first_state import first_state
from ctrlmgr.trial.generation.judged_changes import Change, Fields, as_stored, changes, errors_of
from ctrlmgr.trial.scenario import Apply, Delete, Patch, Scenario, Step, Target, Wait

_PER_PROPERTY: Final = 4
"""The maximum number of valid values of one property in histories of single changes."""
_MOST_COMPARED: Final = 500
"""The maximum number of changes of which a sequence chooses its next change."""


class Write(NamedTuple):
    """One write of a history: create the object, patch it, or delete it."""

    verb: str
    """`create`, `patch` or `delete`."""
    state: Fields
    """The object after the write; for `delete`, the object before it. A refused write contains the refused object."""
    patch: Fields
    """The merge patch that leads to `state`; empty unless the verb is `patch`."""
    refused: str = ""
    """The error message with which the server refuses the write; empty if the server accepts it."""


class History(NamedTuple):
    """The writes to one object: its creation, changes, and the way back to the first state."""

    title: str
    writes: tuple[Write, ...]

    @property
    def first(self) -> Fields:
        """The first state of the object, which is also the last one."""
        return self.writes[0].state

    def scenario(self) -> Scenario:
        """Return the accepted writes as a scenario, which waits after each write, and deletes the object at the end.

        Refused writes are left out, because an operator cannot observe them.
        """
        target = _target(self.first)
        steps = [step for write in self.writes if not write.refused for step in (_step(write, target), Wait())]
        return Scenario((*steps, Delete(target), Wait(target, exists=False), Wait()))


def _target(fields: Fields) -> Target:
    metadata = fields["metadata"]
    return Target(fields["apiVersion"], fields["kind"], metadata.get("namespace", ""), metadata["name"])


def _step(write: Write, target: Target) -> Step:
    match write.verb:
        case "create":
            return Apply((write.state,))
        case "patch":
            return Patch(target, write.patch)
        case _:
            return Delete(target)


def histories(
    definition: Definition,
    version: Version,
    random: Random,
    *,
    example: Mapping[str, Any] | None = None,
    sequences: int = 3,
    length: int = 4,
) -> Iterator[History]:
    """Yield a history for each valid and nearly valid change of one property, and then some random sequences.

    `example` is a valid object of the user to begin with; without it, a valid object is searched for. Raises
    `ValueError` if the example is not valid, and `NoFirstState` if no valid object was found.
    """
    first = first_state(definition, version, random) if example is None else _checked(version, example)
    found = [*changes(version, first, random)]
    yield from (single(version, each) for each in _a_few_of_each(found))
    for number in range(sequences):
        yield _sequence(version, first, random, f"sequence {number + 1}", length)


def _checked(version: Version, example: Mapping[str, Any]) -> Fields:
    fields = as_stored(version, example)
    errors = errors_of(version, fields)
    if errors:
        raise ValueError(f"the example object is not valid: {errors[0].message}")
    return fields


def _a_few_of_each(found: Sequence[Change]) -> Iterator[Change]:
    """Yield all nearly valid changes, and the first valid changes of each property."""
    count: dict[str, int] = {}
    for change in found:
        count[change.path] = count.get(change.path, 0) + change.is_valid
        if not change.is_valid or count[change.path] <= _PER_PROPERTY:
            yield change


def single(version: Version, change: Change) -> History:
    """Return the history of one change: create, change, and the way back if the server has accepted the change."""
    words = "change" if change.is_valid else "refused change of"
    writes = (_created(change.before), _written(change))
    back = tuple(_way_back(version, change.before, change.after)) if change.is_valid else ()
    return History(f"{words} {change.path}", writes + back)


def _sequence(version: Version, first: Fields, random: Random, title: str, length: int) -> History:
    """Return a history of random changes, each of the state that the last accepted change has left."""
    state, writes = first, [_created(first)]
    for _ in range(length):
        found = [*islice(changes(version, state, random), _MOST_COMPARED)]
        if not found:
            break
        change = random.choice(found)
        writes.append(_written(change))
        state = change.after if change.is_valid else state
    return History(title, (*writes, *_way_back(version, first, state)))


def _created(state: Fields) -> Write:
    return Write("create", state, {})


def _written(change: Change) -> Write:
    refused = change.errors[0].message if change.errors else ""
    return Write("patch", change.after, merge_patch(change.before, change.after), refused)


def _way_back(version: Version, first: Fields, last: Fields) -> Iterator[Write]:
    """Yield the writes that lead to the first state: a patch if the server accepts it, otherwise delete and create."""
    if first == last:
        return
    if not errors_of(version, copy.deepcopy(first), last):
        yield Write("patch", first, merge_patch(last, first))
    else:
        yield Write("delete", last, {})
        yield _created(first)


def merge_patch(before: Any, after: Any) -> Any:
    """Return the JSON merge patch (RFC 7386) that changes one object to another one."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch: Fields = {name: None for name in before if after.get(name, MISSING) is MISSING}
    for name, value in after.items():
        if name not in before or type(before[name]) is not type(value) or before[name] != value:
            patch[name] = merge_patch(before.get(name), value) if isinstance(value, dict) else value
    return patch

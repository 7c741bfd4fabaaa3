"""Oracles `endless-writing`, `growing-generation` and `field-fight`: writes that do not end although nothing changes.

The oracles read only the end of a run that did not become quiet, after the last step of the scenario, or after the last
write of the user. Writes that lead to a new state each time, such as a rollout, are no finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctrlmgr.inspection.differences import ABSENT, differences
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, Step, fields_of, named, written_by
from ctrlmgr.trial.oracles.volatile_values import masked

WRITING = "endless-writing"
GENERATION = "growing-generation"
FIGHT = "field-fight"

_MOST_WRITES: Final = 8
"""The operator may write an object this many times after the last step."""
_MOST_REPEATS: Final = 3
"""A field may return to an earlier value of the same author this many times."""
_MOST_GENERATIONS: Final = 4


def endless_writing(log: KeptLog) -> list[Finding]:
    """Return the objects that the operator still writes at the end of a run that did not become quiet."""
    if log.record.became_quiet:
        return []
    found = []
    for _, steps in written_by([each for each in log.at_rest if log.is_operator(each.event)]):
        repeated = _repeated(steps)
        if len(steps) > _MOST_WRITES and repeated > _MOST_REPEATS:
            last = steps[-1].event
            message = (
                f"The operator does not stop writing {named(last.object)}: it wrote the object {len(steps)} times after"
                f" the last step, {repeated} times without a change other than times and counters."
            )
            found.append(Finding(WRITING, message, named(last.object), last.revision))
    return found


def _repeated(steps: Sequence[Step]) -> int:
    """Return how many writes led to a state that an earlier write had already led to, apart from volatile values."""
    states = Counter(_content(step) for step in steps)
    return sum(count - 1 for count in states.values())


def _content(step: Step) -> str:
    return f"{step.event.type} {masked(fields_of(step.event.object), numbers=True)}"


def growing_generations(log: KeptLog) -> list[Finding]:
    """Return the objects whose generation the operator increases again and again without a write of the user."""
    found = []
    for _, steps in written_by(log.run):
        grown: list[Step] = []
        states: Counter[str] = Counter()
        for step in steps:
            if not log.is_operator(step.event):
                grown = grown if not log.is_user(step.event) else []
            elif _generation(step.event.object) > _generation(step.before) > 0:
                grown.append(step)
                states[str(masked(fields_of(step.event.object).get("spec"), numbers=True))] += 1
        is_endless = not log.record.became_quiet or max(states.values(), default=0) > _MOST_REPEATS
        if len(grown) > _MOST_GENERATIONS and is_endless:
            last = grown[-1].event
            message = (
                f"The operator changed the spec of {named(last.object)} {len(grown)} times without a change by the"
                f" user, so that its generation grew to {_generation(last.object)}."
            )
            found.append(Finding(GENERATION, message, named(last.object), last.revision))
    return found


def _generation(obj: Any) -> int:
    return (obj.metadata.generation or 0) if obj is not None else 0


def field_fights(log: KeptLog) -> list[Finding]:
    """Return the fields that two users set again and again, each to its own value."""
    found = []
    for _, steps in written_by(log.run):
        for path, writes in _writes_by_field(steps):
            fighters = _fighters(writes)
            if fighters is not None and log.record.user in (writes[-1][0], writes[-2][0]):
                last = steps[-1].event.object
                others = " and ".join(fighters)
                message = f"{others} fight over {path} of {named(last)}: each sets its own value, {len(writes)} times."
                found.append(Finding(FIGHT, message, named(last), writes[-1][2]))
                break
    return found


def _writes_by_field(steps: Sequence[Step]) -> Iterator[tuple[str, list[tuple[str, Any, int]]]]:
    """Yield the writes of each field that changed: (author, value, revision)."""
    by_path: dict[str, list[tuple[str, Any, int]]] = {}
    for event, before in steps:
        if before is None or before.uid != event.object.uid:
            by_path = {}
            continue
        for each in differences(fields_of(before), fields_of(event.object)):
            if each.path not in ("metadata.generation", "metadata.resourceVersion"):
                value = None if each.after is ABSENT else each.after
                by_path.setdefault(each.path, []).append((event.actor, value, event.revision))
    yield from by_path.items()


def _fighters(writes: Sequence[tuple[str, Any, int]]) -> tuple[str, ...] | None:
    """Return the two authors of the last writes of a field if they take turns, and each repeats its own value."""
    turns = 0
    for (author, value, _), (other, opposed, _) in zip(writes[::-1], writes[-2::-1], strict=False):
        if author == other or value == opposed or (author, value) not in _last_two(writes):
            break
        turns += 1
    return tuple(sorted({author for author, _, _ in writes[-2:]})) if turns > 2 * _MOST_REPEATS else None


def _last_two(writes: Sequence[tuple[str, Any, int]]) -> list[tuple[str, Any]]:
    return [(author, value) for author, value, _ in writes[-2:]]

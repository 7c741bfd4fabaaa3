"""Oracle `observed-generation`: whether a status names the generation that the operator has processed.

A status is wrong if it names a generation that does not exist yet, or an older generation than before. It is also wrong
if it names an old generation when the run has become quiet. Conditions may have their own `observedGeneration`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import at, generation_of
from ctrlmgr.eventlog import EventType
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, Step, fields_of, named, written_by

ORACLE = "observed-generation"


def observed_generations(log: KeptLog) -> list[Finding]:
    """Return the objects whose status the operator wrote with a wrong `observedGeneration`."""
    found: list[Finding] = []
    for place, steps in written_by(log.run):
        lies = [*_lies(log, steps)][:1]
        if not lies and log.record.became_quiet and (last := log.end.get(place)) is not None:
            lies = [*_behind(log, steps, last)]
        found += lies
    return found


def _lies(log: KeptLog, steps: Sequence[Step]) -> Iterator[Finding]:
    for event, before in steps:
        if before is None or event.type == EventType.DELETED or not log.is_operator(event):
            continue
        fields = fields_of(event.object)
        old = dict(_observed(fields_of(before))) if before.uid == event.object.uid else {}
        for path, generation in _observed(fields):
            if generation > generation_of(fields):
                yield _finding(event.object, f"{path} is {generation}, a generation that does not exist yet")
            elif generation < old.get(path, 0):
                yield _finding(event.object, f"{path} went back from {old[path]} to {generation}")


def _behind(log: KeptLog, steps: Sequence[Step], last: Object) -> Iterator[Finding]:
    """Yield a finding if the status that the operator wrote names an older generation at the end of the run."""
    fields = fields_of(last)
    generation = generation_of(fields)
    written = [fields_of(step.event.object) for step in steps if log.is_operator(step.event)]
    wrote = {path for each in written for path, _ in _observed(each)}
    behind = [(path, seen) for path, seen in _observed(fields) if path in wrote and seen < generation]
    is_conditions_only = dict(_observed(fields)).get("status.observedGeneration") == generation
    if behind and not is_conditions_only and not last.is_terminating:
        path, seen = behind[0]
        yield _finding(last, f"{path} stays at {seen}, although the generation is {generation}")


def _observed(fields: dict[str, Any]) -> Iterator[tuple[str, int]]:
    whole = at(fields, "status", "observedGeneration")
    if isinstance(whole, int):
        yield "status.observedGeneration", whole
    conditions = at(fields, "status", "conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and isinstance(each.get("observedGeneration"), int):
            yield f"status.conditions[{each.get('type', '')}].observedGeneration", each["observedGeneration"]


def _finding(obj: Object, what: str) -> Finding:
    return Finding(ORACLE, f"The status of {named(obj)} is not truthful: {what}.", named(obj), obj.revision)

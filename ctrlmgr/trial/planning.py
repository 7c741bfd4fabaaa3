"""Plans the perturbed runs of a trial from what the operator did in a clean run.

Perturbations that an operator easily survives are combined in one plan, such as an error for each write. If a combined
plan leads to a finding, the trial looks for the part that is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from ctrlmgr.trial.perturbation_plan import KINDS, Perturbation, Plan
from ctrlmgr.trial.proxy.operator_request import Call
from ctrlmgr.trial.proxy.perturber import LearnedWrite
from ctrlmgr.trial.running.operator_run import FinishedRun
from ctrlmgr.trial.scenario import Scenario, Wait

_SECONDS: Final = 3.0
_MOST_REPETITIONS: Final = 2
"""Of equal writes, only this many are perturbed one by one."""


def plans(one: FinishedRun, other: FinishedRun, scenario: Scenario, families: Collection[str]) -> list[Plan]:
    """Return the plans of the chosen families, from two clean runs of a scenario."""
    writes = learned_writes(one, other)
    planners: Mapping[str, Callable[[], Iterator[Plan]]] = {
        "crash": lambda: _one_by_one(("crash-before", "crash-after"), writes),
        "race": lambda: _races(one.writes, writes),
        "answers": lambda: _together(_of_family("answers"), writes),
        "rights": lambda: _rights(one.rights),
        "stale": lambda: _stale(writes),
        "watches": lambda: _watches(one, writes),
        "unobserved": lambda: _unobserved(scenario),
        "nodes": lambda: _lost_pods(one, scenario),
    }
    return [plan for family, planned in planners.items() if family in families for plan in planned()]


def learned_writes(one: FinishedRun, other: FinishedRun) -> list[tuple[Call, int]]:
    """Return the writes that changed something, with the number of equal writes before.

    If two clean runs use different names for an object, the key of the write becomes `namespace/*`, so that the plan
    finds the write in further runs.
    """
    known = {write.call for write in other.writes}
    counts: dict[Call, int] = {}
    found = []
    for write in one.writes:
        call = write.call if write.call in known else _any_name(write.call)
        counts[call] = counts.get(call, 0) + 1
        if write.code < 300 and counts[call] <= _MOST_REPETITIONS:
            found.append((call, counts[call]))
    return found


def _any_name(call: Call) -> Call:
    namespace, slash, _ = call.key.partition("/")
    return call._replace(key=f"{namespace}/*" if slash else "*")


def _of_family(family: str) -> list[str]:
    return [kind for kind, meaning in KINDS.items() if meaning.family == family]


def _at(kind: str, call: Call, occurrence: int, seconds: float = 0.0) -> Perturbation:
    return Perturbation(kind, str(call), occurrence, seconds=seconds)


def _one_by_one(kinds: Sequence[str], writes: Sequence[tuple[Call, int]]) -> Iterator[Plan]:
    for call, occurrence in writes:
        for kind in kinds:
            yield Plan((_at(kind, call, occurrence),))


def _together(kinds: Sequence[str], writes: Sequence[tuple[Call, int]]) -> Iterator[Plan]:
    """Yield a plan for each kind, which perturbs the first of equal writes."""
    first = [call for call, occurrence in writes if occurrence == 1]
    for kind in kinds if first else ():
        yield Plan(tuple(_at(kind, call, 1) for call in first))


def _races(learned: Sequence[LearnedWrite], writes: Sequence[tuple[Call, int]]) -> Iterator[Plan]:
    """Yield one plan in which the operator loses each race that it can lose.

    A write loses a race if the server may answer that the object has changed, exists already, or is gone.
    """
    conditional = {write.call for write in learned if write.is_conditional}
    lost = [
        (call, occurrence)
        for call, occurrence in writes
        if call in conditional or (call.verb in ("create", "delete") and not call.key.endswith("*"))
    ]
    yield from _together(("lost-race",), lost)


def _rights(rights: Sequence[str]) -> Iterator[Plan]:
    for right in rights:
        yield Plan((Perturbation("right-taken", right=right, seconds=_SECONDS),))


def _stale(writes: Sequence[tuple[Call, int]]) -> Iterator[Plan]:
    for call, occurrence in writes:
        yield Plan((_at("stale-restart", call, occurrence, _SECONDS),))
    first = [_at("stale-watch", call, 1, 1.0) for call, occurrence in writes if occurrence == 1]
    if first:
        yield Plan(tuple(first))


def _watches(one: FinishedRun, writes: Sequence[tuple[Call, int]]) -> Iterator[Plan]:
    yield from _together(("watch-end", "watch-expire"), writes)
    yield Plan((Perturbation("no-bookmarks"),))
    for resource in sorted(map(str, one.watched)):
        yield Plan((Perturbation("late-events", resource=resource, seconds=1.0),))


def _unobserved(scenario: Scenario) -> Iterator[Plan]:
    """Yield a plan for each two successive changes of the user, between which the operator observes nothing."""
    changes = [number for number, step in enumerate(scenario.steps, 1) if not isinstance(step, Wait)]
    for first, last in pairwise(changes):
        yield Plan((Perturbation("unobserved", step=first, until=last),))


def _lost_pods(one: FinishedRun, scenario: Scenario) -> Iterator[Plan]:
    """Yield a plan for each step, if the run ended with pods."""
    if any(name.resource.plural == "pods" for name in one.state.objects):
        for number, _ in enumerate(scenario.steps, 1):
            yield Plan((Perturbation("pods-lost", step=number),))

"""One decision of a recorded autoscaler, made again by ours.

The controller's own look is given what the recording shows: the autoscaler, its target, its pods, and what was measured
as its status tells it. Guarantee: what the recording does not show is never chosen so that the result fits. It is tried
in its extremes instead, and where those come to different results the decision cannot be judged (`Unknown`).

What may be unknown: of which of the pods that have just started something was measured; what was recommended before the
recording shows it, and, to a second, when; a total of which only the rounded share is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.events.recorder import SILENT
from ctrlmgr.controllers.horizontal_pod_autoscaler import Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.limits import Memory, Sample
from ctrlmgr.controllers.horizontal_pod_autoscaler.look import Look, Problem, Selectors, Surroundings
from ctrlmgr.controllers.horizontal_pod_autoscaler.pods import MeasuredPod
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import Readiness
from ctrlmgr.controllers.horizontal_pod_autoscaler.views import Autoscaler
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.subresources.scale import scale_of
from ctrlmgr.errors import NotFound
from ctrlmgr.recording.judged.measured import Guess, Impossible, NotTold, Told

_SECOND: Final = 1_000_000
_OPTIONS: Final = Options()
_READINESS: Final = Readiness(
    int(_OPTIONS.horizontal_pod_autoscaler_cpu_initialization_period * _SECOND),
    int(_OPTIONS.horizontal_pod_autoscaler_initial_readiness_delay * _SECOND),
)
_SHIFTS: Final = (0, -_SECOND, _SECOND)

MEASURED: Final = "which of its pods were measured is not in the recording"
REMEMBERED: Final = "what it had recommended before is not in the recording"
UNMEASURED: Final = "what it measured is not in its status"


class Unknown(Exception):
    """A decision cannot be judged; the text says why."""


class Sight(NamedTuple):
    """What the recording shows of the moment of a decision."""

    autoscaler: Object
    """As it was before."""
    told: Sequence[dict[str, Any]]
    """The `currentMetrics` that it wrote."""
    kind: Kind
    target: Object | None
    replicas: int
    """How many it says that its target was to have."""
    pods: Sequence[Object]
    """Those that the target selects."""
    now: int
    remembers: bool
    """Whether all that it can remember is in the recording."""


class Outcome(NamedTuple):
    """What a look comes to: the number, and its conditions without their times."""

    desired: int
    conditions: tuple[tuple[str, str, str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return it in the form of a status."""
        names = ("type", "status", "reason", "message")
        conditions = [dict(zip(names, each, strict=True)) for each in self.conditions]
        return {"status": {"desiredReplicas": self.desired, "conditions": conditions}}


def outcome_of(autoscaler: Object) -> Outcome:
    """Return what a status says."""
    status = autoscaler.view(Autoscaler).status
    said = (
        tuple(str(each.get(name) or "") for name in ("type", "status", "reason", "message"))
        for each in status.conditions or ()
    )
    return Outcome(status.desired_replicas, tuple((a, b, c, d) for a, b, c, d in said))


def decide(sight: Sight, memory: Memory, selectors: Selectors, kinds: Callable[[], Iterable[Kind]]) -> Outcome:
    """Return what our controller decides; `memory` is the autoscaler's, and what becomes of it there is kept.

    Raises `Unknown`.
    """
    outcomes: dict[Outcome, None] = {}
    after: Memory | None = None
    for number, (remembered, guess) in enumerate(product(_memories(sight, memory), _guesses(sight))):
        tried = _copy(remembered)
        try:
            outcomes[_look(sight, tried, guess, selectors, kinds)] = None
        except Impossible:
            continue
        after = after or tried
        if len(outcomes) > 1:
            _keep(memory, after)
            raise Unknown(MEASURED if number < len(_guesses(sight)) else REMEMBERED)
    if after is None:
        raise Unknown(MEASURED)
    _keep(memory, after)
    return next(iter(outcomes))


def _look(
    sight: Sight, memory: Memory, guess: Guess, selectors: Selectors, kinds: Callable[[], Iterable[Kind]]
) -> Outcome:
    around = Surroundings(_Pods(sight.pods), kinds, selectors, SILENT, _OPTIONS)
    writer = _Writer(sight)
    pods = [MeasuredPod(each) for each in sight.pods]
    told = Told(sight.told, pods, sight.now, readiness=_READINESS, replicas=writer.found, guess=guess)
    look = Look(sight.autoscaler, around, memory, writer, told, sight.now)
    try:
        look.autoscale()
    except Problem:
        pass  # which its conditions tell
    except NotTold as error:
        raise Unknown(UNMEASURED) from error
    look.write_status()
    return outcome_of(writer.written or sight.autoscaler)


class _Pods:
    """The pods of a namespace."""

    def __init__(self, pods: Sequence[Object]) -> None:
        self._pods = pods

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        return self._pods


class _Writer:
    """What a look reads and writes with: the recorded target, and nothing that stays."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self.written: Object | None = None
        self._scale = None if sight.target is None else scale_of(sight.kind, sight.target.to_dict())

    @property
    def found(self) -> int:
        """How many replicas the target says it has."""
        return 0 if self._scale is None else int(self._scale["status"]["replicas"])

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        if self._scale is None or kind.storage != self._sight.kind.storage:
            raise NotFound(f'{kind.resource} "{name}" not found')
        return Object.from_dict({**self._scale, "spec": {"replicas": self._sight.replicas}})

    def rescale(self, kind: Kind, scale: Object) -> Object:
        return scale

    def update(self, obj: Object, subresource: str = "") -> Object:
        self.written = obj
        return obj


def _guesses(sight: Sight) -> list[Guess]:
    """Return what may have been measured: all pods; or nothing of those that have just started, or only before."""
    young = frozenset(each.name for each in sight.pods if _is_young(MeasuredPod(each), sight.now))
    guesses = [Guess(), *([Guess(missing=young), Guess(starting=young)] if young else ())]
    if any("averageValue" in _total_of(each) for each in sight.told):
        guesses += [each._replace(takes_most=False) for each in guesses]
    return guesses


def _is_young(pod: MeasuredPod, now: int) -> bool:
    if pod.phase != "Running" or pod.is_deleted:
        return False
    return pod.started_at is None or pod.started_at + _READINESS.cpu_initialization_period > now


def _total_of(told: dict[str, Any]) -> dict[str, Any]:
    found = told.get("object") or told.get("external") or {}
    current: dict[str, Any] = found.get("current") or {}
    return current


def _memories(sight: Sight, memory: Memory) -> Iterator[Memory]:
    """Yield what may be remembered: what is, a moment earlier or later; and what may have been before."""
    for shift in _SHIFTS:
        moved = _shifted(memory, shift)
        yield moved
        if sight.remembers:
            continue
        spec = sight.autoscaler.view(Autoscaler).spec
        for extreme in (spec.max_replicas, spec.min_replicas or 0):
            before = Sample(extreme, sight.now)
            yield replace(moved, recommendations=[*moved.recommendations, before])
            yield replace(moved, ups=[*moved.ups, before])
            yield replace(moved, downs=[*moved.downs, before])


def _shifted(memory: Memory, by: int) -> Memory:
    def moved(samples: Iterable[Sample]) -> list[Sample]:
        return [each._replace(at=each.at + by) for each in samples]

    return Memory(moved(memory.recommendations), moved(memory.ups), moved(memory.downs))


def _copy(memory: Memory) -> Memory:
    return _shifted(memory, 0)


def _keep(memory: Memory, after: Memory) -> None:
    memory.recommendations, memory.ups, memory.downs = after.recommendations, after.ups, after.downs

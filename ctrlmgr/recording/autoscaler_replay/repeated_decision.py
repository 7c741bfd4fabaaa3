"""Repeats one decision of a recorded HorizontalPodAutoscaler with our controller.

The controller runs one autoscaling pass. The pass reads the recorded autoscaler, its target, its pods, and the metrics
in its status. Guarantee: an unrecorded value is never chosen so that the result matches. Instead, the pass runs once
with each extreme of an unrecorded value. If the passes have different results, the decision cannot be judged
(`Unknown`). Unrecorded values are: the set of recently started pods that had metrics; recommendations before the
recording, and the exact time of recommendations; and a total of which only a rounded average is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.events.recorder import SILENT
from ctrlmgr.controllers.horizontal_pod_autoscaler import Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaling_pass import (
    AutoscalingPass,
    PassDependencies,
    Problem,
    Selectors,
)
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import Readiness
from ctrlmgr.controllers.horizontal_pod_autoscaler.scaling_limits import Memory, Sample
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import Autoscaler
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.subresources.scale_subresource import scale_of
from ctrlmgr.errors import NotFound
from ctrlmgr.recording.autoscaler_replay.reconstructed_metrics import (
    AssumedValues,
    Impossible,
    MetricMissing,
    ReconstructedMetrics,
)

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
    """Raised if a decision cannot be judged; the message gives the reason."""


class RecordedDecision(NamedTuple):
    """The recorded state at the time of a decision."""

    autoscaler: Object
    """The autoscaler object before the decision."""
    known: Sequence[dict[str, Any]]
    """The `currentMetrics` that the autoscaler wrote with the decision."""
    kind: Kind
    target: Object | None
    replicas: int
    """The number of replicas of the target, according to the autoscaler's status."""
    pods: Sequence[Object]
    """The pods that the target selects."""
    now: int
    remembers: bool
    """Whether the recording contains the autoscaler's complete history."""


class Outcome(NamedTuple):
    """The result of an autoscaling pass: the desired number of replicas, and the conditions without timestamps."""

    desired: int
    conditions: tuple[tuple[str, str, str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the outcome in the form of a status."""
        names = ("type", "status", "reason", "message")
        conditions = [dict(zip(names, each, strict=True)) for each in self.conditions]
        return {"status": {"desiredReplicas": self.desired, "conditions": conditions}}


def outcome_of(autoscaler: Object) -> Outcome:
    """Return the outcome that a status contains."""
    status = autoscaler.view(Autoscaler).status
    conditions = (
        tuple(str(each.get(name) or "") for name in ("type", "status", "reason", "message"))
        for each in status.conditions or ()
    )
    return Outcome(status.desired_replicas, tuple((a, b, c, d) for a, b, c, d in conditions))


def decide(
    recorded: RecordedDecision, memory: Memory, selectors: Selectors, kinds: Callable[[], Iterable[Kind]]
) -> Outcome:
    """Return the decision of ctrlmgr's controller; the call updates `memory`, the autoscaler's history.

    Raises `Unknown`.
    """
    outcomes: dict[Outcome, None] = {}
    after: Memory | None = None
    for number, (remembered, guess) in enumerate(product(_memories(recorded, memory), _guesses(recorded))):
        tried = _copy(remembered)
        try:
            outcomes[_run_pass(recorded, tried, guess, selectors, kinds)] = None
        except Impossible:
            continue
        after = after or tried
        if len(outcomes) > 1:
            _keep(memory, after)
            raise Unknown(MEASURED if number < len(_guesses(recorded)) else REMEMBERED)
    if after is None:
        raise Unknown(MEASURED)
    _keep(memory, after)
    return next(iter(outcomes))


def _run_pass(
    recorded: RecordedDecision,
    memory: Memory,
    guess: AssumedValues,
    selectors: Selectors,
    kinds: Callable[[], Iterable[Kind]],
) -> Outcome:
    around = PassDependencies(_Pods(recorded.pods), kinds, selectors, SILENT, _OPTIONS)
    writer = _Writer(recorded)
    pods = [MeasuredPod(each) for each in recorded.pods]
    metrics = ReconstructedMetrics(
        recorded.known, pods, recorded.now, readiness=_READINESS, replicas=writer.found, guess=guess
    )
    one_pass = AutoscalingPass(recorded.autoscaler, around, memory, writer, metrics, recorded.now)
    try:
        one_pass.autoscale()
    except Problem:
        pass  # the conditions contain the problem
    except MetricMissing as error:
        raise Unknown(UNMEASURED) from error
    one_pass.write_status()
    return outcome_of(writer.written or recorded.autoscaler)


class _Pods:
    """The pods of a namespace."""

    def __init__(self, pods: Sequence[Object]) -> None:
        self._pods = pods

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        return self._pods


class _Writer:
    """A client for the autoscaling pass: reads the recorded target, and keeps the written status only in memory."""

    def __init__(self, recorded: RecordedDecision) -> None:
        self._recorded = recorded
        self.written: Object | None = None
        self._scale = None if recorded.target is None else scale_of(recorded.kind, recorded.target.to_dict())

    @property
    def found(self) -> int:
        """The number of replicas in the target's status."""
        return 0 if self._scale is None else int(self._scale["status"]["replicas"])

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        if self._scale is None or kind.storage != self._recorded.kind.storage:
            raise NotFound(f'{kind.resource} "{name}" not found')
        return Object.from_dict({**self._scale, "spec": {"replicas": self._recorded.replicas}})

    def rescale(self, kind: Kind, scale: Object) -> Object:
        return scale

    def update(self, obj: Object, subresource: str = "") -> Object:
        self.written = obj
        return obj


def _guesses(recorded: RecordedDecision) -> list[AssumedValues]:
    """Return the assumptions to try: all pods have metrics, young pods have none, or young pods have early metrics."""
    young = frozenset(each.name for each in recorded.pods if _is_young(MeasuredPod(each), recorded.now))
    guesses = [AssumedValues(), *([AssumedValues(missing=young), AssumedValues(starting=young)] if young else ())]
    if any("averageValue" in _total_of(each) for each in recorded.known):
        guesses += [each._replace(takes_most=False) for each in guesses]
    return guesses


def _is_young(pod: MeasuredPod, now: int) -> bool:
    if pod.phase != "Running" or pod.is_deleted:
        return False
    return pod.started_at is None or pod.started_at + _READINESS.cpu_initialization_period > now


def _total_of(metric: dict[str, Any]) -> dict[str, Any]:
    found = metric.get("object") or metric.get("external") or {}
    current: dict[str, Any] = found.get("current") or {}
    return current


def _memories(recorded: RecordedDecision, memory: Memory) -> Iterator[Memory]:
    """Yield the possible histories: the known one, this one shifted by a second, and one with earlier samples."""
    for shift in _SHIFTS:
        moved = _shifted(memory, shift)
        yield moved
        if recorded.remembers:
            continue
        spec = recorded.autoscaler.view(Autoscaler).spec
        for extreme in (spec.max_replicas, spec.min_replicas or 0):
            before = Sample(extreme, recorded.now)
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

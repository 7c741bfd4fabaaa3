"""Checks in a replay whether ctrlmgr's controller makes the recorded decisions about HorizontalPodAutoscalers.

A recording does not contain metrics, so ctrlmgr's autoscaling controller does not run in a replay. The recorded writes
of autoscalers (the status, and the replicas of the targets) are inputs, to which ctrlmgr's workload controllers react.
However, a recorded status contains the decision together with averages of the metrics. Therefore, at each change of a
status, ctrlmgr's controller repeats the decision on the recorded state just before the change (`repeated_decision`).
The desired number of replicas and the conditions are compared with the recorded ones. If a decision depends on values
that are not recorded, the replay counts the decision as not compared, with the reason.

The comparison assumes that the recorded controller had default options, and that a pod had metrics five minutes after
its start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource, group_of
from ctrlmgr.client import CONTROLLER_MANAGER
from ctrlmgr.controllers.horizontal_pod_autoscaler import DESCRIPTOR, Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaling_pass import Selectors
from ctrlmgr.controllers.horizontal_pod_autoscaler.scaling_limits import Memory
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import AUTOSCALERS, Autoscaler, Rules
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.engine.subresources.scale_subresource import scale_of
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog import EventType
from ctrlmgr.recording.attribution import Managed, writer_of
from ctrlmgr.recording.autoscaler_replay.repeated_decision import Outcome, RecordedDecision, Unknown, decide, outcome_of
from ctrlmgr.recording.custom_names import is_custom_group
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.object_comparison import Divergence, Verdict, differences
from ctrlmgr.recording.replay_stage import RECORDING
from ctrlmgr.recording.report import UncomparedCounts

_SECOND: Final = 1_000_000
_PERIOD: Final = int(Options.horizontal_pod_autoscaler_sync_period * _SECOND)
_WINDOW: Final = Options.horizontal_pod_autoscaler_downscale_stabilization
_VERSION: Final = "autoscaling/v2"

SCALABLE: Final = frozenset(
    {
        *(Resource("apps", name) for name in ("deployments", "replicasets", "statefulsets")),
        Resource("", "replicationcontrollers"),
    }
)
"""Kubernetes' built-in kinds with replicas."""


@dataclass
class _Before:
    """The state of a target and its pods before the target was scaled."""

    target: Object
    pods: list[Object]


@dataclass
class _AutoscalerState:
    """The known state of one HorizontalPodAutoscaler."""

    object: Object
    unsure_until: int
    """The time, in microseconds since 1970, until which the autoscaler may use samples from before the recording."""
    memory: Memory = field(default_factory=Memory)
    before: _Before | None = None
    """The state before the last scaling of the target; None if the autoscaler has written its status after this
    scaling.
    """
    judged: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class JudgedAutoscalers:
    """The HorizontalPodAutoscalers of a recording, and the inputs of their decisions.

    Only the replay's thread may use an instance.
    """

    def __init__(self, kinds: Callable[[], Iterable[Kind]], pods: Callable[[str], list[Object]]) -> None:
        """Create an instance without autoscalers.

        `kinds` returns the served kinds, and `pods` returns the pods recorded so far in a namespace.
        """
        self._kinds = kinds
        self._pods = pods
        self._selectors = Selectors()
        self._known: dict[Key, _AutoscalerState] = {}
        self._ended: list[tuple[Key, _AutoscalerState]] = []
        self._targets: dict[tuple[Resource, Key], Object] = {}

    def observe(self, change: Change) -> Divergence | None:
        """Process a change before other parts of the replay; return a divergence if the decisions differ."""
        resource = change.object.resource
        if resource == PODS:  # changes of pods are the most frequent
            return None
        if resource == AUTOSCALERS:
            return self._observe_autoscaler(change)
        if resource in SCALABLE or is_custom_group(resource.group):
            self._observe_target(change)
        return None

    @property
    def judged(self) -> int:
        """The number of decisions that were compared."""
        return sum(each.judged for _, each in self._all())

    def unjudged(self) -> Iterator[UncomparedCounts]:
        """Yield the number of decisions that could not be compared, for each autoscaler and reason."""
        counted: Counter[tuple[Key, str]] = Counter()
        for key, known in self._all():
            counted.update({(key, reason): count for reason, count in known.reasons.items()})
        for (key, reason), count in sorted(counted.items()):
            yield UncomparedCounts(str(AUTOSCALERS), key.namespace, key.name, reason, count)

    def _all(self) -> list[tuple[Key, _AutoscalerState]]:
        return [*self._ended, *self._known.items()]

    def _observe_target(self, change: Change) -> None:
        obj = change.object
        place = (obj.resource, obj.key)
        old = self._targets.pop(place, None)
        if change.type is not EventType.DELETED:
            self._targets[place] = obj
        if old is None or not self._known:
            return
        for known in self._known.values():
            kind = self._aims_at(known.object, obj)
            if kind is not None and _desired(kind, old) != _desired(kind, obj):
                known.before = _Before(old, self._pods(obj.namespace))

    def _aims_at(self, autoscaler: Object, target: Object) -> Kind | None:
        if autoscaler.namespace != target.namespace:
            return None
        kind = self._kind(autoscaler)
        is_it = kind is not None and kind.storage == target.resource
        return kind if is_it and autoscaler.view(Autoscaler).spec.scale_target_ref.name == target.name else None

    def _kind(self, autoscaler: Object) -> Kind | None:
        reference = autoscaler.view(Autoscaler).spec.scale_target_ref
        desired = (group_of(reference.api_version), reference.kind)
        kinds = (each for each in self._kinds() if (each.gvk.group, each.gvk.kind) == desired)
        return next((each for each in kinds if "scale" in each.subresources), None)

    def _observe_autoscaler(self, change: Change) -> Divergence | None:
        new = change.object
        known = self._known.get(new.key)
        if change.type is EventType.DELETED:
            self._selectors.forget(new.key)
            if known is not None:
                self._ended.append((new.key, self._known.pop(new.key)))
            return None
        if known is None:
            is_new = bool(change.recorded_at) and not new.view(Autoscaler).status.conditions
            until = 0 if is_new else change.recorded_at + _longest(new)
            self._known[new.key] = _AutoscalerState(new, until)
            return None
        old, known.object = known.object, new
        if not _is_decision(old, change):
            return None
        found = self._judge(known, old, change)
        known.before = None
        return found

    def _judge(self, known: _AutoscalerState, old: Object, change: Change) -> Divergence | None:
        now = change.made.decided_at or change.recorded_at
        recorded = outcome_of(change.object)
        try:
            ours = self._decide(known, old, change.object, now)
        except Unknown as unknown:
            known.reasons[str(unknown)] += 1
            known.unsure_until = now + _longest(change.object)
            return None
        known.judged += 1
        return _compared(change, recorded, ours)

    def _decide(self, known: _AutoscalerState, old: Object, new: Object, now: int) -> Outcome:
        if not now:
            raise Unknown("the recording does not show when it was made")
        if new.to_dict()["apiVersion"] != _VERSION:
            raise Unknown(f"its status is not recorded in the version {_VERSION}")
        status = new.view(Autoscaler).status
        kind = self._kind(old)
        if kind is None:
            raise Unknown("the kind of its target is not in the recording")
        target, pods = self._surroundings(known, old, kind, status.current_replicas)
        _repeat_last(known.memory, now)
        metrics = status.current_metrics or []
        remembers = now >= known.unsure_until
        recorded = RecordedDecision(old, metrics, kind, target, status.current_replicas, pods, now, remembers)
        return decide(recorded, known.memory, self._selectors, self._kinds)

    def _surroundings(
        self, known: _AutoscalerState, old: Object, kind: Kind, replicas: int
    ) -> tuple[Object | None, list[Object]]:
        """Return the target and its pods at the time when the autoscaler read `replicas` from the target."""
        place = (kind.storage, Key(old.namespace, old.view(Autoscaler).spec.scale_target_ref.name))
        target = self._targets.get(place)
        pods = self._pods(old.namespace)
        if known.before is not None and _desired(kind, known.before.target) == replicas:
            target, pods = known.before.target, known.before.pods
        if target is None:
            if not any(resource == kind.storage for resource, _ in self._targets):
                raise Unknown("its target is not in the recording")
            return None, []
        desired = _desired(kind, target)
        if desired != replicas:
            raise Unknown("the recorded target has another number of replicas than the autoscaler read")
        return target, _selected(kind, target, pods)


def _is_decision(old: Object, change: Change) -> bool:
    """Return whether the recorded controller, and not another client, wrote a status."""
    new = change.object
    if old.to_dict().get("status") == new.to_dict().get("status"):
        return False
    if change.made.actor not in ("", RECORDING.actor):
        return change.made.actor == DESCRIPTOR.user
    return writer_of(Managed(old), Managed(new)).manager == CONTROLLER_MANAGER


def _desired(kind: Kind, target: Object) -> int:
    return int(scale_of(kind, target.to_dict())["spec"]["replicas"])


def _selected(kind: Kind, target: Object, pods: list[Object]) -> list[Object]:
    try:
        selector = LabelSelector.parse(scale_of(kind, target.to_dict())["status"].get("selector") or "")
    except BadRequest:
        return []
    return [pod for pod in pods if selector.matches(pod.labels)]


def _repeat_last(memory: Memory, now: int) -> None:
    """Repeat the last recommendation for the period before `now`, because the status has not changed since."""
    if memory.recommendations:
        last = max(memory.recommendations, key=lambda each: each.at)
        if last.at < now - _PERIOD:
            memory.recommendations.append(last._replace(at=now - _PERIOD))


def _longest(autoscaler: Object) -> int:
    """Return the maximum period that an autoscaler's history must cover, in microseconds."""
    behavior = autoscaler.view(Autoscaler).spec.behavior
    rules = (behavior.scale_up, behavior.scale_down) if behavior is not None else ()
    return int(max([_WINDOW, *(seconds for each in rules for seconds in _windows(each))]) * _SECOND)


def _windows(rules: Rules) -> list[float]:
    return [rules.stabilization_window_seconds or 0, *(each.period_seconds for each in rules.policies or ())]


def _compared(change: Change, recorded: Outcome, ours: Outcome) -> Divergence | None:
    found = tuple(differences(recorded.as_json(), ours.as_json()))
    if not found:
        return None
    obj, place = change.object, f"line {change.line}"
    return Divergence(place, change.line, Verdict.DIFFERS, str(AUTOSCALERS), obj.namespace, obj.name, found)

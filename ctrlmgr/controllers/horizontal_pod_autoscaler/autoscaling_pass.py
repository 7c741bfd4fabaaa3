"""One pass over one autoscaler: reads metrics, decides the number of replicas, scales the target, writes the status.

Source: Kubernetes' `pkg/controller/podautoscaler/horizontal.go` (`reconcileAutoscaler`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from ctrlmgr.api import quantity
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.horizontal_pod_autoscaler import Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod
from ctrlmgr.controllers.horizontal_pod_autoscaler.metric_evaluation import (
    Evaluation,
    MetricProposal,
    MetricsContext,
    MetricUnavailable,
    evaluate,
)
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsClient
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import MetricInput, Readiness, Tolerances
from ctrlmgr.controllers.horizontal_pod_autoscaler.scaling_limits import Bounds, Memory, limit
from ctrlmgr.controllers.horizontal_pod_autoscaler.status import (
    ABLE_TO_SCALE,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    StatusDraft,
)
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import Autoscaler, Behavior, Metric, Scale
from ctrlmgr.controllers.workloads.workload_metrics import INTERNAL, NONE, SPEC, DecisionMetrics
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.errors import ApiError, BadRequest
from ctrlmgr.golang.go_text import quote

_SECOND: Final = 1_000_000

_STABILIZED: Final = {
    "ScaleUpStabilized": (
        "recent recommendations were lower than current one, applying the lowest recent recommendation"
    ),
    "ScaleDownStabilized": (
        "recent recommendations were higher than current one, applying the highest recent recommendation"
    ),
}


class Problem(Exception):
    """Raised if an autoscaler cannot be evaluated in this period.

    The autoscaler's status and Events contain the reason.
    """

    is_of_spec = False
    """Whether the autoscaler's spec is the cause of the problem."""


class _Refused(Problem):
    is_of_spec = True


class Selectors:
    """The pod selectors of all autoscalers, which are used to find autoscalers that select the same pods.

    Several threads may use one instance.
    """

    def __init__(self) -> None:
        """Create an instance without selectors."""
        self._lock = threading.Lock()
        self._selectors: dict[Key, LabelSelector] = {}

    def put(self, key: Key, selector: LabelSelector) -> None:
        """Store the selector of an autoscaler."""
        with self._lock:
            self._selectors[key] = selector

    def forget(self, key: Key) -> None:
        """Remove the selector of an autoscaler."""
        with self._lock:
            self._selectors.pop(key, None)

    def selecting(self, namespace: str, pods: Iterable[Object]) -> list[Key]:
        """Return the autoscalers of a namespace that select at least one of `pods`."""
        labels = [pod.labels for pod in pods]
        with self._lock:
            known = [(key, each) for key, each in self._selectors.items() if key.namespace == namespace]
        return sorted(key for key, selector in known if any(map(selector.matches, labels)))


class Pods(Protocol):
    """A lister of pods."""

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        """Return the pods of a namespace."""


class PassDependencies(NamedTuple):
    """The dependencies that all passes share."""

    pods: Pods
    kinds: Callable[[], Iterable[Kind]]
    """The type of a function that returns the currently served kinds."""
    selectors: Selectors
    recorder: Recorder
    options: Options

    def kinds_of(self, group: str, kind: str) -> list[Kind]:
        """Return all versions of the kinds that have the given group and name."""
        return [each for each in self.kinds() if (each.gvk.group, each.gvk.kind) == (group, kind)]

    def pods_of(self, namespace: str, selector: LabelSelector) -> list[Object]:
        """Return the pods of a namespace that match a selector."""
        return [pod for pod in self.pods.list(namespace) if selector.matches(pod.labels)]


class Writer(Protocol):
    """The reads and writes of a pass; `EngineClient` implements this protocol.

    Every method raises `ApiError` if the request fails.
    """

    def scale(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the Scale of an object."""

    def rescale(self, kind: Kind, scale: Object) -> Object:
        """Write a changed Scale, and return the stored Scale."""

    def update(self, obj: Object, subresource: str = "") -> Object:
        """Update a subresource of an object; return the stored object."""


class AutoscalingPass:
    """One pass of the controller over one HorizontalPodAutoscaler."""

    def __init__(
        self,
        obj: Object,
        surroundings: PassDependencies,
        memory: Memory,
        client: Writer,
        metrics: MetricsClient,
        now: int,
        counts: DecisionMetrics | None = None,
    ) -> None:
        """Create a pass over the autoscaler `obj` at the time `now` (microseconds since 1970).

        The argument `memory` contains the history of the autoscaler's recommendations; `counts` records the pass in
        metrics.
        """
        self._object = obj
        self._view = obj.view(Autoscaler)
        self._spec = self._view.spec
        self._draft = StatusDraft(self._view.status, now)
        self._around = surroundings
        self._memory = memory
        self._client = client
        self._metrics = metrics
        self._now = now
        self._counts = counts
        self._current = 0
        self._desired: int | None = None

    def autoscale(self) -> None:
        """Read the metrics, decide the replicas, and scale the target.

        Raises `Problem` if the metrics cannot be evaluated or the target cannot be scaled.
        """
        error = INTERNAL
        try:
            self._autoscale()
            error = NONE
        except Problem as problem:
            error = SPEC if problem.is_of_spec else INTERNAL
            raise
        finally:
            if self._counts is not None:
                self._counts.decided(self._current, self._desired, error)

    def _autoscale(self) -> None:
        kind, scale = self._target()
        message = "the HPA controller was able to get the target's current scale"
        self._draft.condition(ABLE_TO_SCALE, True, "SucceededGetScale", message)
        current = self._current = scale.view(Scale).spec.replicas
        self._memory.begin(current, self._now)
        least, most = self._bounds
        metrics: Sequence[Mapping[str, Any]] | None = None
        if current == 0 and least != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            self._draft.condition(SCALING_ACTIVE, False, "ScalingDisabled", message)
            desired, why = current, ""
        elif current > most:
            desired, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            evaluation = self._evaluate(scale)
            metrics = evaluation.statuses
            desired, why = self._decide(evaluation, current)
        self._desired = desired
        if desired != current:
            self._rescale(kind, scale, desired, why, metrics)
        self._draft.numbers(current, desired, metrics, rescaled=desired != current)

    def write_status(self) -> None:
        """Write the status of the autoscaler if the status has changed.

        A failed write of the status is recorded as an Event and not retried.
        """
        desired = self._draft.written_to(self._object)
        if desired is None:
            return
        try:
            self._client.update(desired, "status")
        except ApiError as error:
            self._tell(WARNING, "FailedUpdateStatus", str(error))

    @property
    def _bounds(self) -> Bounds:
        least = self._spec.min_replicas
        return Bounds(1 if least is None else least, self._spec.max_replicas)

    def _target(self) -> tuple[Kind, Object]:
        """Return the kind of the scale target, and its Scale."""
        reference = self._spec.scale_target_ref
        try:
            kinds = self._around.kinds_of(_group(reference.api_version), reference.kind)
            if not kinds:
                group = quote(_group(reference.api_version))
                raise BadRequest(f"no matches for kind {quote(reference.kind)} in group {group}")
            return self._first_scale(kinds, reference.name)
        except ApiError as error:
            self._tell(WARNING, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            self._draft.condition(ABLE_TO_SCALE, False, "FailedGetScale", message)
            raise Problem(str(error)) from error

    def _first_scale(self, kinds: Sequence[Kind], name: str) -> tuple[Kind, Object]:
        first: ApiError | None = None
        for kind in kinds:
            try:
                return kind, self._client.scale(kind, self._object.namespace, name)
            except ApiError as error:
                first = first or error
        assert first is not None, "there is a kind"
        raise first

    def _evaluate(self, scale: Object) -> Evaluation:
        """Return the evaluation of all metrics, and set the conditions.

        Raises `Problem` if no metric can be evaluated.
        """
        current = scale.view(Scale).spec.replicas
        selector = self._selector(scale.view(Scale).status.selector, current)
        pods = [MeasuredPod(each) for each in self._around.pods_of(self._object.namespace, selector)]
        options = self._around.options
        readiness = Readiness(
            int(options.horizontal_pod_autoscaler_cpu_initialization_period * _SECOND),
            int(options.horizontal_pod_autoscaler_initial_readiness_delay * _SECOND),
        )
        tolerances = _tolerances(self._spec.behavior, options.horizontal_pod_autoscaler_tolerance)
        situation = MetricInput(current, pods, self._now, tolerances, readiness)
        replicas = scale.view(Scale).status.replicas
        context = MetricsContext(self._metrics, self._object.namespace, selector, situation, replicas)
        evaluation = evaluate(self._spec.metrics or (), context, self._computed)
        for failure in evaluation.failures:
            self._tell(WARNING, failure.reason, failure.message)
        if evaluation.replicas is None:
            failure = evaluation.failures[0]
            message = f"the HPA was unable to compute the replica count: {failure.message}"
            self._draft.condition(SCALING_ACTIVE, False, failure.reason, message)
            self._fail(evaluation.error, current, evaluation.statuses, is_of_spec=failure.is_of_spec)
        message = f"the HPA was able to successfully calculate a replica count from {evaluation.name}"
        self._draft.condition(SCALING_ACTIVE, True, "ValidMetricFound", message)
        return evaluation

    def _computed(self, metric: Metric, found: MetricProposal | MetricUnavailable) -> None:
        if self._counts is None:
            return
        if isinstance(found, MetricProposal):
            self._counts.computed(metric.type, self._current, found.replicas)
        else:
            self._counts.computed(metric.type, self._current, None, SPEC if found.is_of_spec else INTERNAL)

    def _selector(self, text: str, current: int) -> LabelSelector:
        """Return the pod selector of the scale target.

        Raises `Problem` if the selector is invalid, or if several autoscalers select the same pods.
        """
        if not text:
            self._tell(WARNING, "SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            self._refuse_selector("InvalidSelector", message, "selector is required", current)
        try:
            selector = LabelSelector.parse(text)
        except BadRequest as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._tell(WARNING, "InvalidSelector", message)
            self._refuse_selector("InvalidSelector", message, message, current)
        self._around.selectors.put(self._object.key, selector)
        pods = self._around.pods_of(self._object.namespace, selector)
        others = self._around.selectors.selecting(self._object.namespace, pods)
        if len(others) > 1:
            listed = " ".join(f"{{{key.name} {key.namespace}}}" for key in others)
            message = f"pods by selector {text} are controlled by multiple HPAs: [{listed}]"
            self._tell(WARNING, "AmbiguousSelector", message)
            self._refuse_selector("AmbiguousSelector", message, message, current)
        return selector

    def _refuse_selector(self, reason: str, message: str, problem: str, current: int) -> NoReturn:
        self._draft.condition(SCALING_ACTIVE, False, reason, message)
        self._fail(problem, current, None, is_of_spec=True)

    def _fail(
        self, problem: str, current: int, metrics: Sequence[Mapping[str, Any]] | None, *, is_of_spec: bool
    ) -> NoReturn:
        """Set the status, and raise `Problem` because the number of replicas cannot be computed in this period."""
        self._draft.numbers(current, None, metrics)
        self._tell(WARNING, "FailedComputeMetricsReplicas", problem)
        raise (_Refused if is_of_spec else Problem)(problem)

    def _decide(self, evaluation: Evaluation, current: int) -> tuple[int, str]:
        """Return the new number of replicas, and the reason for the Event."""
        desired = evaluation.replicas or 0
        why = f"{evaluation.name} above target" if desired > current else "All metrics below target"
        window = int(self._around.options.horizontal_pod_autoscaler_downscale_stabilization * _SECOND)
        limited = limit(self._memory, self._spec.behavior, self._bounds, current, desired, window, self._now)
        if limited.stabilized:
            self._draft.condition(ABLE_TO_SCALE, True, limited.stabilized, _STABILIZED[limited.stabilized])
        else:
            self._draft.condition(ABLE_TO_SCALE, True, "ReadyForNewScale", "recommended size matches current size")
        self._draft.condition(SCALING_LIMITED, limited.is_limited, limited.reason, limited.message)
        return limited.replicas, why if desired != current else ""

    def _rescale(
        self, kind: Kind, scale: Object, desired: int, why: str, metrics: Sequence[Mapping[str, Any]] | None
    ) -> None:
        fields = scale.to_dict()
        current, fields["spec"] = scale.view(Scale).spec.replicas, {"replicas": desired}
        try:
            self._client.rescale(kind, Object.from_dict(fields))
        except ApiError as error:
            self._tell(WARNING, "FailedRescale", f"New size: {desired}; reason: {why}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            self._draft.condition(ABLE_TO_SCALE, False, "FailedUpdateScale", message)
            self._draft.numbers(current, None, metrics)
            raise Problem(str(error)) from error
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._draft.condition(ABLE_TO_SCALE, True, "SucceededRescale", message)
        self._tell(NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {why}")
        self._memory.note_change(self._spec.behavior, current, desired, self._now)

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._around.recorder.event(self._object, type_, reason, message)


def _group(api_version: str) -> str:
    """Return the group in an apiVersion; raises `BadRequest`, with Go's message, if the apiVersion is malformed."""
    parts = api_version.split("/")
    if len(parts) > 2:
        raise BadRequest(f"unexpected GroupVersion string: {api_version}")
    return parts[0] if len(parts) == 2 else ""


def _tolerances(behavior: Behavior | None, tolerance: float) -> Tolerances:
    """Return the tolerances of an autoscaler: the tolerances in its spec or, if they are not set, the default."""

    def own(text: str | None) -> float:
        return tolerance if text is None else quantity.parse(text) / quantity.WHOLE

    if behavior is None:
        return Tolerances(tolerance, tolerance)
    return Tolerances(own(behavior.scale_down.tolerance), own(behavior.scale_up.tolerance))

"""Evaluates the metrics of an autoscaler, and combines the results.

Guarantees:
- The result of the evaluation is the largest number of replicas that any metric proposes. If a metric is unavailable,
  the number of replicas does not decrease. If all metrics are unavailable, the evaluation has no result.
- Reasons and messages of conditions and Events are the same as in Kubernetes.

Source: Kubernetes' `pkg/controller/podautoscaler/horizontal.go` (`computeReplicasForMetrics` and the functions that it
calls).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsClient, MetricsError, milli, written
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import (
    MetricInput,
    Proposal,
    by_average,
    by_total,
    by_total_per_pod,
    by_utilization,
    total_of,
)
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import Identifier, Metric, Reference, Source, Target
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of, selector_shown

_NO_SUCH_SOURCE: Final = "InvalidMetricSourceType"

UNKNOWN: Final[Mapping[str, Any]] = {"type": ""}
"""The status of a metric that is unavailable."""


class MetricProposal(NamedTuple):
    """The number of replicas that one metric proposes, the metric's name in messages, and its status."""

    replicas: int
    name: str
    status: dict[str, Any]


class MetricUnavailable(MetricsError):
    """Raised if the value of a metric is unavailable.

    `reason` and `message` become the reason and the message of the condition and the Event. The error about all
    metrics contains the message of the exception.
    """

    def __init__(self, reason: str, event_message: str, message: str) -> None:
        """Create the error with the reason, the message of the condition, and the message of the exception."""
        super().__init__(message)
        self.reason = reason
        self.message = event_message
        self.is_of_spec = reason == _NO_SUCH_SOURCE
        """Whether the autoscaler's spec is the cause of the error."""


class MetricsContext(NamedTuple):
    """The dependencies of the evaluation: the metrics client, and the pods of the scale target."""

    client: MetricsClient
    namespace: str
    selector: LabelSelector
    situation: MetricInput
    replicas: int
    """The number of replicas in the scale target's status."""


class Evaluation(NamedTuple):
    """The combined result of the evaluation of all metrics.

    If the number of replicas cannot be decided, `replicas` is None, and `failures` contains the reasons.
    """

    replicas: int | None
    name: str
    statuses: Sequence[Mapping[str, Any]]
    failures: Sequence[MetricUnavailable]

    @property
    def error(self) -> str:
        """The combined error message; empty if no metric has failed."""
        if not self.failures:
            return ""
        invalid, all_of_them = len(self.failures), len(self.statuses)
        return f"invalid metrics ({invalid} invalid out of {all_of_them}), first error is: {self.failures[0]}"


Observe = Callable[[Metric, MetricProposal | MetricUnavailable], None]
"""The type of a function that is called with the result of each metric."""


def evaluate(
    metrics: Iterable[Metric], context: MetricsContext, observe: Observe = lambda metric, found: None
) -> Evaluation:
    """Return the combined proposal of several metrics."""
    best = MetricProposal(0, "", {})
    statuses: list[Mapping[str, Any]] = []
    failures: list[MetricUnavailable] = []
    for metric in metrics:
        try:
            measured = measure(metric, context)
        except MetricUnavailable as failure:
            failures.append(failure)
            statuses.append(UNKNOWN)
            observe(metric, failure)
            continue
        observe(metric, measured)
        statuses.append(measured.status)
        if not best.replicas or measured.replicas > best.replicas:
            best = measured
    undecided = len(failures) >= len(statuses) or (failures and best.replicas < context.situation.current)
    return Evaluation(None if undecided else best.replicas, best.name, statuses, failures)


def measure(metric: Metric, context: MetricsContext) -> MetricProposal:
    """Return the proposal of one metric; raises `MetricUnavailable` if the metric cannot be read or is invalid."""
    source, how = _SOURCES.get(metric.type, (None, None))
    found: Source | None = getattr(metric, source) if source else None
    if found is None or how is None:
        problem = f'unknown metric source type "{metric.type}"'
        raise MetricUnavailable(_NO_SUCH_SOURCE, problem, problem)
    return how(found, context)


def _resource(source: Source, context: MetricsContext) -> MetricProposal:
    try:
        proposal, current = _of_resource(source, context, "")
    except MetricsError as error:
        outer = f"failed to get {source.name} resource metric value: {error}"
        raise MetricUnavailable("FailedGetResourceMetric", str(error), outer) from error
    name = _resource_name(source, "resource utilization (percentage of request)")
    return MetricProposal(
        proposal.replicas, name, _status("Resource", "resource", {"name": source.name, "current": current})
    )


def _container_resource(source: Source, context: MetricsContext) -> MetricProposal:
    try:
        proposal, current = _of_resource(source, context, source.container)
    except MetricsError as error:
        outer = f"failed to get {source.container} container metric value: {error}"
        raise MetricUnavailable("FailedGetContainerResourceMetric", str(error), outer) from error
    name = _resource_name(source, "container resource utilization (percentage of request)")
    fields = {"name": source.name, "container": source.container, "current": current}
    return MetricProposal(proposal.replicas, name, _status("ContainerResource", "containerResource", fields))


def _resource_name(source: Source, utilization: str) -> str:
    return f"{source.name} {'resource' if source.target.average_value is not None else utilization}"


def _of_resource(source: Source, context: MetricsContext, container: str) -> tuple[Proposal, dict[str, Any]]:
    """Return the proposal that is based on the usage of a resource, and the current value of the metric."""
    target, resource = source.target, source.name
    if target.average_value is None and target.average_utilization is None:
        either = "neither an average utilization target nor an average value (usage) target was set"
        raise MetricsError(f"invalid resource metric source: {either}")
    kind = "usage" if target.average_value is not None else "utilization"
    try:
        metrics = _fetched(resource, context, container)
        if target.average_value is not None:
            proposal = by_average(context.situation, milli(target.average_value), metrics, resource)
            return proposal, {"averageValue": written(proposal.usage)}
        proposal = by_utilization(context.situation, target.average_utilization or 0, metrics, resource, container)
    except MetricsError as error:
        raise MetricsError(f"failed to get {resource} {kind}: {error}") from error
    return proposal, {"averageValue": written(proposal.usage), "averageUtilization": proposal.utilization}


def _fetched(resource: str, context: MetricsContext, container: str) -> Any:
    try:
        return context.client.resource(resource, context.namespace, context.selector, container)
    except MetricsError as error:
        raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from error


def _pods(source: Source, context: MetricsContext) -> MetricProposal:
    try:
        proposal = _of_pods(source, context)
    except MetricsError as error:
        outer = f"failed to get pods metric value: {error}"
        raise MetricUnavailable("FailedGetPodsMetric", str(error), outer) from error
    fields = {"metric": _identifier(source.metric), "current": {"averageValue": written(proposal.usage)}}
    return MetricProposal(proposal.replicas, f"pods metric {source.metric.name}", _status("Pods", "pods", fields))


def _of_pods(source: Source, context: MetricsContext) -> Proposal:
    name, selector = source.metric.name, _selector(source.metric)
    try:
        metrics = context.client.pods(name, context.namespace, context.selector, selector)
    except MetricsError as error:
        raise MetricsError(f"unable to get metric {name}: {error}") from error
    return by_average(context.situation, milli(source.target.average_value or "0"), metrics)


def _object(source: Source, context: MetricsContext) -> MetricProposal:
    reason, name, described = "FailedGetObjectMetric", source.metric.name, source.described_object
    target = source.target
    is_value = target.type == "Value" and target.value is not None
    if not is_value and not (target.type == "AverageValue" and target.average_value is not None):
        problem = "invalid object metric source: neither a value target nor an average value target was set"
        raise MetricUnavailable(reason, problem, f"failed to get object metric value: {problem}")
    try:
        proposal = _of_object(source, context)
    except MetricsError as error:
        part = str(error) if is_value else f"failed to get {name} object metric: {error}"
        raise MetricUnavailable(reason, str(error), f"failed to get object metric value: {part}") from error
    current = {"value" if is_value else "averageValue": written(proposal.usage)}
    fields: dict[str, Any] = {"metric": _identifier(source.metric), "current": current}
    # As in Kubernetes, the name of an average over pods does not contain the object.
    fields["describedObject"] = _reference(described) if is_value else {"kind": "", "name": ""}
    label = (
        f"{described.kind} metric {name}"
        if is_value
        else f"external metric {name}({selector_shown(source.metric.selector)})"
    )
    return MetricProposal(proposal.replicas, label, _status("Object", "object", fields))


def _of_object(source: Source, context: MetricsContext) -> Proposal:
    name, described, target = source.metric.name, source.described_object, source.target
    selector = _selector(source.metric)
    try:
        usage = context.client.object(name, context.namespace, _reference(described), selector)
    except MetricsError as error:
        where = f"{described.kind} on {context.namespace} {described.name}/{error}"  # the order is Kubernetes'
        raise MetricsError(f"unable to get metric {name}: {where}") from error
    return _of_total(target, usage, context, per_pod=target.type == "AverageValue")


def _external(source: Source, context: MetricsContext) -> MetricProposal:
    reason, name, target = "FailedGetExternalMetric", source.metric.name, source.target
    outer = f"failed to get {name} external metric value"
    if target.value is None and target.average_value is None:
        problem = "invalid external metric source: neither a value target nor an average value target was set"
        raise MetricUnavailable(reason, problem, f"{outer}: {problem}")
    try:
        proposal = _of_external(source, context)
    except MetricsError as error:
        part = f"{name} external metric" if target.average_value is not None else f"external metric {name}"
        raise MetricUnavailable(reason, str(error), f"{outer}: failed to get {part}: {error}") from error
    current = {"value" if target.average_value is None else "averageValue": written(proposal.usage)}
    fields = {"metric": _identifier(source.metric), "current": current}
    label = f"external metric {name}({selector_shown(source.metric.selector)})"
    return MetricProposal(proposal.replicas, label, _status("External", "external", fields))


def _of_external(source: Source, context: MetricsContext) -> Proposal:
    name, selector = source.metric.name, _selector(source.metric)
    try:
        values = context.client.external(name, context.namespace, selector)
    except MetricsError as error:
        where = f"{context.namespace}/{name}/{selector_shown(source.metric.selector)}"
        raise MetricsError(f"unable to get external metric {where}: {error}") from error
    return _of_total(source.target, total_of(values), context, per_pod=source.target.average_value is not None)


def _of_total(target: Target, usage: int, context: MetricsContext, *, per_pod: bool) -> Proposal:
    if per_pod:
        desired = milli(target.average_value or "0")
        return by_total_per_pod(context.replicas, usage, desired, context.situation.tolerances)
    return by_total(context.situation, usage, milli(target.value or "0"))


_SOURCES: Final[Mapping[str, tuple[str, Callable[[Source, MetricsContext], MetricProposal]]]] = {
    "Resource": ("resource", _resource),
    "ContainerResource": ("container_resource", _container_resource),
    "Pods": ("pods", _pods),
    "Object": ("object", _object),
    "External": ("external", _external),
}
"""For each type of metric: the field that contains its source, and the function that evaluates it."""


def _status(type_: str, source: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": type_, source: dict(fields)}


def _identifier(metric: Identifier) -> dict[str, Any]:
    return {"name": metric.name, **({"selector": metric.selector} if metric.selector is not None else {})}


def _reference(described: Reference) -> dict[str, Any]:
    fields = {"apiVersion": described.api_version, "kind": described.kind, "name": described.name}
    return {name: value for name, value in fields.items() if value}


def _selector(metric: Identifier) -> LabelSelector:
    if metric.selector is None:  # Unlike elsewhere, a missing selector matches everything here.
        return LabelSelector()
    found = selector_of(metric.selector)
    if found is None:
        raise MetricsError(f"{metric.selector} is not a valid label selector")
    return found

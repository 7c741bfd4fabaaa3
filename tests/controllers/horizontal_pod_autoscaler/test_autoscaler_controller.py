"""Tests of the HorizontalPodAutoscaler controller, which acts once a period, uses the scale subresource of any kind,
and writes Kubernetes' messages.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError, PodMetric, Served
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from tests.controllers.horizontal_pod_autoscaler.scaled import (
    COLLECTION,
    CPU,
    PERIOD,
    AutoscalerStage,
)

WEB = "/apis/apps/v1/namespaces/a/deployments/web"
NO_RESOURCE_METRICS = (
    "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: "
    "the server could not find the requested resource (get pods.metrics.k8s.io)"
)


def _average(name: str, value: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


@pytest.fixture
def stage() -> AutoscalerStage:
    return AutoscalerStage()


def test_the_autoscaler_reconciles_once_per_period(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler()
    stage.pass_by(PERIOD - 1)
    assert stage.replicas() == 2
    stage.pass_by(1)
    assert stage.replicas() == 4
    stage.patch(f"{COLLECTION}/hpa", {"spec": {"maxReplicas": 3}})
    stage.work()
    assert stage.replicas() == 4
    stage.pass_by(PERIOD)
    assert stage.replicas() == 3


def test_scaling_up_sets_conditions_and_an_event(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler()
    stage.next_period()
    status = stage.status()
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert status["lastScaleTime"] == format_time_seconds(stage.clock.now())
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "1"}}}
    ]
    assert [each["type"] for each in status["conditions"]] == ["AbleToScale", "ScalingActive", "ScalingLimited"]
    name = "cpu resource utilization (percentage of request)"
    succeeded = "the HPA controller was able to update the target scale to 4"
    assert stage.condition("AbleToScale") == ("True", "SucceededRescale", succeeded)
    found = f"the HPA was able to successfully calculate a replica count from {name}"
    assert stage.condition("ScalingActive") == ("True", "ValidMetricFound", found)
    within = "the desired count is within the acceptable range"
    assert stage.condition("ScalingLimited") == ("False", "DesiredWithinRange", within)
    assert stage.recorded.events == [("Normal", "SuccessfulRescale", f"New size: 4; reason: {name} above target")]


def test_scaling_down_waits_for_the_stabilization_window(stage: AutoscalerStage) -> None:
    stage.web(4)
    stage.measures.cpu = [100, 100, 100, 100]
    stage.autoscaler()
    for _ in range(20):
        stage.next_period()
    assert stage.replicas() == 4
    assert stage.condition("AbleToScale")[1] == "ScaleDownStabilized"
    for _ in range(3):
        stage.next_period()
    assert stage.replicas() == 1
    assert stage.recorded.events[-1] == ("Normal", "SuccessfulRescale", "New size: 1; reason: All metrics below target")


def test_missing_metrics_set_kubernetes_condition(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.autoscaler()
    stage.next_period()
    recorded = f"failed to get cpu utilization: {NO_RESOURCE_METRICS}"
    failed = f"the HPA was unable to compute the replica count: {recorded}"
    assert stage.condition("ScalingActive") == ("False", "FailedGetResourceMetric", failed)
    assert stage.condition("AbleToScale")[:2] == ("True", "SucceededGetScale")
    assert stage.status()["currentMetrics"] == [{"type": ""}]
    first = f"failed to get cpu resource metric value: {recorded}"
    whole = f"invalid metrics (1 invalid out of 1), first error is: {first}"
    assert stage.recorded.events == [
        ("Warning", "FailedGetResourceMetric", recorded),
        ("Warning", "FailedComputeMetricsReplicas", whole),
    ]


@pytest.mark.parametrize(
    ("metric", "reason", "recorded", "outer"),
    [
        (
            {
                "type": "Pods",
                "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": 9}},
            },
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
            "failed to get pods metric value: {}",
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "c",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            },
            "FailedGetContainerResourceMetric",
            f"failed to get cpu utilization: {NO_RESOURCE_METRICS}",
            "failed to get c container metric value: {}",
        ),
        (
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "9"}}},
            "FailedGetExternalMetric",
            "unable to get external metric a/q/nil: unable to fetch metrics from external metrics API: "
            "the server could not find the requested resource (get q.external.metrics.k8s.io)",
            "failed to get q external metric value: failed to get external metric q: {}",
        ),
        (
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "hits"},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                    "target": {"type": "Value", "value": "9"},
                },
            },
            "FailedGetObjectMetric",
            "unable to get metric hits: Service on a s/unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
            "failed to get object metric value: {}",
        ),
    ],
)
def test_each_failing_source_has_its_message(
    stage: AutoscalerStage, metric: dict[str, Any], reason: str, recorded: str, outer: str
) -> None:
    stage.web(2)
    stage.autoscaler(metrics=[metric])
    stage.next_period()
    whole = f"invalid metrics (1 invalid out of 1), first error is: {outer.format(recorded)}"
    assert stage.recorded.events == [("Warning", reason, recorded), ("Warning", "FailedComputeMetricsReplicas", whole)]


def test_the_metric_with_the_most_replicas_counts(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu, stage.measures.rps = [500, 500], [15_000, 15_000]
    stage.autoscaler(metrics=[*CPU, _average("rps", "10")])
    stage.next_period()
    assert stage.replicas() == 3
    assert stage.recorded.events[-1][2] == "New size: 3; reason: pods metric rps above target"


def test_an_unavailable_metric_prevents_scaling_down_but_not_up(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [100, 100]
    stage.autoscaler(metrics=[*CPU, _average("rps", "10")])
    for _ in range(25):
        stage.next_period()
    assert stage.replicas() == 2
    assert stage.condition("ScalingActive")[1] == "FailedGetPodsMetric"
    stage.measures.cpu = [1000, 1000]
    stage.next_period()
    assert stage.replicas() == 4


def test_external_and_object_metrics_scale(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.queue = [30_000, 10_000]
    external = {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    stage.autoscaler(metrics=[{"type": "External", "external": external}])
    stage.next_period()
    assert stage.replicas() == 4
    assert stage.status()["currentMetrics"] == [
        {"type": "External", "external": {"metric": {"name": "q"}, "current": {"averageValue": "20"}}}
    ]


def test_a_target_that_is_missing(stage: AutoscalerStage) -> None:
    stage.autoscaler()
    stage.next_period()
    message = 'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found'
    assert stage.condition("AbleToScale") == ("False", "FailedGetScale", message)
    assert stage.recorded.events == [("Warning", "FailedGetScale", 'deployments.apps "web" not found')]


def test_a_target_of_an_unknown_kind(stage: AutoscalerStage) -> None:
    stage.autoscaler(group="example.com/v1", kind="Nothing")
    stage.next_period()
    assert stage.recorded.events == [
        ("Warning", "FailedGetScale", 'no matches for kind "Nothing" in group "example.com"')
    ]


def test_a_target_that_cannot_be_scaled(stage: AutoscalerStage) -> None:
    stage.autoscaler(kind="DaemonSet")
    stage.next_period()
    assert stage.recorded.events == [("Warning", "FailedGetScale", "the server could not find the requested resource")]


def test_a_target_of_no_replicas_is_not_scaled(stage: AutoscalerStage) -> None:
    stage.web(0)
    stage.autoscaler()
    stage.next_period()
    message = "scaling is disabled since the replica count of the target is zero"
    assert stage.condition("ScalingActive") == ("False", "ScalingDisabled", message)
    assert stage.replicas() == 0


@pytest.mark.parametrize(
    ("replicas", "bounds", "expected", "why"),
    [
        (3, {"minReplicas": 5}, 5, "Current number of replicas below Spec.MinReplicas"),
        (3, {"maxReplicas": 2}, 2, "Current number of replicas above Spec.MaxReplicas"),
    ],
)
def test_bounds_need_no_metrics(
    stage: AutoscalerStage, replicas: int, bounds: dict[str, Any], expected: int, why: str
) -> None:
    stage.web(replicas)
    stage.autoscaler(**bounds)
    stage.next_period()
    assert stage.replicas() == expected
    assert stage.recorded.events == [("Normal", "SuccessfulRescale", f"New size: {expected}; reason: {why}")]


def test_two_autoscalers_of_the_same_pods_disable_each_other(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [1000, 1000]
    stage.autoscaler("one", maxReplicas=2)
    stage.autoscaler("two", maxReplicas=2)
    stage.next_period()
    stage.next_period()
    message = "pods by selector app=web are controlled by multiple HPAs: [{one a} {two a}]"
    assert stage.condition("ScalingActive", "one") == ("False", "AmbiguousSelector", message)
    assert stage.condition("ScalingActive", "two") == ("False", "AmbiguousSelector", message)
    stage.delete(f"{COLLECTION}/two")
    stage.next_period()
    assert stage.condition("ScalingActive", "one")[1] == "ValidMetricFound"


def test_an_unchanged_status_is_not_written(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.autoscaler()
    for _ in range(3):
        stage.next_period()
    written = len(stage.written())
    for _ in range(20):
        stage.next_period()
    assert len(stage.written()) == written


def test_each_direction_can_have_a_tolerance(stage: AutoscalerStage) -> None:
    stage.web(2)
    stage.measures.cpu = [520, 520]
    stage.autoscaler(behavior={"scaleUp": {"tolerance": "0.01"}})
    stage.next_period()
    assert stage.replicas() == 3  # 4 % above the target, within the default tolerance of 10 %


def _pod_metrics(name: str, *usage: dict[str, str], **labels: str) -> dict[str, Any]:
    containers = [{"name": f"c{place}", "usage": each} for place, each in enumerate(usage)]
    metadata = {"name": name, "namespace": "a", "labels": labels}
    return {"metadata": metadata, "timestamp": "2026-01-01T00:00:00Z", "window": "1m30s", "containers": containers}


def test_pod_metrics_that_are_served_as_objects_are_read() -> None:
    web = LabelSelector.parse("app=web")
    objects = [
        _pod_metrics("p0", {"cpu": "250m"}, {"cpu": "0.5"}, app="web"),
        _pod_metrics("p1", {"cpu": "1"}, {"memory": "1Gi"}, app="web"),
        _pod_metrics("p2", {"cpu": "1"}, app="other"),
    ]
    served = Served(lambda namespace: objects)
    at, window = 1_767_225_600_000_000, 90_000_000
    assert served.resource("cpu", "a", web, "") == {"p0": PodMetric(750, at, window)}
    assert served.resource("cpu", "a", web, "c0") == {
        "p0": PodMetric(250, at, window),
        "p1": PodMetric(1000, at, window),
    }
    with pytest.raises(MetricsError, match="container c2 not present in metrics for pod a/p0"):
        served.resource("cpu", "a", web, "c2")
    with pytest.raises(MetricsError, match="no metrics returned from resource metrics API"):
        Served(lambda namespace: ()).resource("cpu", "a", web, "")
    with pytest.raises(MetricsError, match=r"could not find the requested resource \(get pods.metrics.k8s.io\)"):
        Served(lambda namespace: None).resource("cpu", "a", web, "")

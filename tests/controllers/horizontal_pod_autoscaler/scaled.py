"""A cluster with a workload, its pods, and the HorizontalPodAutoscaler controller, with metrics that a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.horizontal_pod_autoscaler import Options
from ctrlmgr.controllers.horizontal_pod_autoscaler.controller import build
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import NoMetricsClient, PodMetric, PodMetrics
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.manager import Controller
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.horizontal_pod_autoscaler.measured import pod_body
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

AUTOSCALERS = Resource("autoscaling", "horizontalpodautoscalers")
DEPLOYMENTS = Resource("apps", "deployments")
COLLECTION = "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers"
PERIOD = 15.0
CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]


class FakeMetrics(NoMetricsClient):
    """Metrics that a test sets; requests for other metrics fail."""

    def __init__(self) -> None:
        self.cpu: list[int] | None = None
        self.rps: list[int] | None = None
        self.length: int | None = None
        self.queue: list[int] | None = None
        self.at = 0

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        if self.cpu is None:
            return super().resource(resource, namespace, selector, container)
        return self._of_pods(self.cpu)

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        return super().pods(name, namespace, selector, metric) if self.rps is None else self._of_pods(self.rps)

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        return super().object(name, namespace, described, metric) if self.length is None else self.length

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        return super().external(name, namespace, metric) if self.queue is None else self.queue

    def _of_pods(self, values: list[int]) -> PodMetrics:
        return {f"p{place}": PodMetric(value, self.at) for place, value in enumerate(values)}


class AutoscalerStage(WorkedStage):
    """A cluster with a Deployment `web`, its pods and the HorizontalPodAutoscaler controller."""

    def __init__(self) -> None:
        self.recorded = RecordedEvents()
        self.measures = FakeMetrics()
        super().__init__(self._controller)
        self.namespace("a")

    def _controller(self, stage: WorkedStage) -> Controller:
        return build(StageContext(stage, recorded=self.recorded), Options(), metrics=lambda client: self.measures)

    def web(self, replicas: int, name: str = "web") -> None:
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
        self.create("/apis/apps/v1/namespaces/a/deployments", body)
        self.patch(f"/apis/apps/v1/namespaces/a/deployments/{name}/status", {"status": {"replicas": replicas}})
        for place in range(replicas):
            body = pod_body(f"p{place}")
            status = {"status": body.pop("status")}
            self.create("/api/v1/namespaces/a/pods", body)
            self.patch(f"/api/v1/namespaces/a/pods/p{place}/status", status)

    def autoscaler(self, name: str = "hpa", kind: str = "Deployment", target: str = "web", **spec: Any) -> None:
        reference = {"apiVersion": spec.pop("group", "apps/v1"), "kind": kind, "name": target}
        body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 10, "metrics": CPU, **spec}
        self.create(
            COLLECTION,
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": body,
            },
        )
        self.work()

    def next_period(self) -> None:
        self.measures.at = self.clock.now()
        self.pass_by(PERIOD)

    def replicas(self) -> int:
        found = self.stored(DEPLOYMENTS, "web", "a")
        assert found is not None
        return int(found.to_dict()["spec"]["replicas"])

    def status(self, name: str = "hpa") -> dict[str, Any]:
        found = self.stored(AUTOSCALERS, name, "a")
        assert found is not None
        return dict(found.to_dict().get("status") or {})

    def condition(self, type_: str, name: str = "hpa") -> tuple[str, str, str]:
        found = next(each for each in self.status(name)["conditions"] if each["type"] == type_)
        return found["status"], found["reason"], found["message"]

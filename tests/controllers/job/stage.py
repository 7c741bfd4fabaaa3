"""A cluster with the Job controller; the test acts as the scheduler and the kubelets."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.job import Options
from ctrlmgr.controllers.job.controller import JOBS, build
from ctrlmgr.controllers.job.indexes import INDEX
from ctrlmgr.controllers.job.view import TRACKING
from ctrlmgr.manager import Controller
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

COLLECTION = "/apis/batch/v1/namespaces/a/jobs"
POD_COLLECTION = "/api/v1/namespaces/a/pods"


class JobStage(WorkedStage):
    """`pods` are the pods of the cluster; a test selects a pod by its object or by its completion index."""

    def __init__(self) -> None:
        self.recorded = RecordedEvents()
        super().__init__(self._controller)
        self.namespace("a")

    def _controller(self, stage: WorkedStage) -> Controller:
        return build(StageContext(stage, recorded=self.recorded), Options())

    def job(self, name: str = "job", *, restarts: str = "Never", **spec: Any) -> None:
        """Create a Job, and reconcile it."""
        template = {"spec": {"restartPolicy": restarts, "containers": [{"name": "c", "image": "i"}]}}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
        self.create(COLLECTION, {**body, "spec": {"template": template, **spec}})
        self.settle()

    def settle(self) -> None:
        """Advance the clock until the controller has reconciled batched changes and their effects."""
        for _ in range(3):
            self.pass_by(1)

    def status(self, name: str = "job") -> dict[str, Any]:
        found = self.stored(JOBS, name, "a")
        assert found is not None
        return dict(found.to_dict().get("status") or {})

    def counts(self, name: str = "job") -> tuple[int, int, int]:
        """Return the numbers of active, succeeded and failed pods of a Job."""
        status = self.status(name)
        return status.get("active", 0), status.get("succeeded", 0), status.get("failed", 0)

    def conditions(self, name: str = "job") -> list[tuple[str, str, str]]:
        return [(each["type"], each["status"], each["reason"]) for each in self.status(name).get("conditions") or ()]

    def pods(self, phase: str | None = None) -> list[Object]:
        found = self.log.snapshot(PODS, namespace="a").objects
        return [pod for pod in found if phase in (None, self.phase(pod))]

    def running(self) -> list[Object]:
        """Return the pods that are neither terminated nor terminating, sorted by completion index if they have one."""
        found = [pod for pod in self.pods() if self.phase(pod) in ("Pending", "Running") and not pod.is_terminating]
        return sorted(found, key=lambda pod: (int(pod.annotations.get(INDEX, "0")), pod.name))

    def tracked(self) -> list[str]:
        return [pod.name for pod in self.pods() if TRACKING in (pod.metadata.finalizers or ())]

    @staticmethod
    def phase(pod: Object) -> str:
        return str((pod.to_dict().get("status") or {}).get("phase"))

    def index(self, number: int) -> Object:
        """Return the running pod with a completion index."""
        return next(pod for pod in self.running() if pod.annotations[INDEX] == str(number))

    def run(self, pod: Object | None = None) -> None:
        """Set one pod, or all pending pods, to running and ready."""
        for each in [pod] if pod is not None else self.pods("Pending"):
            self._report(each, "Running", {"running": {}}, "True")

    def end(self, pod: Object, code: int = 0, *, ago: int = 3600, **status: Any) -> None:
        """Terminate a pod with an exit code; the pod ended `ago` seconds ago."""
        at = format_time_seconds(self.clock.now() - ago * 1_000_000)
        phase = "Failed" if code else "Succeeded"
        self._report(pod, phase, {"terminated": {"exitCode": code, "finishedAt": at}}, "False", **status)

    def restart(self, pod: Object, count: int) -> None:
        """Set the restart count of a pod's container."""
        self._report(pod, "Running", {"running": {}}, "True", restarts=count)

    def _report(
        self, pod: Object, phase: str, state: dict[str, Any], ready: str, restarts: int = 0, **status: Any
    ) -> None:
        container = {"name": "c", "image": "i", "imageID": "", "ready": ready == "True", "restartCount": restarts}
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": format_time_seconds(self.clock.now())}
        fields = {
            "phase": phase,
            "containerStatuses": [{**container, "state": state}],
            "conditions": [condition, *status.pop("conditions", ())],
            **status,
        }
        self.patch(f"{POD_COLLECTION}/{pod.name}/status", {"status": fields})

    def bind(self, pod: Object) -> None:
        """Bind a pod to a node, so that a deletion of the pod waits for a kubelet."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        }
        self.create(f"{POD_COLLECTION}/{pod.name}/binding", body)

    def remove(self, pod: Object, **options: Any) -> None:
        self.delete(f"{POD_COLLECTION}/{pod.name}", **options)

    def take_away(self) -> None:
        """Remove terminating pods, as the kubelet does."""
        for pod in self.pods():
            if pod.is_terminating:
                self.remove(pod, gracePeriodSeconds=0)
        self.settle()

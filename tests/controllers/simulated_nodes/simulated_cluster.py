"""Two simulated nodes and the controller that simulates them, in one thread."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.simulated_nodes import Options
from ctrlmgr.controllers.simulated_nodes.controller import build
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

PLACE = "/api/v1/namespaces/a/pods"


class SimulatedCluster:
    """A cluster with two simulated nodes, each with a pod CIDR."""

    def __init__(self, **options: Any) -> None:
        self.options = Options(**{"nodes": "2", **options})
        self.stage = WorkedStage(self._build)
        for name in ("a", "kube-node-lease"):
            self.stage.namespace(name)
        self.stage.pass_by(1)
        for number in (1, 2):
            ranges = [f"10.0.{number}.0/24"]
            self.stage.patch(f"/api/v1/nodes/node-{number}", {"spec": {"podCIDR": ranges[0], "podCIDRs": ranges}})
        self.stage.pass_by(15)

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, self.options)

    def pod(self, name: str, script: str = "", node: str = "node-1", **more: Any) -> None:
        command = {"command": ["sh", "-c", script]} if script else {}
        annotations = more.pop("annotations", {})
        container = {"name": "c", "image": "example.com/app:1", **command, **more.pop("container", {})}
        spec = {"nodeName": node, "containers": [container], **more}
        self.stage.create(PLACE, {"metadata": {"name": name, "annotations": annotations}, "spec": spec})
        self.stage.work()

    def status(self, name: str) -> dict[str, Any]:
        pod = self.stage.stored(PODS, name, "a")
        assert pod is not None
        status: dict[str, Any] = pod.to_dict()["status"]
        return status

    def actors(self) -> set[str]:
        return {each.actor for each in self.stage.log.events_after(0, limit=100_000)}

"""A cluster that runs in one process with virtual time.

The cluster's log contains the reconcile and the causes of each write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.client import CONTROLLER_MANAGER, ControllerRunner, EngineClient, InformerState
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.node_ipam import Options as IpamOptions
from ctrlmgr.controllers.node_lifecycle import Options as LifecycleOptions
from ctrlmgr.controllers.scheduler import Options as SchedulerOptions
from ctrlmgr.controllers.simulated_nodes import Options as NodesOptions
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage, work_all

NAMES = (
    *("endpoints-controller", "endpointslice-controller", "deployment-controller", "replicaset-controller"),
    *("statefulset-controller", "daemonset-controller", "job-controller", "disruption-controller"),
    *("node-ipam-controller", "node-lifecycle-controller", "taint-eviction-controller", "kube-scheduler"),
    *("simulated-nodes-controller", "garbage-collector-controller", "namespace-controller"),
    *("serviceaccount-controller", "root-ca-certificate-publisher-controller"),
)
OPTIONS: dict[str, Any] = {
    "node-ipam-controller": IpamOptions(allocate_node_cidrs=True),
    "node-lifecycle-controller": LifecycleOptions(),
    "kube-scheduler": SchedulerOptions(simulated_seed=7),
    "simulated-nodes-controller": NodesOptions(nodes="4"),
}


class ScriptedCluster(WorkedStage):
    """A cluster whose clients follow a `ClusterScript`."""

    def __init__(self) -> None:
        super().__init__(lambda stage: self.controllers[0])

    def start(self) -> None:
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        state = InformerState(self.informers, self.log)
        admission = default_chain(self.kinds, self.clock)
        engine = WriteEngine(self.kinds, state, clock=self.clock, random=self.random, admission=admission)
        runner = ControllerRunner(self.log, state, self._reach)
        known = registry.by_name()
        self.controllers: list[Controller] = []
        for name in NAMES:
            descriptor = known[name]
            requester = Requester(descriptor.user)
            self.engine_client = EngineClient(engine, runner, requester, manager=CONTROLLER_MANAGER)
            options = OPTIONS.get(name, descriptor.options())
            self.controllers.append(descriptor.build(StageContext(self, root_ca="ca"), options))
        self.informers.sync()
        for each in self.controllers:
            each.start()

    def _reach(self, revision: int, patience: float) -> bool:
        self.hear()
        return self.informers.revision >= revision

    def work(self) -> None:
        work_all(self, self.controllers)


class ClusterScript:
    """A client that performs a script; `rest` advances virtual time in steps of half a second."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._cluster = cluster

    def create(self, path: str, body: dict[str, Any]) -> object:
        return self._cluster.create(path, body)

    def patch(self, path: str, body: dict[str, Any]) -> object:
        return self._cluster.patch(path, body)

    def delete(self, path: str) -> object:
        self._cluster.delete(path)
        return None

    def names(self, path: str) -> Sequence[str]:
        return [each["metadata"]["name"] for each in self._cluster.send("GET", path).body["items"]]

    def rest(self, seconds: float = 3.0) -> None:
        for _ in range(round(seconds * 2)):
            self._cluster.pass_by(0.5)

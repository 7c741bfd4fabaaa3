"""Simulates users, kubelets and time for the controllers of workloads; one seed determines all random numbers.

Users write and faults occur only while the cluster is idle, because controllers cannot prevent changes between their
reads and their writes. The events of kubelets and the order in which controllers run are random at each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from tests.controllers.workloads.makers import daemon_sets, deployments, jobs, replica_sets, stateful_sets
from tests.controllers.workloads.stage import MERGE, WorkloadStage, template
from tests.robustness.workloads.judging import Judge

DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS = "apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets"
JOBS = "batch/v1/jobs"
NODES = ("node-0", "node-1", "node-2")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_AT_REST = (1, 20, 700)
"""Seconds after which the cluster is idle, because batched, delayed and scheduled work is done by then."""


class WorkloadCluster:
    """The attribute `breaches` contains the violations that were found so far."""

    def __init__(self, seed: int, *, killed_at_every_write: bool = True) -> None:
        """Start with a Deployment, a StatefulSet and a DaemonSet; run until all are idle."""
        self.random = Random(seed)
        makers = (deployments, replica_sets, stateful_sets, daemon_sets, jobs)
        self.stage = WorkloadStage(*makers, killed_at_every_write=killed_at_every_write)
        self.judge = Judge()
        self.breaches: list[str] = []
        self._read = 0
        self._jobs = 0
        for node in NODES:
            self.add_node(node)
        for resource, kind in ((DEPLOYMENTS, "Deployment"), (STATEFUL_SETS, "StatefulSet"), (DAEMON_SETS, "DaemonSet")):
            self.stage.create(resource, self._workload(kind))
        self.play()

    def _workload(self, kind: str) -> dict[str, Any]:
        labels = {"app": kind.lower()}
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template(labels)}
        if kind != "DaemonSet":
            spec["replicas"] = 3
        if kind == "StatefulSet":
            spec["serviceName"] = "db"
        return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": kind.lower()}, "spec": spec}

    # Events that users cause.

    def add_node(self, name: str) -> None:
        body = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}}
        assert self.stage.send("POST", "/api/v1/nodes", body).code == 201
        taints = {"spec": {"taints": None}}
        assert self.stage.send("PATCH", f"/api/v1/nodes/{name}", taints, media_type=MERGE).code == 200

    def roll_out(self, resource: str, tag: int, rolling: Mapping[str, Any] | None = None) -> None:
        """Change the image of a workload, and the surge if it is a Deployment or DaemonSet."""
        name = resource.rpartition("/")[2].removesuffix("s")
        spec: dict[str, Any] = {"template": template({"app": name}, f"registry.example/app:{tag}")}
        if rolling is not None:
            key = "strategy" if resource == DEPLOYMENTS else "updateStrategy"
            spec[key] = {"type": "RollingUpdate", "rollingUpdate": dict(rolling)}
        self.stage.patch(resource, name, {"spec": spec})

    def scale(self, resource: str, replicas: int) -> None:
        name = resource.rpartition("/")[2].removesuffix("s")
        self.stage.patch(resource, name, {"spec": {"replicas": replicas}})

    def start_job(self, **spec: Any) -> None:
        self._jobs += 1
        labels = {"run": f"job-{self._jobs}"}
        wanted = {"template": template(labels, restartPolicy="Never"), **spec}
        self.stage.create(
            JOBS, {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": f"job-{self._jobs}"}, "spec": wanted}
        )

    # Faults of pods.

    def lose_node(self, node: str) -> None:
        """Delete the pods of a node at once, as for a node that is out of service; the node returns without pods."""
        for pod in self.stage.pods(going=None):
            if pod["spec"].get("nodeName") == node:
                self.stage.delete("pods", pod["metadata"]["name"], gracePeriodSeconds=0)

    def fail_pods(self, count: int) -> None:
        running = [pod for pod in self.stage.pods() if pod["status"]["phase"] == "Running"]
        for pod in self.random.sample(running, min(count, len(running))):
            self.stage.report(pod, "Failed")

    # Events that occur by themselves.

    def play(self, steps: int | None = None) -> None:
        """Run controllers and kubelets in turn, either for this number of steps or until the cluster is idle; check the
        events.
        """
        if steps is not None:
            for _ in range(steps):
                self._step()
            return
        self._until_rest()
        events = self.stage.log.events_after(self._read, limit=100_000)
        self.breaches += self.judge.read(events)
        self._read = self.stage.log.head().revision
        self.breaches += self.judge.at_rest()

    def _until_rest(self) -> None:
        for _ in range(20_000):
            if self._step():
                continue
            before = self.stage.log.head().revision
            for seconds in _AT_REST:
                self.stage.clock.step(seconds)
                self._exhaust()
                if self.stage.log.head().revision != before:
                    break
            else:
                return
        self.breaches.append("nothing comes to rest")

    def _exhaust(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        """Run one step of a controller or a kubelet; return whether there was work."""
        turns = [self.stage.one_step, self._kubelet]
        self.random.shuffle(turns)
        return any(turn() for turn in turns)

    def _kubelet(self) -> bool:
        pods = self.stage.pods(going=None)
        self.random.shuffle(pods)
        return any(self._see_to(pod) for pod in pods)

    def _see_to(self, pod: dict[str, Any]) -> bool:
        name, phase = pod["metadata"]["name"], pod["status"]["phase"]
        is_job = "run" in pod["metadata"]["labels"]
        if "deletionTimestamp" in pod["metadata"]:
            if is_job and phase == "Running":
                self.stage.report(pod, "Failed")
                return True
            if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["metadata"].get("finalizers"):
                return False  # the pod waits for its controller
            self.stage.delete("pods", name, gracePeriodSeconds=0)
            return True
        if phase == "Pending":
            self.stage.report(pod, node=_asked_for(pod) or self.random.choice(NODES))
            return True
        if is_job and phase == "Running":
            self.stage.report(pod, self.random.choice(("Succeeded", "Succeeded", "Failed")))
            return True
        return False


def _asked_for(pod: Mapping[str, Any]) -> str:
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]) if required else ""

"""Tests that two runs of one script with one seed in virtual time write equal logs, and that a replay produces the same
writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctrlmgr.api.resource import NODES, PODS, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.node_ipam import Options as IpamOptions
from ctrlmgr.controllers.scheduler import Options as SchedulerOptions
from ctrlmgr.controllers.simulated_nodes import Options as NodesOptions
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.format import RecordingWriter
from ctrlmgr.testing.replays import Replayer
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage, work_all

NAMES = (
    "deployment-controller",
    "replicaset-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "kube-scheduler",
    "simulated-nodes-controller",
)
OPTIONS: dict[str, Any] = {
    "node-ipam-controller": IpamOptions(allocate_node_cidrs=True),
    "kube-scheduler": SchedulerOptions(simulated_seed=7),
    "simulated-nodes-controller": NodesOptions(nodes="3"),
}


class Cluster(WorkedStage):
    """All parts of a simulated cluster; the parts run in a fixed order."""

    def __init__(self) -> None:
        super().__init__(lambda stage: self._nothing)

    @property
    def _nothing(self) -> Controller:
        raise NotImplementedError

    def start(self) -> None:
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        known = registry.by_name()
        self.controllers = []
        for name in NAMES:
            descriptor = known[name]
            self.engine_client = EngineClient(self.engine, self._run, Requester(descriptor.user))
            options = OPTIONS.get(name, descriptor.options())
            self.controllers.append(descriptor.build(StageContext(self), options))
        self.informers.sync()
        for each in self.controllers:
            each.start()

    def work(self) -> None:
        work_all(self, self.controllers)


def script(cluster: Cluster) -> None:
    """Run a rollout of a Deployment while one of the nodes is lost, and run a pod that crashes."""

    def pass_by(seconds: int) -> None:
        for _ in range(seconds * 2):
            cluster.pass_by(0.5)

    for name in ("a", "kube-node-lease"):
        cluster.namespace(name)
    pass_by(8)
    labels = {"app": "web"}
    container = {"name": "c", "image": "nginx"}
    spec = {
        "replicas": 4,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    cluster.create("/apis/apps/v1/namespaces/a/deployments", {"metadata": {"name": "web"}, "spec": spec})
    crash = {"containers": [{**container, "command": ["sh", "-c", "sleep 1; exit 2"]}]}
    cluster.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "crash"}, "spec": crash})
    pass_by(5)
    again = {"spec": {"template": {"metadata": {"labels": labels, "annotations": {"rev": "2"}}}}}
    cluster.patch("/apis/apps/v1/namespaces/a/deployments/web", again)
    pass_by(5)
    cluster.patch("/api/v1/nodes/node-2", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "lost"}}})
    pass_by(65)


def written(make: Callable[[], Cluster]) -> list[tuple[int, str, bytes]]:
    cluster = make()
    script(cluster)
    return [(each.revision, each.actor, each.object.body) for each in cluster.log.events_after(0, limit=100_000)]


def test_two_runs_have_equal_logs() -> None:
    one, two = written(Cluster), written(Cluster)
    assert len(one) > 100
    assert {actor for _, actor, _ in one} >= {"system:node:node-1", "system:kube-scheduler"}
    assert any(b"unreachable" in body for _, _, body in one)
    assert one == two


def left(log: EventLog, resource: Resource) -> dict[str, Any]:
    """Return the nodes, statuses and owners of all objects, by name, without uids and revisions."""
    found = {}
    for each in log.snapshot(resource).objects:
        fields = each.to_dict()
        found[each.name] = [fields["spec"], fields["status"], fields["metadata"].get("labels")]
    return found


def test_a_replay_of_the_log_reaches_the_same_state(tmp_path: Path) -> None:
    cluster = Cluster()
    script(cluster)
    with RecordingWriter(tmp_path / "cluster.jsonl") as writer:
        for change in history(cluster.log, lambda obj: is_api_object(obj.resource)):
            writer.change(change.type, change.object, change.recorded_at, change.made)
    with Replayer(tmp_path) as replay:
        first = replay("cluster.jsonl")
        assert first.divergences == ()
        assert first.writes > 20
        writers = {each.actor.rpartition(":")[2] for each in replay.log.scan() if each.reconcile}
        assert writers >= {"deployment-controller", "replicaset-controller"}
        for resource in (NODES, PODS):
            assert left(replay.log, resource) == left(cluster.log, resource)
        again = replay("cluster.jsonl", database=f"sqlite:///{tmp_path / 'again.db'}")
        assert (first.revision, first.hash) == (again.revision, again.hash)

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.api.resource import LEASES, NODES, PODS
from ctrlmgr.controllers.simulated_load_balancer import Options as BalancerOptions
from ctrlmgr.controllers.simulated_load_balancer.controller import build as build_balancer
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.controllers.simulated_nodes.runtime import ContainerLogReader, SimulatedRuntime
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.errors import BadRequest, SettingsError, UnknownError
from tests.controllers.simulated_nodes.simulated_cluster import PLACE, SimulatedCluster
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import MERGE, WorkedStage


def test_nodes_are_created_and_renew_their_leases() -> None:
    cluster = SimulatedCluster()
    nodes = [each.to_dict() for each in cluster.stage.log.snapshot(NODES).objects]
    assert [each["metadata"]["name"] for each in nodes] == ["node-1", "node-2"]
    found = [each["status"]["addresses"][0]["address"] for each in nodes]
    assert found == ["172.18.0.2", "172.18.0.3"]
    conditions = {each["type"]: each["status"] for each in nodes[0]["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    before = [each.revision for each in cluster.stage.log.snapshot(LEASES).objects]
    cluster.stage.pass_by(11)
    after = [each.revision for each in cluster.stage.log.snapshot(LEASES).objects]
    assert len(before) == 2
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert {"system:node:node-1", "system:node:node-2"} <= cluster.actors()


def renewals(cluster: SimulatedCluster, after: int) -> list[Any]:
    return [each for each in cluster.stage.log.events_after(after, limit=10_000) if each.resource == LEASES]


def test_due_leases_are_renewed_together_each_by_its_node() -> None:
    cluster = SimulatedCluster(nodes="5")
    cluster.stage.pass_by(20)
    head = cluster.stage.log.head().revision
    cluster.stage.pass_by(10)
    found = renewals(cluster, head)
    assert sorted(each.actor for each in found) == [f"system:node:node-{number}" for number in range(1, 6)]
    assert len({each.recorded_at for each in found}) == 1


def test_a_deleted_lease_is_recreated() -> None:
    cluster = SimulatedCluster()
    cluster.stage.delete("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1")
    for _ in range(2):
        cluster.stage.pass_by(11)
    assert cluster.stage.names(LEASES) == ["node-1", "node-2"]


def test_a_deleted_node_is_not_renewed() -> None:
    cluster = SimulatedCluster()
    cluster.stage.delete("/api/v1/nodes/node-1")
    cluster.stage.pass_by(1)
    head = cluster.stage.log.head().revision
    cluster.stage.pass_by(30)
    assert {each.actor for each in renewals(cluster, head)} == {"system:node:node-2"}


def test_changed_conditions_of_a_node_are_restored() -> None:
    cluster = SimulatedCluster()
    said = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
    cluster.stage.send("PATCH", "/api/v1/nodes/node-1/status", {"status": said}, media_type=MERGE)
    cluster.stage.work()
    cluster.stage.pass_by(11)
    node = cluster.stage.stored(NODES, "node-1")
    assert node is not None
    recorded = {each["type"]: each["status"] for each in node.to_dict()["status"]["conditions"]}
    assert recorded == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def test_a_status_is_reported_every_five_minutes() -> None:
    cluster = SimulatedCluster()

    def heartbeat() -> str:
        node = cluster.stage.stored(NODES, "node-1")
        assert node is not None
        return str(node.to_dict()["status"]["conditions"][-1]["lastHeartbeatTime"])

    first = heartbeat()
    cluster.stage.pass_by(200)
    assert heartbeat() == first
    cluster.stage.pass_by(110)
    assert heartbeat() > first


def test_a_pod_runs_with_an_address_of_its_nodes_range() -> None:
    cluster = SimulatedCluster()
    for name in ("p", "q"):
        cluster.pod(name)
    cluster.pod("elsewhere", node="node-2")
    cluster.pod("host", hostNetwork=True)
    cluster.stage.pass_by(2)
    assert [cluster.status(name)["phase"] for name in ("p", "q", "elsewhere", "host")] == ["Running"] * 4
    found = [cluster.status(name)["podIP"] for name in ("p", "q", "elsewhere", "host")]
    assert found == ["10.0.1.2", "10.0.1.3", "10.0.2.2", "172.18.0.2"]
    assert cluster.context.recorded.reasons()[:3] == ["Pulled", "Created", "Started"]


def test_a_pod_terminates_after_its_configured_duration() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "sleep 5; exit 3", restartPolicy="Never")
    cluster.stage.pass_by(3)
    assert cluster.status("p")["phase"] == "Running"
    cluster.stage.pass_by(4)
    assert cluster.status("p")["phase"] == "Failed"


def test_time_can_run_faster() -> None:
    cluster = SimulatedCluster(simulated_speed=10.0)
    cluster.pod("p", "sleep 60; exit 0", restartPolicy="Never")
    cluster.stage.pass_by(7)
    assert cluster.status("p")["phase"] == "Succeeded"


def test_a_deleted_pod_is_removed_after_its_containers_stop() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p")
    cluster.pod("slow", annotations={"simulate.ctrlmgr.io/c": "stop after 5s"})
    cluster.stage.pass_by(2)
    for name in ("p", "slow"):
        cluster.stage.delete(f"{PLACE}/{name}")
    cluster.stage.pass_by(0.1)
    assert cluster.stage.names(PODS) == ["slow"]
    cluster.stage.pass_by(6)
    assert cluster.stage.names(PODS) == []


def test_only_labelled_nodes_are_simulated() -> None:
    cluster = SimulatedCluster()
    cluster.stage.create("/api/v1/nodes", {"metadata": {"name": "real"}})
    cluster.pod("p", node="real")
    cluster.stage.pass_by(30)
    assert cluster.status("p")["phase"] == "Pending"
    node = cluster.stage.stored(NODES, "real")
    assert node is not None
    assert "conditions" not in node.to_dict()["status"]


def test_a_lost_node_is_silent_until_its_recovery() -> None:
    cluster = SimulatedCluster()
    recorded = {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "lost"}}}
    cluster.stage.patch("/api/v1/nodes/node-1", recorded)
    cluster.stage.pass_by(1)
    head = cluster.stage.log.snapshot(LEASES).objects[0].revision
    cluster.pod("p")
    cluster.stage.pass_by(30)
    assert cluster.stage.log.snapshot(LEASES).objects[0].revision == head
    assert cluster.status("p")["phase"] == "Pending"
    cluster.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": None}}})
    cluster.stage.work()
    cluster.stage.pass_by(2)
    assert cluster.status("p")["phase"] == "Running"


def test_a_slow_node_starts_containers_later() -> None:
    cluster = SimulatedCluster()
    cluster.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "slow 5s"}}})
    cluster.pod("p")
    cluster.pod("q", node="node-2")
    cluster.stage.pass_by(3)
    assert [cluster.status(name)["phase"] for name in ("p", "q")] == ["Pending", "Running"]
    cluster.stage.pass_by(3)
    before = cluster.status("p")
    assert before["phase"] == "Running"
    cluster.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": None}}})
    cluster.stage.pass_by(3)
    assert cluster.status("p") == before


@pytest.mark.parametrize(
    ("first", "second", "reason", "message"),
    [
        (
            {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}},
            {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}},
            "NodePorts",
            "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
        (
            {"container": {"resources": {"requests": {"cpu": "6"}}}},
            {"container": {"resources": {"requests": {"cpu": "4"}}}},
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000",
        ),
    ],
)
def test_a_node_rejects_pods_it_cannot_run(
    first: dict[str, Any], second: dict[str, Any], reason: str, message: str
) -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", **first)
    cluster.stage.pass_by(1)
    cluster.pod("q", **second)
    cluster.stage.pass_by(1)
    status = cluster.status("q")
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", reason, message)


def test_an_invalid_annotation_is_reported() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "frobnicate", annotations={"simulate.ctrlmgr.io/pod": "dance"})
    cluster.stage.pass_by(2)
    assert cluster.status("p")["phase"] == "Running"
    recorded = {reason: message for _, reason, message in cluster.context.recorded.events}
    assert "'dance' is not a valid phrase" in recorded["SimulatedBehaviour"]
    assert recorded["SimulatedCommand"].startswith("the simulation does not know the command 'frobnicate'")


def test_an_invalid_annotation_of_a_node_is_reported_once() -> None:
    cluster = SimulatedCluster()
    cluster.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "sideways"}}})
    cluster.stage.work()
    cluster.stage.pass_by(400)
    recorded = [message for _, reason, message in cluster.context.recorded.events if reason == "SimulatedBehaviour"]
    assert len(recorded) == 1
    assert "'sideways' is not a valid phrase" in recorded[0]


def test_a_restarted_simulation_continues() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "sleep 5; exit 0", restartPolicy="Never")
    cluster.stage.pass_by(2)
    cluster.stage.start()
    cluster.stage.work()
    cluster.stage.pass_by(5)
    assert cluster.status("p")["phase"] == "Succeeded"


def reading(cluster: SimulatedCluster, **options: Any) -> ContainerLogReader:
    runtime = SimulatedRuntime(Rules(), 1.0, clock=cluster.stage.clock)
    pod, node = cluster.stage.stored(PODS, "p", "a"), cluster.stage.stored(NODES, "node-1")
    assert pod is not None
    assert runtime.logs(pod, None, LogOptions(**options)) is None
    found = runtime.logs(pod, node, LogOptions(**options))
    assert found is not None
    return found


def more(cluster: SimulatedCluster, read: ContainerLogReader) -> tuple[bytes, float | None]:
    piece = read.more(cluster.stage.stored(PODS, "p", "a"), cluster.stage.stored(NODES, "node-1"))
    return piece.data, None if piece.wait is None else round(piece.wait, 1)


def test_logs() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "echo hello; sleep 2; echo world; sleep 100")
    cluster.stage.pass_by(2)
    assert more(cluster, reading(cluster)) == (b"hello\n", None)
    assert more(cluster, reading(cluster, limit_bytes=3)) == (b"hel", None)
    cluster.stage.pass_by(2)
    assert more(cluster, reading(cluster, since_seconds=2)) == (b"world\n", None)
    stamped, _ = more(cluster, reading(cluster, timestamps=True, tail_lines=1))
    assert re.fullmatch(rb"[-0-9]+T[:0-9]+\.400000000Z world\n", stamped)
    with pytest.raises(BadRequest, match="container x is not valid for pod p"):
        reading(cluster, container="x")


def test_a_pod_before_its_start_has_no_log() -> None:
    cluster = SimulatedCluster()
    cluster.stage.clock.step(0.9)  # well into a second
    container = {"name": "c", "image": "example.com/app:1", "command": ["sh", "-c", "echo hello; sleep 100"]}
    cluster.stage.create(PLACE, {"metadata": {"name": "p"}, "spec": {"nodeName": "node-1", "containers": [container]}})
    with pytest.raises(BadRequest, match='container "c" in pod "p" is waiting to start: ContainerCreating'):
        reading(cluster)
    cluster.stage.work()
    cluster.stage.pass_by(1)
    assert more(cluster, reading(cluster)) == (b"hello\n", None)


def test_following_a_log_ends_with_its_run() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "echo one; sleep 3; echo two; sleep 3; exit 1")
    cluster.stage.pass_by(1)
    read, short = reading(cluster, follow=True), reading(cluster, follow=True, limit_bytes=5)
    assert more(cluster, read) == (b"one\n", 2.4)
    assert more(cluster, short) == (b"one\n", 2.4)
    assert more(cluster, read) == (b"", 2.4)
    cluster.stage.pass_by(3)
    assert more(cluster, read) == (b"two\n", 2.4)
    assert more(cluster, short) == (b"t", None)
    cluster.stage.pass_by(3)
    assert more(cluster, read) == (b"", None)


def test_following_a_log_ends_with_its_pod() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "echo one; sleep 3; echo two; sleep 1000", terminationGracePeriodSeconds=0)
    cluster.stage.pass_by(1)
    read, recorded = reading(cluster, follow=True), reading(cluster, follow=True)
    assert more(cluster, read) == (b"one\n", 2.4)
    cluster.stage.patch(f"{PLACE}/p", {"metadata": {"annotations": {"simulate.ctrlmgr.io/pod": "exit 3 after 5s"}}})
    cluster.stage.work()
    cluster.stage.pass_by(2)
    assert more(cluster, recorded)[1] == pytest.approx(3.0)
    cluster.stage.pass_by(4)
    assert more(cluster, recorded)[1] is None
    cluster.stage.send("DELETE", f"{PLACE}/p")
    cluster.stage.work()
    assert more(cluster, read)[1] is None


def test_an_executed_command_keeps_its_files_for_the_next() -> None:
    cluster = SimulatedCluster()
    cluster.pod("p", "sleep 100")
    cluster.stage.pass_by(2)
    executions = SimulatedRuntime(Rules(), 1.0, clock=cluster.stage.clock).executions
    pod, node = cluster.stage.stored(PODS, "p", "a"), cluster.stage.stored(NODES, "node-1")
    assert pod is not None
    assert node is not None
    name = pod.to_dict()["spec"]["containers"][0]["name"]
    written = executions.exec(pod, node, name, {"command": ["sh", "-c", "echo kept > /file"]})
    assert (written.end(0.0), written.code) == ([], 0)
    read = executions.exec(pod, node, name, {"command": ["cat", "/file"]})
    assert ([each.data for each in read.end(0.0)], read.code) == ([b"kept\n"], 0)
    with pytest.raises(UnknownError, match=r'container not found \("other"\)'):
        executions.exec(pod, node, "other", {"command": ["id"]})


def test_the_simulated_duration_must_pass() -> None:
    with pytest.raises(SettingsError, match="time must pass"):
        SimulatedCluster(simulated_speed=0.0)


def balanced() -> tuple[WorkedStage, Callable[[str], list[str]]]:
    stage = WorkedStage(lambda stage: build_balancer(StageContext(stage), BalancerOptions()))
    stage.namespace("a")

    def addresses(name: str) -> list[str]:
        stage.work()
        status = stage.send("GET", f"/api/v1/namespaces/a/services/{name}").body["status"]["loadBalancer"]
        return [each["ip"] for each in status.get("ingress", ())]

    return stage, addresses


def test_load_balancer_services_get_addresses() -> None:
    stage, addresses = balanced()
    for name, more in (("one", {}), ("two", {}), ("other", {"loadBalancerClass": "example.com/mine"})):
        spec = {"type": "LoadBalancer", "ports": [{"port": 80}], **more}
        stage.create("/api/v1/namespaces/a/services", {"metadata": {"name": name}, "spec": spec})
        stage.work()
    assert [addresses(name) for name in ("one", "two", "other")] == [["198.51.100.1"], ["198.51.100.2"], []]
    stage.patch("/api/v1/namespaces/a/services/one", {"spec": {"type": "ClusterIP"}})
    assert addresses("one") == []
    stage.start()
    stage.work()
    assert addresses("two") == ["198.51.100.2"]

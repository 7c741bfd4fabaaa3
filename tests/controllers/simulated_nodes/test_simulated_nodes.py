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
from tests.controllers.simulated_nodes.scene import PLACE, Scene
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import MERGE, WorkedStage


def test_nodes_are_created_and_renew_their_leases() -> None:
    scene = Scene()
    nodes = [each.to_dict() for each in scene.stage.log.snapshot(NODES).objects]
    assert [each["metadata"]["name"] for each in nodes] == ["node-1", "node-2"]
    found = [each["status"]["addresses"][0]["address"] for each in nodes]
    assert found == ["172.18.0.2", "172.18.0.3"]
    conditions = {each["type"]: each["status"] for each in nodes[0]["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    before = [each.revision for each in scene.stage.log.snapshot(LEASES).objects]
    scene.stage.pass_by(11)
    after = [each.revision for each in scene.stage.log.snapshot(LEASES).objects]
    assert len(before) == 2
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert {"system:node:node-1", "system:node:node-2"} <= scene.actors()


def renewals(scene: Scene, after: int) -> list[Any]:
    return [each for each in scene.stage.log.events_after(after, limit=10_000) if each.resource == LEASES]


def test_due_leases_are_renewed_together_each_by_its_node() -> None:
    scene = Scene(nodes="5")
    scene.stage.pass_by(20)
    head = scene.stage.log.head().revision
    scene.stage.pass_by(10)
    found = renewals(scene, head)
    assert sorted(each.actor for each in found) == [f"system:node:node-{number}" for number in range(1, 6)]
    assert len({each.recorded_at for each in found}) == 1


def test_a_deleted_lease_is_recreated() -> None:
    scene = Scene()
    scene.stage.delete("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1")
    for _ in range(2):
        scene.stage.pass_by(11)
    assert scene.stage.names(LEASES) == ["node-1", "node-2"]


def test_a_deleted_node_is_not_renewed() -> None:
    scene = Scene()
    scene.stage.delete("/api/v1/nodes/node-1")
    scene.stage.pass_by(1)
    head = scene.stage.log.head().revision
    scene.stage.pass_by(30)
    assert {each.actor for each in renewals(scene, head)} == {"system:node:node-2"}


def test_changed_conditions_of_a_node_are_restored() -> None:
    scene = Scene()
    said = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
    scene.stage.send("PATCH", "/api/v1/nodes/node-1/status", {"status": said}, media_type=MERGE)
    scene.stage.work()
    scene.stage.pass_by(11)
    node = scene.stage.stored(NODES, "node-1")
    assert node is not None
    told = {each["type"]: each["status"] for each in node.to_dict()["status"]["conditions"]}
    assert told == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def test_a_status_is_reported_every_five_minutes() -> None:
    scene = Scene()

    def heartbeat() -> str:
        node = scene.stage.stored(NODES, "node-1")
        assert node is not None
        return str(node.to_dict()["status"]["conditions"][-1]["lastHeartbeatTime"])

    first = heartbeat()
    scene.stage.pass_by(200)
    assert heartbeat() == first
    scene.stage.pass_by(110)
    assert heartbeat() > first


def test_a_pod_runs_with_an_address_of_its_nodes_range() -> None:
    scene = Scene()
    for name in ("p", "q"):
        scene.pod(name)
    scene.pod("elsewhere", node="node-2")
    scene.pod("host", hostNetwork=True)
    scene.stage.pass_by(2)
    assert [scene.status(name)["phase"] for name in ("p", "q", "elsewhere", "host")] == ["Running"] * 4
    found = [scene.status(name)["podIP"] for name in ("p", "q", "elsewhere", "host")]
    assert found == ["10.0.1.2", "10.0.1.3", "10.0.2.2", "172.18.0.2"]
    assert scene.context.told.reasons()[:3] == ["Pulled", "Created", "Started"]


def test_a_pod_terminates_after_its_configured_duration() -> None:
    scene = Scene()
    scene.pod("p", "sleep 5; exit 3", restartPolicy="Never")
    scene.stage.pass_by(3)
    assert scene.status("p")["phase"] == "Running"
    scene.stage.pass_by(4)
    assert scene.status("p")["phase"] == "Failed"


def test_time_can_run_faster() -> None:
    scene = Scene(simulated_speed=10.0)
    scene.pod("p", "sleep 60; exit 0", restartPolicy="Never")
    scene.stage.pass_by(7)
    assert scene.status("p")["phase"] == "Succeeded"


def test_a_deleted_pod_is_removed_after_its_containers_stop() -> None:
    scene = Scene()
    scene.pod("p")
    scene.pod("slow", annotations={"simulate.ctrlmgr.io/c": "stop after 5s"})
    scene.stage.pass_by(2)
    for name in ("p", "slow"):
        scene.stage.delete(f"{PLACE}/{name}")
    scene.stage.pass_by(0.1)
    assert scene.stage.names(PODS) == ["slow"]
    scene.stage.pass_by(6)
    assert scene.stage.names(PODS) == []


def test_only_labelled_nodes_are_simulated() -> None:
    scene = Scene()
    scene.stage.create("/api/v1/nodes", {"metadata": {"name": "real"}})
    scene.pod("p", node="real")
    scene.stage.pass_by(30)
    assert scene.status("p")["phase"] == "Pending"
    node = scene.stage.stored(NODES, "real")
    assert node is not None
    assert "conditions" not in node.to_dict()["status"]


def test_a_lost_node_is_silent_until_its_recovery() -> None:
    scene = Scene()
    told = {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "lost"}}}
    scene.stage.patch("/api/v1/nodes/node-1", told)
    scene.stage.pass_by(1)
    head = scene.stage.log.snapshot(LEASES).objects[0].revision
    scene.pod("p")
    scene.stage.pass_by(30)
    assert scene.stage.log.snapshot(LEASES).objects[0].revision == head
    assert scene.status("p")["phase"] == "Pending"
    scene.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": None}}})
    scene.stage.work()
    scene.stage.pass_by(2)
    assert scene.status("p")["phase"] == "Running"


def test_a_slow_node_starts_containers_later() -> None:
    scene = Scene()
    scene.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "slow 5s"}}})
    scene.pod("p")
    scene.pod("q", node="node-2")
    scene.stage.pass_by(3)
    assert [scene.status(name)["phase"] for name in ("p", "q")] == ["Pending", "Running"]
    scene.stage.pass_by(3)
    before = scene.status("p")
    assert before["phase"] == "Running"
    scene.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": None}}})
    scene.stage.pass_by(3)
    assert scene.status("p") == before


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
    scene = Scene()
    scene.pod("p", **first)
    scene.stage.pass_by(1)
    scene.pod("q", **second)
    scene.stage.pass_by(1)
    status = scene.status("q")
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", reason, message)


def test_an_invalid_annotation_is_reported() -> None:
    scene = Scene()
    scene.pod("p", "frobnicate", annotations={"simulate.ctrlmgr.io/pod": "dance"})
    scene.stage.pass_by(2)
    assert scene.status("p")["phase"] == "Running"
    told = {reason: message for _, reason, message in scene.context.told.events}
    assert "'dance' is not a valid phrase" in told["SimulatedBehaviour"]
    assert told["SimulatedCommand"].startswith("the simulation does not know the command 'frobnicate'")


def test_an_invalid_annotation_of_a_node_is_reported_once() -> None:
    scene = Scene()
    scene.stage.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "sideways"}}})
    scene.stage.work()
    scene.stage.pass_by(400)
    told = [message for _, reason, message in scene.context.told.events if reason == "SimulatedBehaviour"]
    assert len(told) == 1
    assert "'sideways' is not a valid phrase" in told[0]


def test_a_restarted_simulation_continues() -> None:
    scene = Scene()
    scene.pod("p", "sleep 5; exit 0", restartPolicy="Never")
    scene.stage.pass_by(2)
    scene.stage.start()
    scene.stage.work()
    scene.stage.pass_by(5)
    assert scene.status("p")["phase"] == "Succeeded"


def reading(scene: Scene, **options: Any) -> ContainerLogReader:
    runtime = SimulatedRuntime(Rules(), 1.0, clock=scene.stage.clock)
    pod, node = scene.stage.stored(PODS, "p", "a"), scene.stage.stored(NODES, "node-1")
    assert pod is not None
    assert runtime.logs(pod, None, LogOptions(**options)) is None
    found = runtime.logs(pod, node, LogOptions(**options))
    assert found is not None
    return found


def more(scene: Scene, read: ContainerLogReader) -> tuple[bytes, float | None]:
    piece = read.more(scene.stage.stored(PODS, "p", "a"), scene.stage.stored(NODES, "node-1"))
    return piece.data, None if piece.wait is None else round(piece.wait, 1)


def test_logs() -> None:
    scene = Scene()
    scene.pod("p", "echo hello; sleep 2; echo world; sleep 100")
    scene.stage.pass_by(2)
    assert more(scene, reading(scene)) == (b"hello\n", None)
    assert more(scene, reading(scene, limit_bytes=3)) == (b"hel", None)
    scene.stage.pass_by(2)
    assert more(scene, reading(scene, since_seconds=2)) == (b"world\n", None)
    stamped, _ = more(scene, reading(scene, timestamps=True, tail_lines=1))
    assert re.fullmatch(rb"[-0-9]+T[:0-9]+\.400000000Z world\n", stamped)
    with pytest.raises(BadRequest, match="container x is not valid for pod p"):
        reading(scene, container="x")


def test_a_pod_before_its_start_has_no_log() -> None:
    scene = Scene()
    scene.stage.clock.step(0.9)  # well into a second
    container = {"name": "c", "image": "example.com/app:1", "command": ["sh", "-c", "echo hello; sleep 100"]}
    scene.stage.create(PLACE, {"metadata": {"name": "p"}, "spec": {"nodeName": "node-1", "containers": [container]}})
    with pytest.raises(BadRequest, match='container "c" in pod "p" is waiting to start: ContainerCreating'):
        reading(scene)
    scene.stage.work()
    scene.stage.pass_by(1)
    assert more(scene, reading(scene)) == (b"hello\n", None)


def test_following_a_log_ends_with_its_run() -> None:
    scene = Scene()
    scene.pod("p", "echo one; sleep 3; echo two; sleep 3; exit 1")
    scene.stage.pass_by(1)
    read, short = reading(scene, follow=True), reading(scene, follow=True, limit_bytes=5)
    assert more(scene, read) == (b"one\n", 2.4)
    assert more(scene, short) == (b"one\n", 2.4)
    assert more(scene, read) == (b"", 2.4)
    scene.stage.pass_by(3)
    assert more(scene, read) == (b"two\n", 2.4)
    assert more(scene, short) == (b"t", None)
    scene.stage.pass_by(3)
    assert more(scene, read) == (b"", None)


def test_following_a_log_ends_with_its_pod() -> None:
    scene = Scene()
    scene.pod("p", "echo one; sleep 3; echo two; sleep 1000", terminationGracePeriodSeconds=0)
    scene.stage.pass_by(1)
    read, told = reading(scene, follow=True), reading(scene, follow=True)
    assert more(scene, read) == (b"one\n", 2.4)
    scene.stage.patch(f"{PLACE}/p", {"metadata": {"annotations": {"simulate.ctrlmgr.io/pod": "exit 3 after 5s"}}})
    scene.stage.work()
    scene.stage.pass_by(2)
    assert more(scene, told)[1] == pytest.approx(3.0)
    scene.stage.pass_by(4)
    assert more(scene, told)[1] is None
    scene.stage.send("DELETE", f"{PLACE}/p")
    scene.stage.work()
    assert more(scene, read)[1] is None


def test_an_executed_command_keeps_its_files_for_the_next() -> None:
    scene = Scene()
    scene.pod("p", "sleep 100")
    scene.stage.pass_by(2)
    executions = SimulatedRuntime(Rules(), 1.0, clock=scene.stage.clock).executions
    pod, node = scene.stage.stored(PODS, "p", "a"), scene.stage.stored(NODES, "node-1")
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
        Scene(simulated_speed=0.0)


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

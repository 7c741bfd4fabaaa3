from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ctrlmgr.api.core import Pod
from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.daemonset.daemon_pods import target_node
from ctrlmgr.controllers.daemonset.failed_daemon_pods import FailedPodsBackoff, Series
from ctrlmgr.controllers.daemonset.view import enduring
from ctrlmgr.controllers.workloads.controlled_pods import is_ready
from ctrlmgr.testing import FakeClock
from tests.controllers.workloads.makers import daemon_sets
from tests.controllers.workloads.stage import MERGE, WorkloadStage, pods_of, template

SETS, REVISIONS = "apps/v1/daemonsets", "apps/v1/controllerrevisions"
LABELS = {"app": "agent"}
NODES = ("a", "b", "c")


def daemon_set(image: str = "registry.example/app:1", **spec: Any) -> dict[str, Any]:
    wanted = {"selector": {"matchLabels": LABELS}, "template": template(LABELS, image), **spec}
    return {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "agent"}, "spec": wanted}


def rolling(**limits: int | str) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


def new_image(tag: str) -> dict[str, Any]:
    return {"spec": {"template": template(LABELS, f"registry.example/app:{tag}")}}


def add_node(stage: WorkloadStage, name: str, **spec: Any) -> None:
    body = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": {"disk": "fast"}}}
    assert stage.send("POST", "/api/v1/nodes", body).code == 201
    change_node(stage, name, {"spec": {"taints": None, **spec}})


def change_node(stage: WorkloadStage, name: str, change: dict[str, Any]) -> None:
    assert stage.send("PATCH", f"/api/v1/nodes/{name}", change, media_type=MERGE).code == 200


def node_of(pod: dict[str, Any]) -> str:
    if "nodeName" in pod["spec"]:
        return str(pod["spec"]["nodeName"])
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def start(stage: WorkloadStage) -> None:
    """Run the scheduler and the simulated kubelets once."""
    for pod in stage.pods():
        if pod["status"]["phase"] == "Pending":
            stage.report(pod, node=node_of(pod))
    stage.end_all()


def settle(stage: WorkloadStage) -> None:
    for _ in range(60):
        before = stage.log.head().revision
        stage.work()
        start(stage)
        if stage.log.head().revision == before:
            return
    pytest.fail("nothing comes to rest")


def images(stage: WorkloadStage) -> Counter[str]:
    return Counter(pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in stage.pods())


@pytest.fixture(params=[False, True], ids=["", "killed"])
def stage(request: pytest.FixtureRequest) -> WorkloadStage:
    stage = WorkloadStage(daemon_sets, killed_at_every_write=request.param)
    for name in NODES:
        add_node(stage, name)
    return stage


def test_each_eligible_node_has_one_pod(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set())
    settle(stage)
    assert sorted(node_of(pod) for pod in stage.pods()) == list(NODES)
    status = stage.get(SETS, "agent")["status"]
    assert status == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }


def test_pods_follow_changes_of_nodes(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set(template=template(LABELS, nodeSelector={"disk": "fast"})))
    settle(stage)
    add_node(stage, "d")
    settle(stage)
    assert sorted(node_of(pod) for pod in stage.pods()) == [*NODES, "d"]
    change_node(stage, "a", {"metadata": {"labels": {"disk": "slow"}}})
    settle(stage)
    assert sorted(node_of(pod) for pod in stage.pods()) == ["b", "c", "d"]


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False), ("PreferNoSchedule", True)])
def test_a_taint_deletes_pods_that_do_not_tolerate_it(stage: WorkloadStage, effect: str, stays: bool) -> None:
    stage.create(SETS, daemon_set())
    settle(stage)
    change_node(stage, "a", {"spec": {"taints": [{"key": "k", "effect": effect}]}})
    settle(stage)
    assert ("a" in {node_of(pod) for pod in stage.pods()}) == stays


@pytest.mark.parametrize("limit", [1, 2, "50%", "100%"])
def test_an_update_respects_max_unavailable(stage: WorkloadStage, limit: int | str) -> None:
    stage.create(SETS, daemon_set(**rolling(maxUnavailable=limit)))
    settle(stage)
    began = stage.log.head().revision
    stage.patch(SETS, "agent", new_image("2"))
    settle(stage)
    assert images(stage) == {"2": 3}
    room = {1: 1, 2: 2, "50%": 2, "100%": 3}[limit]
    for there in stage.states(PODS):
        pods = pods_of(there)
        if pods and max(pod.revision for pod in pods) > began:
            assert sum(is_ready(pod) and not pod.is_terminating for pod in pods) >= len(NODES) - room


def test_with_a_surge_every_node_keeps_a_ready_pod(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set(**rolling(maxSurge=1, maxUnavailable=0)))
    settle(stage)
    began = stage.log.head().revision
    stage.patch(SETS, "agent", new_image("2"))
    settle(stage)
    assert images(stage) == {"2": 3}
    for there in stage.states(PODS):
        pods = pods_of(there)
        if max(pod.revision for pod in pods) <= began:
            continue
        staying = [pod for pod in pods if not pod.is_terminating]
        assert {target_node(pod) for pod in staying if is_ready(pod)} == set(NODES)
        assert len(staying) <= len(NODES) + 1


def test_with_on_delete_a_pod_is_updated_when_it_is_deleted(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set(updateStrategy={"type": "OnDelete"}))
    settle(stage)
    stage.patch(SETS, "agent", new_image("2"))
    settle(stage)
    assert images(stage) == {"1": 3}
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])
    settle(stage)
    assert images(stage) == {"1": 2, "2": 1}


def test_revisions_are_numbered_reused_and_limited(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set(revisionHistoryLimit=1))
    for tag in ("2", "3", "1"):
        settle(stage)
        stage.patch(SETS, "agent", new_image(tag))
    settle(stage)
    kept = {
        each["data"]["spec"]["template"]["spec"]["containers"][0]["image"][-1]: each["revision"]
        for each in stage.all(REVISIONS)
    }
    assert kept == {"3": 3, "1": 4}
    hashes = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in stage.pods()}
    assert hashes < {each["metadata"]["labels"]["controller-revision-hash"] for each in stage.all(REVISIONS)}


def test_a_revision_name_in_use_increases_the_collision_count(stage: WorkloadStage) -> None:
    stage.create(SETS, daemon_set())
    settle(stage)
    (revision,) = stage.all(REVISIONS)
    stage.delete(SETS, "agent")
    stage.delete(REVISIONS, revision["metadata"]["name"])
    stage.work()
    foreign = {**revision, "data": {"spec": {}}, "metadata": {"name": revision["metadata"]["name"]}}
    stage.create(REVISIONS, foreign)
    stage.create(SETS, daemon_set())
    for _ in range(5):
        stage.pass_by(1)
    settle(stage)
    assert stage.get(SETS, "agent")["status"]["collisionCount"] == 1
    assert stage.get(SETS, "agent")["status"]["updatedNumberScheduled"] == 3


def test_a_succeeded_pod_is_replaced_at_once_and_a_failed_pod_with_backoff() -> None:
    stage = WorkloadStage(daemon_sets)
    add_node(stage, "a")
    stage.create(SETS, daemon_set())
    settle(stage)
    stage.report(stage.pods()[0], "Succeeded")
    settle(stage)
    replaced = 0
    for _ in range(120):  # two minutes with a kubelet that refuses every pod at once
        (pod,) = stage.pods()
        if pod["status"]["phase"] != "Failed":
            stage.report(pod, "Failed", node="a")
            replaced += 1
        stage.work()
        stage.end_all()
        stage.pass_by(1)
    assert replaced <= 8  # after 0, 1, 2, 4 … 64 seconds
    assert any(recorded.startswith("FailedDaemonPod") for recorded in stage.recorded.all)


def test_selected_orphans_are_adopted_and_the_oldest_pod_is_kept(stage: WorkloadStage) -> None:
    orphan = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "older", "labels": LABELS}}
    stage.create("pods", {**orphan, "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]}})
    stage.bind("older", "a")
    stage.clock.step(5)
    stage.create(SETS, daemon_set(updateStrategy={"type": "OnDelete"}))
    settle(stage)
    names = {pod["metadata"]["name"] for pod in stage.pods()}
    assert "older" in names
    assert len(names) == 3


def test_pods_pending_for_a_deleted_node_are_deleted() -> None:
    stage = WorkloadStage(daemon_sets)
    add_node(stage, "a")
    add_node(stage, "b")
    stage.create(SETS, daemon_set())
    stage.work()
    stage.send("DELETE", "/api/v1/nodes/a")
    (waiting,) = [pod for pod in stage.pods() if node_of(pod) == "b"]
    stage.report(waiting, node="b")
    settle(stage)
    assert [node_of(pod) for pod in stage.pods()] == ["b"]


def test_kubelet_status_reports_do_not_enqueue_daemon_sets() -> None:
    stage = WorkloadStage(daemon_sets)
    add_node(stage, "a")
    stage.create(SETS, daemon_set())
    settle(stage)
    before = len(stage.written())
    change_node(stage, "a", {"metadata": {"annotations": {"seen": "1"}}})
    stage.work()
    assert len(stage.written()) == before


def test_missing_tolerations_are_added() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = enduring({"tolerations": [own, {"key": "x", "operator": "Exists"}], "hostNetwork": True})
    assert [each.get("key", "").rpartition("/")[2] for each in found] == [
        "not-ready",
        "x",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    ]
    assert "tolerationSeconds" not in found[0]
    assert len(enduring({})) == 6


def test_backoff_doubles_up_to_fifteen_minutes_and_expires() -> None:
    clock = FakeClock()
    backoff, series = FailedPodsBackoff(clock), Series("uid", 1, "a")
    waits = []
    for _ in range(13):
        wait = 0.0
        while left := backoff.before_replacing(series):
            wait += left
            clock.step(left)
        waits.append(wait)
    assert waits[:5] == [0, 1, 2, 4, 8]
    assert waits[-1] == 900
    clock.step(1801)
    assert backoff.before_replacing(series) == 0
    assert backoff.before_replacing(series) == 1


def test_the_stage_reads_pods_like_the_controller() -> None:
    stage = WorkloadStage(daemon_sets)
    add_node(stage, "a")
    stage.create(SETS, daemon_set())
    settle(stage)
    *_, there = stage.states(PODS)
    (pod,) = pods_of(there)
    assert (target_node(pod), pod.view(Pod).spec.node_name) == ("a", "a")

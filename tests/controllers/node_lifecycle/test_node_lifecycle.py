from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.clock import format_time, format_time_seconds, parse_time
from ctrlmgr.controllers.node_lifecycle import Options
from ctrlmgr.controllers.node_lifecycle.controller import build
from ctrlmgr.controllers.node_lifecycle.decide import (
    GracePeriods,
    Health,
    TaintChange,
    condition_taint_change,
    judge,
    label_changes,
    with_taints,
)
from ctrlmgr.controllers.node_lifecycle.view import Condition, HealthNode
from ctrlmgr.controllers.node_lifecycle.zones import Bucket, Rates, TaintQueue, ZoneState, passage, zone_state
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CREATED = "2026-01-01T00:00:00Z"
START = parse_time(CREATED)
SECOND = 1_000_000
GRACE = GracePeriods(10.0, 20.0)


def node(*conditions: dict[str, str], **spec: Any) -> HealthNode:
    head = {"metadata": {"name": "n", "creationTimestamp": CREATED}, "spec": spec}
    return msgspec.convert({**head, "status": {"conditions": list(conditions)}}, HealthNode)


def condition(type: str, status: str, beat: str = CREATED) -> dict[str, str]:
    return {"type": type, "status": status, "lastHeartbeatTime": beat}


READY = condition("Ready", "True")


def test_a_node_without_a_status_has_the_longer_grace_period() -> None:
    found = judge(node(), None, "", START + 20 * SECOND, GRACE)
    assert (found.observed, found.current, found.conditions) == ("Unknown", None, None)
    found = judge(node(), found.health, "", START + 20 * SECOND + 1, GRACE)
    assert found.current == "Unknown"
    assert [each["type"] for each in found.conditions or ()] == [
        "Ready",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
    ]
    assert {each["reason"] for each in found.conditions or ()} == {"NodeStatusNeverUpdated"}


def test_a_silent_node_is_unknown_and_keeps_its_network_condition() -> None:
    raw = [READY, condition("NetworkUnavailable", "False"), condition("DiskPressure", "Unknown")]
    health = Health(Condition("Ready", "True", CREATED), START)
    assert judge(node(*raw), health, "", START + 10 * SECOND, GRACE, raw).conditions is None
    found = judge(node(*raw), health, "", START + 10 * SECOND + 1, GRACE, raw)
    assert (found.observed, found.current) == ("True", "Unknown")
    recorded = {each["type"]: (each["status"], each.get("reason")) for each in found.conditions or ()}
    assert recorded == {
        "Ready": ("Unknown", "NodeStatusUnknown"),
        "NetworkUnavailable": ("False", None),
        "DiskPressure": ("Unknown", None),
        "MemoryPressure": ("Unknown", "NodeStatusNeverUpdated"),
        "PIDPressure": ("Unknown", "NodeStatusNeverUpdated"),
    }


@pytest.mark.parametrize(
    ("beat", "renewed", "heard"),
    [
        pytest.param(CREATED, "", START, id="nothing new"),
        pytest.param("2026-01-01T00:00:01Z", "", START + 9 * SECOND, id="a heartbeat"),
        pytest.param("2025-01-01T00:00:01Z", "", START + 9 * SECOND, id="a heartbeat by a clock that is slow"),
        pytest.param(CREATED, "2026-01-01T00:00:02.000000Z", START + 9 * SECOND, id="a lease"),
        pytest.param(CREATED, "2025-01-01T00:00:00.000000Z", START, id="an older lease"),
    ],
)
def test_the_time_of_observation_counts(beat: str, renewed: str, heard: int) -> None:
    health = Health(Condition("Ready", "True", CREATED), START, "2026-01-01T00:00:01.000000Z")
    assert (
        judge(node(condition("Ready", "True", beat)), health, renewed, START + 9 * SECOND, GRACE).health.heard_at
        == heard
    )


def test_a_newly_observed_node_gets_the_full_grace_period() -> None:
    found = judge(node(READY), None, "", START + 3600 * SECOND, GRACE)
    assert (found.current, found.health.heard_at) == ("True", START + 3600 * SECOND)


@pytest.mark.parametrize(
    ("conditions", "spec", "change"),
    [
        ([READY], {}, TaintChange()),
        ([condition("Ready", "False")], {}, TaintChange((("node.kubernetes.io/not-ready", "NoSchedule"),))),
        (
            [condition("Ready", "Unknown"), condition("PIDPressure", "True"), condition("DiskPressure", "False")],
            {},
            TaintChange(
                (("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/pid-pressure", "NoSchedule"))
            ),
        ),
        ([READY], {"unschedulable": True}, TaintChange((("node.kubernetes.io/unschedulable", "NoSchedule"),))),
        (
            [READY],
            {
                "taints": [
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
                    {"key": "mine", "effect": "NoSchedule"},
                ]
            },
            TaintChange(remove=(("node.kubernetes.io/not-ready", "NoSchedule"),)),
        ),
    ],
)
def test_taints_follow_conditions(conditions: list[dict[str, str]], spec: dict[str, Any], change: TaintChange) -> None:
    assert condition_taint_change(node(*conditions, **spec)) == change


def test_a_new_taint_has_a_time_and_others_are_kept() -> None:
    before = [{"key": "mine", "value": "x", "effect": "NoExecute"}, {"key": "k", "effect": "NoSchedule"}]
    after = with_taints(before, TaintChange((("new", "NoExecute"),), (("k", "NoSchedule"),)), START)
    assert after == [before[0], {"key": "new", "effect": "NoExecute", "timeAdded": CREATED}]


def test_deprecated_labels_follow_the_current_ones() -> None:
    labels = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows", "beta.kubernetes.io/arch": "arm64"}
    assert label_changes(labels) == {"beta.kubernetes.io/os": "linux"}


@pytest.mark.parametrize(
    ("ready", "unready", "state"),
    [
        (3, 0, ZoneState.NORMAL),
        (0, 1, ZoneState.FULL),
        (1, 2, ZoneState.NORMAL),
        (2, 3, ZoneState.PARTIAL),
        (3, 3, ZoneState.NORMAL),
        (0, 0, ZoneState.NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, unready: int, state: ZoneState) -> None:
    assert zone_state([True] * ready + [False] * unready, 0.55) is state


RATES = Rates(0.1, 0.01, 50)
NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL


@pytest.mark.parametrize(
    ("before", "now", "rates", "entered", "left"),
    [
        ({}, {"a": NORMAL}, {"a": 0.1}, False, False),
        ({"a": NORMAL}, {"a": NORMAL}, {}, False, False),
        ({"a": NORMAL, "b": NORMAL}, {"a": FULL, "b": NORMAL}, {"a": 0.1}, False, False),
        ({"a": FULL, "b": NORMAL}, {"a": FULL, "b": FULL}, {"a": 0.0, "b": 0.0}, True, False),
        ({"a": FULL, "b": FULL}, {"a": FULL, "b": FULL}, {}, False, False),
        ({"a": FULL, "b": FULL}, {"a": FULL, "b": PARTIAL}, {"a": 0.1, "b": 0.0}, False, True),
    ],
)
def test_the_eviction_rate_of_a_zone(
    before: dict[str, ZoneState], now: dict[str, ZoneState], rates: dict[str, float], entered: bool, left: bool
) -> None:
    found = passage(before, now, {"a": 5, "b": 5}, RATES)
    assert (dict(found.rates), found.entered, found.left) == (rates, entered, left)


def test_a_large_disrupted_zone_is_evicted_slowly() -> None:
    assert (RATES.of(PARTIAL, 51), RATES.of(PARTIAL, 50), RATES.of(FULL, 50)) == (0.01, 0.0, 0.1)


def test_a_bucket_holds_one_token() -> None:
    bucket = Bucket(0.1, 0.0)
    assert [bucket.take(now) for now in (0.0, 5.0, 10.0, 40.0, 41.0)] == [True, False, True, True, False]
    assert bucket.wait() == pytest.approx(9.0)
    bucket.set_rate(0.0, 41.0)
    assert not bucket.take(100.0)
    assert bucket.wait() is None


def test_nodes_are_evicted_once_in_order() -> None:
    queue, given = TaintQueue(1.0, 0.0), list[str]()

    def give_up(name: str) -> bool:
        given.append(name)
        return True

    for name in ("a", "b", "a"):
        queue.add(name)
    assert queue.work(give_up, 0.0) == pytest.approx(1.0)
    assert queue.work(give_up, 1.0) is None
    queue.add("a")
    assert queue.work(give_up, 2.0) is None
    assert given == ["a", "b"]


class TwoZoneCluster:
    """A cluster with two nodes in different zones, each with a pod, and simulated kubelets that can stop reporting."""

    def __init__(self, **options: Any) -> None:
        self.options = Options(
            node_monitor_period=1.0, node_monitor_grace_period=10.0, node_eviction_rate=100, **options
        )
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        self.stage.namespace("kube-node-lease")
        for name in ("one", "two"):
            metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": name}}
            self.stage.create("/api/v1/nodes", {"metadata": metadata})
            spec = {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}
            self.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": f"on-{name}"}, "spec": spec})
            ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
            self.stage.patch(f"/api/v1/namespaces/a/pods/on-{name}/status", ready)
            self.beat(name)
        self.stage.work()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, self.options)

    def beat(self, name: str, status: str = "True") -> None:
        at = format_time_seconds(self.stage.clock.now())
        recorded = {"type": "Ready", "status": status, "reason": "KubeletReady", "lastHeartbeatTime": at}
        self.stage.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [recorded]}})

    def renew(self, name: str) -> None:
        path, at = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", format_time(self.stage.clock.now())
        if self.stage.send("GET", f"{path}/{name}").code == 404:
            self.stage.create(path, {"metadata": {"name": name}, "spec": {"renewTime": at}})
        else:
            self.stage.patch(f"{path}/{name}", {"spec": {"renewTime": at}})

    def pass_by(self, seconds: int, *beating: str) -> None:
        for _ in range(seconds):
            for name in beating:
                self.renew(name)
            self.stage.pass_by(1)

    def taints(self, name: str) -> list[tuple[str, str]]:
        node = self.stage.stored(NODES, name)
        assert node is not None
        found = node.to_dict()["spec"].get("taints") or []
        return sorted((each["key"].partition("/")[2], each["effect"]) for each in found)

    def pod_ready(self, name: str) -> str:
        pod = self.stage.stored(PODS, name, "a")
        assert pod is not None
        return str(pod.to_dict()["status"]["conditions"][0]["status"])


GIVEN_UP = [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]


def test_a_silent_node_is_tainted_and_its_pods_are_not_ready_until_it_recovers() -> None:
    cluster = TwoZoneCluster()
    cluster.pass_by(9, "one")
    assert cluster.taints("two") == []
    cluster.pass_by(5, "one")
    assert (cluster.taints("one"), cluster.taints("two")) == ([], GIVEN_UP)
    assert (cluster.pod_ready("on-one"), cluster.pod_ready("on-two")) == ("True", "False")
    assert ("Warning", "NodeNotReady", "Node is not ready") in cluster.context.recorded.events
    assert ("Normal", "NodeNotReady", "Node two status is now: NodeNotReady") in cluster.context.recorded.events
    cluster.beat("two")
    cluster.pass_by(2, "one", "two")
    assert cluster.taints("two") == []


def test_a_node_that_reports_not_ready_is_tainted_not_ready() -> None:
    cluster = TwoZoneCluster()
    cluster.beat("two", "False")
    cluster.pass_by(3, "one", "two")
    assert cluster.taints("two") == [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]
    cluster.pass_by(12, "one")
    assert cluster.taints("two") == GIVEN_UP


def test_no_node_is_evicted_while_none_is_ready() -> None:
    cluster = TwoZoneCluster()
    cluster.pass_by(20)
    assert [cluster.taints(name) for name in ("one", "two")] == [[("unreachable", "NoSchedule")]] * 2


def test_a_new_pod_on_a_silent_node_is_marked_not_ready() -> None:
    cluster = TwoZoneCluster()
    cluster.pass_by(14, "one")
    spec = {"nodeName": "two", "containers": [{"name": "c", "image": "i"}]}
    cluster.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "late"}, "spec": spec})
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cluster.stage.patch("/api/v1/namespaces/a/pods/late/status", ready)
    cluster.stage.work()
    assert cluster.pod_ready("late") == "False"


def test_a_cordoned_node_is_tainted_at_once() -> None:
    cluster = TwoZoneCluster()
    cluster.stage.patch("/api/v1/nodes/one", {"spec": {"unschedulable": True}})
    cluster.stage.work()
    assert cluster.taints("one") == [("unschedulable", "NoSchedule")]
    cluster.stage.patch("/api/v1/nodes/one", {"spec": {"unschedulable": None}})
    cluster.stage.work()
    assert cluster.taints("one") == []


def test_a_deleted_node_is_reported() -> None:
    cluster = TwoZoneCluster()
    cluster.stage.delete("/api/v1/nodes/two")
    cluster.pass_by(2, "one")
    assert cluster.context.recorded.reasons() == ["RegisteredNode", "RegisteredNode", "RemovingNode"]


def test_a_new_pod_on_a_ready_node_causes_no_work() -> None:
    cluster = TwoZoneCluster()
    spec = {"nodeName": "one", "containers": [{"name": "c", "image": "i"}]}
    cluster.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "late"}, "spec": spec})
    cluster.stage.hear()
    assert not cluster.stage.controller.process_next(timeout=0)

"""Tests of queueing hints: an event wakes only the pods that its object may help; and of the scheduler's metrics."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.scheduler.queueing_hints import HINTS, ClusterEvent, Happening, hint_of
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry, Waiting, concerns
from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.profile import FILTERS
from tests.controllers.scheduler.test_scheduler import SchedulerCluster

LABELS = {"app": "x"}
TAINT = {"key": "k", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"


def pod(cpu: str = "1", *, namespace: str = "a", labels: dict[str, str] | None = None, **spec: Any) -> PodInfo:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": spec.pop("ports", [])}
    metadata = {"name": "p", "namespace": namespace, "labels": labels or {}}
    fields = {"metadata": metadata, "spec": {"containers": [container], **spec}}
    return PodInfo.of(Object.from_dict({"kind": "Pod", "apiVersion": "v1", **fields}))


def node(cpu: str = "2", *, labels: dict[str, str] | None = None, **spec: Any) -> NodeInfo:
    status = {"allocatable": {"cpu": cpu, "pods": "10"}}
    fields = {"metadata": {"name": "n", "labels": labels or {}}, "spec": spec, "status": status}
    return NodeInfo.of(Object.from_dict({"kind": "Node", "apiVersion": "v1", **fields}))


def port(number: int) -> list[dict[str, Any]]:
    return [{"hostPort": number, "containerPort": number}]


def claims(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def claim(name: str, resource: str = "PersistentVolumeClaim", **status: Any) -> Object:
    version = "v1" if resource == "PersistentVolumeClaim" else "resource.k8s.io/v1"
    fields = {"kind": resource, "apiVersion": version, "metadata": {"name": name, "namespace": "a"}}
    return Object.from_dict({**fields, "spec": {}, "status": status})


def spread(key: str = HOST) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": LABELS},
        }
    ]


def near(kind: str = "podAffinity") -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": LABELS}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def far() -> dict[str, Any]:
    return near("podAntiAffinity")


ALLOCATION: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
DEVICES: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
CHANGED, ADDED, GONE = ClusterEvent.NODE_CHANGED, ClusterEvent.NODE_ADDED, ClusterEvent.POD_GONE


@pytest.mark.parametrize(
    ("plugin", "waiting", "happening", "helps"),
    [
        ("NodeResourcesFit", pod("4"), Happening(ADDED, node=node("2")), False),
        ("NodeResourcesFit", pod("4"), Happening(ADDED, node=node("4")), True),
        ("NodeResourcesFit", pod("2"), Happening(CHANGED, node=node("2"), old_node=node("2", labels=LABELS)), False),
        ("NodeResourcesFit", pod("2"), Happening(CHANGED, node=node("3"), old_node=node("2")), True),
        ("NodeResourcesFit", pod("2"), Happening(GONE, old_pod=pod()), True),
        ("NodeResourcesFit", pod("2"), Happening(ClusterEvent.POD_CHANGED, pod("1"), pod("1", labels=LABELS)), False),
        ("NodeResourcesFit", pod("2"), Happening(ClusterEvent.POD_CHANGED, pod("1"), pod("2")), True),
        ("NodeResourcesFit", pod("2"), Happening(ClusterEvent.POD_PLACED, pod()), False),
        ("TaintToleration", pod(), Happening(ADDED, node=node(taints=[TAINT])), False),
        ("TaintToleration", pod(), Happening(CHANGED, node=node(), old_node=node(taints=[TAINT])), True),
        ("TaintToleration", pod(), Happening(CHANGED, node=node(), old_node=node()), False),
        ("NodeUnschedulable", pod(), Happening(ADDED, node=node(unschedulable=True)), False),
        ("NodeUnschedulable", pod(), Happening(CHANGED, node=node(), old_node=node(unschedulable=True)), True),
        ("NodeName", pod(nodeName="m"), Happening(ADDED, node=node()), False),
        ("NodeName", pod(nodeName="n"), Happening(ADDED, node=node()), True),
        ("NodeAffinity", pod(nodeSelector=LABELS), Happening(ADDED, node=node()), False),
        ("NodeAffinity", pod(nodeSelector=LABELS), Happening(ADDED, node=node(labels=LABELS)), True),
        ("NodePorts", pod(ports=port(80)), Happening(GONE, old_pod=pod(ports=port(80))), True),
        ("NodePorts", pod(ports=port(80)), Happening(GONE, old_pod=pod(ports=port(81))), False),
        ("VolumeRestrictions", pod(volumes=claims("v")), Happening(GONE, old_pod=pod(volumes=claims("v"))), True),
        ("VolumeRestrictions", pod(volumes=claims("v")), Happening(GONE, old_pod=pod(volumes=claims("w"))), False),
        ("NodeVolumeLimits", pod(), Happening(GONE, old_pod=pod()), False),
        ("NodeVolumeLimits", pod(), Happening(GONE, old_pod=pod(volumes=claims("v"))), True),
        ("VolumeBinding", pod(volumes=claims("v")), Happening(ClusterEvent.VOLUME_CLAIM, object=claim("w")), False),
        ("VolumeBinding", pod(volumes=claims("v")), Happening(ClusterEvent.VOLUME_CLAIM, object=claim("v")), True),
        ("VolumeBinding", pod(volumes=claims("v")), Happening(GONE, old_pod=pod()), False),
        (
            "PodTopologySpread",
            pod(topologySpreadConstraints=spread()),
            Happening(ClusterEvent.POD_PLACED, pod(labels=LABELS)),
            True,
        ),
        ("PodTopologySpread", pod(topologySpreadConstraints=spread()), Happening(GONE, old_pod=pod()), False),
        (
            "PodTopologySpread",
            pod(topologySpreadConstraints=spread()),
            Happening(GONE, old_pod=pod(labels=LABELS, namespace="b")),
            False,
        ),
        (
            "PodTopologySpread",
            pod(topologySpreadConstraints=spread()),
            Happening(ClusterEvent.POD_CHANGED, pod(labels=LABELS), pod()),
            True,
        ),
        ("PodTopologySpread", pod(topologySpreadConstraints=spread()), Happening(ADDED, node=node()), False),
        (
            "PodTopologySpread",
            pod(topologySpreadConstraints=spread()),
            Happening(ClusterEvent.NODE_GONE, old_node=node(labels={HOST: "n"})),
            True,
        ),
        ("InterPodAffinity", pod(affinity=near()), Happening(ADDED, node=node()), False),
        ("InterPodAffinity", pod(affinity=near()), Happening(ADDED, node=node(labels={HOST: "n"})), True),
        ("InterPodAffinity", pod(affinity=near()), Happening(ClusterEvent.POD_PLACED, pod(labels=LABELS)), True),
        ("InterPodAffinity", pod(affinity=near()), Happening(ClusterEvent.POD_PLACED, pod()), False),
        ("InterPodAffinity", pod(affinity=far()), Happening(GONE, old_pod=pod(labels=LABELS)), True),
        ("InterPodAffinity", pod(affinity=far()), Happening(GONE, old_pod=pod()), False),
        ("InterPodAffinity", pod(labels=LABELS), Happening(GONE, old_pod=pod(affinity=far())), True),
        ("InterPodAffinity", pod(), Happening(GONE, old_pod=pod(affinity=far())), False),
        (
            "DynamicResources",
            pod(**DEVICES),
            Happening(ClusterEvent.DEVICE_CLAIM, object=claim("other", "ResourceClaim")),
            False,
        ),
        (
            "DynamicResources",
            pod(**DEVICES),
            Happening(ClusterEvent.DEVICE_CLAIM, object=claim("mine", "ResourceClaim")),
            True,
        ),
        (
            "DynamicResources",
            pod(**DEVICES),
            Happening(
                ClusterEvent.DEVICE_CLAIM,
                object=claim("other", "ResourceClaim"),
                old_object=claim("other", "ResourceClaim", **ALLOCATION),
            ),
            True,
        ),
        (
            "DynamicResources",
            pod(**DEVICES),
            Happening(
                ClusterEvent.DEVICE_CLAIM,
                object=claim("mine", "ResourceClaim"),
                old_object=claim("mine", "ResourceClaim"),
            ),
            False,
        ),
        ("of an app", pod(), Happening(ClusterEvent.CLASS), True),
    ],
)
def test_an_event_concerns_the_pods_that_its_object_may_help(
    plugin: str, waiting: PodInfo, happening: Happening, helps: bool
) -> None:
    assert concerns(happening, Entry(waiting, 0.0, refused_by=frozenset([plugin]))) is helps
    assert concerns(happening, Entry(waiting, 0.0)), "a pod that no plugin refused is tried after every event"


def test_each_filter_has_hints() -> None:
    assert {*HINTS} == {*FILTERS}
    assert hint_of("NodeName", ClusterEvent.POD_GONE) is None


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_pod_waits_for_an_event_that_helps_it_and_is_counted() -> None:
    cluster = SchedulerCluster()
    cluster.node("small")
    cluster.pod("p", cpu="4")
    labels = {"plugin": "NodeResourcesFit", "event": "NodeAdd"}
    skipped = value("scheduler_queueing_hint_execution_duration_seconds_count", **labels, hint="QueueSkip")
    attempts = value("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler")
    assert cluster.places() == {"p": ""}
    cluster.stage.pass_by(5)
    cluster.node("other", cpu="3")
    cluster.stage.work()
    found = value("scheduler_queueing_hint_execution_duration_seconds_count", **labels, hint="QueueSkip")
    assert found == skipped + 1
    queued = value("scheduler_queue_incoming_pods_total", queue="active", event="NodeAdd")
    cluster.node("large", cpu="8")
    assert cluster.places() == {"p": "large"}
    assert value("scheduler_queue_incoming_pods_total", queue="active", event="NodeAdd") == queued + 1
    now = value("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler")
    assert now == attempts + 1, "the node that is too small caused no attempt"


def test_the_pods_of_each_queue_are_counted() -> None:
    waiting = Waiting()
    gated, backing_off, parked, new = (renamed(name) for name in ("gated", "backing-off", "parked", "new"))
    waiting.offer(gated, 0.0, lacks="a claim")
    for each in (backing_off, parked, new):
        waiting.offer(each, 0.0)
    waiting.retry(waiting.take(backing_off.key, 0.0), 0.0)
    waiting.failed(waiting.take(parked.key, 0.0), frozenset(["NodeName"]), 0.0)
    counts = dict.fromkeys([("active",), ("backoff",), ("unschedulable",), ("gated",)], 1)
    assert waiting.counts(0.5) == counts
    assert waiting.counts(2.0) == {**counts, ("active",): 2, ("backoff",): 0}
    assert waiting.refusing() == {("NodeName", "s"): 1}


@pytest.mark.parametrize("name", ["scheduler_pending_pods", "scheduler_cache_size", "scheduler_unschedulable_pods"])
def test_each_gauge_is_exported(name: str) -> None:
    assert name in {each.name for each in REGISTRY.collect()}


def renamed(name: str) -> PodInfo:
    fields = {"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": {"schedulerName": "s"}}
    return PodInfo.of(Object.from_dict({"kind": "Pod", "apiVersion": "v1", **fields}))


def test_a_pod_is_tried_after_the_scheduler_bound_the_pod_that_it_wants_to_be_near() -> None:
    cluster = SchedulerCluster()
    cluster.node("n")
    cluster.pod("p", affinity=near())
    assert cluster.places() == {"p": ""}
    cluster.stage.pass_by(2)
    cluster.pod("wanted", labels=LABELS)
    assert cluster.places() == {"p": "n", "wanted": "n"}

"""Tests of kinds whose objects are stored as objects of another kind: no data is lost in either direction of the
conversion.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.kinds.builtin import builtin_kinds

KINDS = builtin_kinds()
PREFIX = "autoscaling.alpha.kubernetes.io/"


def to_storage(group: str, version: str, plural: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the stored form of an object of a converted kind, decoded by the codec of the stored kind."""
    kind = KINDS.find(group, version, plural)
    assert kind is not None
    assert kind.to_storage is not None
    stored = KINDS.stored(kind.storage)
    assert stored is not None
    decoded: dict[str, Any] = json.loads(stored.codec.encode(kind.to_storage(kind.codec.read(fields).fields)))
    return decoded


def from_storage(group: str, version: str, plural: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a stored object in the form in which the API serves it for the converted kind."""
    kind = KINDS.find(group, version, plural)
    assert kind is not None
    assert kind.from_storage is not None
    stored = KINDS.stored(kind.storage)
    assert stored is not None
    body = stored.codec.encode(stored.codec.read(fields).fields)
    served = kind.from_storage(Object(kind.storage, body, 7))
    assert (served.revision, served.resource) == (7, kind.resource)
    assert served.body.startswith(f'{{"kind":"{kind.name}","apiVersion":"{kind.gvk.api_version}",'.encode())
    decoded: dict[str, Any] = json.loads(served.body)
    return decoded


EVENT = {
    "metadata": {"name": "e", "uid": "u"},
    "eventTime": "2026-01-02T03:04:05.000001Z",
    "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"},
    "reason": "Started",
    "type": "Normal",
    "action": "Start",
    "reportingInstance": "node-a",
    "related": {"kind": "Node"},
}
HERE = {
    "regarding": {"kind": "Pod", "name": "p"},
    "note": "text",
    "deprecatedSource": {"component": "kubelet"},
    "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z",
    "deprecatedLastTimestamp": None,
    "deprecatedCount": 3,
    "reportingController": "kubelet",
}
THERE = {
    "involvedObject": {"kind": "Pod", "name": "p"},
    "message": "text",
    "source": {"component": "kubelet"},
    "firstTimestamp": "2026-01-02T03:04:05Z",
    "lastTimestamp": None,
    "count": 3,
    "reportingComponent": "kubelet",
}


def test_events() -> None:
    stored = {"kind": "Event", "apiVersion": "v1", **EVENT, **THERE}
    served = {"kind": "Event", "apiVersion": "events.k8s.io/v1", **EVENT, **HERE}
    assert to_storage("events.k8s.io", "v1", "events", dict(served)) == stored
    assert from_storage("events.k8s.io", "v1", "events", dict(stored)) == served


def autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    return {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


def cpu(utilization: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


METRICS: list[dict[str, Any]] = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "main",
            "target": {"type": "Utilization", "averageUtilization": 60},
        },
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "100"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Ingress", "name": "main"},
            "metric": {"name": "rps", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "10k"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "depth"}, "target": {"type": "AverageValue", "averageValue": "30"}},
    },
    {"type": "External", "external": {"metric": {"name": "depth"}, "target": {"type": "Value", "value": "30"}}},
]
STATUS: dict[str, Any] = {
    "currentReplicas": 1,
    "desiredReplicas": 2,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1m", "averageUtilization": 41}}},
        {
            "type": "Pods",
            "pods": {"metric": {"name": "qps"}, "current": {"averageValue": "7"}},
        },
        {
            "type": "Object",
            "object": {
                "metric": {"name": "rps"},
                "current": {"value": "3"},
                "describedObject": {"kind": "Ingress", "name": "main"},
            },
        },
        {"type": "External", "external": {"metric": {"name": "depth"}, "current": {"value": "3", "averageValue": "1"}}},
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "current": {"averageValue": "1m"}, "container": "main"},
        },
    ],
    "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "message": "<ok>"}],
}
BEHAVIOR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
        "tolerance": "50m",
    }
}


def test_an_autoscaler_survives_a_round_trip_of_versions() -> None:
    fields = autoscaler(metrics=[*METRICS, cpu(50)], behavior=BEHAVIOR) | {"status": STATUS}
    served = from_storage("autoscaling", "v1", "horizontalpodautoscalers", dict(fields))
    assert served["spec"]["targetCPUUtilizationPercentage"] == 50
    assert served["status"]["currentCPUUtilizationPercentage"] == 41
    names = ("behavior", "conditions", "current-metrics", "metrics")
    assert sorted(served["metadata"]["annotations"]) == [f"{PREFIX}{name}" for name in names]
    back = to_storage("autoscaling", "v1", "horizontalpodautoscalers", served)
    assert back == {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", **fields}


def test_the_cpu_metric_is_converted_last() -> None:
    fields = autoscaler(metrics=[cpu(50), METRICS[0]])
    served = from_storage("autoscaling", "v1", "horizontalpodautoscalers", fields)
    back = to_storage("autoscaling", "v1", "horizontalpodautoscalers", served)
    assert back["spec"]["metrics"] == [METRICS[0], cpu(50)]


def test_annotations_are_formatted_like_kubernetes() -> None:
    fields = autoscaler(metrics=[METRICS[2]], behavior=BEHAVIOR) | {"status": {"conditions": STATUS["conditions"]}}
    fields["metadata"]["annotations"] = {"kept": "", f"{PREFIX}metrics": "from another time"}
    annotations = from_storage("autoscaling", "v1", "horizontalpodautoscalers", fields)["metadata"]["annotations"]
    assert annotations == {
        "kept": "",
        f"{PREFIX}metrics": '[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"100"}}]',
        f"{PREFIX}behavior": '{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":'
        '[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":"50m"},"ScaleDown":null}',
        f"{PREFIX}conditions": '[{"type":"AbleToScale","status":"True","lastTransitionTime":null,'
        '"message":"\\u003cok\\u003e"}]',
    }


@pytest.mark.parametrize(
    ("fields", "metrics"),
    [
        (autoscaler(), [cpu(80)]),
        (autoscaler(targetCPUUtilizationPercentage=30), [cpu(30)]),
    ],
)
def test_v1_shows_the_cpu_target(fields: dict[str, Any], metrics: list[Any]) -> None:
    assert to_storage("autoscaling", "v1", "horizontalpodautoscalers", fields)["spec"]["metrics"] == metrics


@pytest.mark.parametrize(
    "text", ["", "null", "{}", "[1]", "[{}]", '[{"type":"Pods","pods":5}]', '[{"type":5}]', "[" * 100_000]
)
@pytest.mark.parametrize("name", ["metrics", "current-metrics", "conditions", "behavior"])
def test_malformed_annotations_count_as_none(name: str, text: str) -> None:
    fields = autoscaler()
    fields["metadata"]["annotations"] = {f"{PREFIX}{name}": text}
    stored = to_storage("autoscaling", "v1", "horizontalpodautoscalers", fields)
    assert "annotations" not in stored["metadata"]
    assert stored["spec"]["metrics"] == [cpu(80)]
    assert "behavior" not in stored["spec"]

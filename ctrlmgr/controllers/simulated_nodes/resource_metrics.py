"""Computes the resource usage of pods and nodes: PodMetrics, NodeMetrics, and the summary of a kubelet.

Guarantees: reports contain only containers that run, and only pods with at least one running container. The resource
usage of a node is the sum of its pods' usage and of the usage of the programs that a real node runs in addition to
pods.

The returned objects have the shapes of `k8s.io/metrics/pkg/apis/metrics/v1beta1`; like metrics-server, they report CPU
in billionths and memory in Ki.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.quantity import WHOLE
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.controllers.simulated_nodes.simulated_time import subject_of
from ctrlmgr.simulation.behaviour import behaviour_for

API_VERSION: Final = "metrics.k8s.io/v1beta1"
WINDOW: Final = "30s"
_KI: Final = 1024 * WHOLE
_DEFAULT: Final = {"cpu": 1_000_000, "memory": 16 * 1024 * _KI}
"""The resource usage of a container for which the rules define none, in billionths: 1m of CPU and 16Mi of memory."""
_OF_NODE: Final = {"cpu": 50_000_000, "memory": 256 * 1024 * _KI}
"""The resource usage of the programs that run on a node in addition to pods, in billionths."""


def pod_metrics(pod: Mapping[str, Any], rules: Rules, now: int) -> Unstructured | None:
    """Return the PodMetrics of a pod at `now` (microseconds since 1970); None if no container runs."""
    used = _used(pod, rules, now)
    if not used:
        return None
    meta = pod["metadata"]
    named = {"name": meta["name"], "namespace": meta["namespace"], "labels": meta.get("labels") or {}}
    containers = [{"name": name, "usage": _written(usage)} for name, usage in used.items()]
    return {**_head("PodMetrics", named, now), "containers": containers}


def node_metrics(node: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], rules: Rules, now: int) -> Unstructured:
    """Return the NodeMetrics of a node with these pods at `now` (microseconds since 1970)."""
    usages = [_OF_NODE, *(usage for pod in pods for usage in _used(pod, rules, now).values())]
    total = {resource: sum(usage[resource] for usage in usages) for resource in _OF_NODE}
    meta = node["metadata"]
    named = {"name": meta["name"], "labels": meta.get("labels") or {}}
    return {**_head("NodeMetrics", named, now), "usage": _written(total)}


def stats_summary(node: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], rules: Rules, now: int) -> Unstructured:
    """Return a node's `/stats/summary` at `now` (microseconds): CPU in nanocores, memory in bytes."""
    usages = {_key(pod): _used(pod, rules, now) for pod in pods}
    time = format_time_seconds(now)
    every = [usage for used in usages.values() for usage in used.values()]
    return {
        "node": {"nodeName": node["metadata"]["name"], **_stats([_OF_NODE, *every], time)},
        "pods": [
            {
                "podRef": {"name": name, "namespace": namespace, "uid": uid},
                "containers": [{"name": each, **_stats([usage], time)} for each, usage in used.items()],
                **_stats(list(used.values()), time),
            }
            for (namespace, name, uid), used in usages.items()
            if used
        ],
    }


def _key(pod: Mapping[str, Any]) -> tuple[str, str, str]:
    meta = pod["metadata"]
    return meta["namespace"], meta["name"], meta.get("uid", "")


def _stats(usages: Sequence[Mapping[str, int]], time: str) -> Unstructured:
    """Return the sum of resource usages in the format of a kubelet's reports."""
    cpu, memory = (sum(usage[resource] for usage in usages) for resource in ("cpu", "memory"))
    return {
        "cpu": {"time": time, "usageNanoCores": cpu},
        "memory": {"time": time, "workingSetBytes": memory // WHOLE},
    }


def _used(pod: Mapping[str, Any], rules: Rules, now: int) -> dict[str, Mapping[str, int]]:
    """Return the resource usage of each running container, keyed by its name."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = {each["name"] for each in statuses if (each.get("state") or {}).get("running") is not None}
    seconds = now / 1_000_000
    used: dict[str, Mapping[str, int]] = {}
    for container in pod["spec"].get("containers") or ():
        if container["name"] in running:
            behaviour = behaviour_for(subject_of(pod, container), rules.says).behaviour
            desired = {"cpu": behaviour.cpu, "memory": behaviour.memory}
            used[container["name"]] = {
                resource: _DEFAULT[resource] if usage is None else usage.at(seconds)
                for resource, usage in desired.items()
            }
    return used


def _head(kind: str, metadata: Mapping[str, Any], now: int) -> Unstructured:
    time = format_time_seconds(now)
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": {**metadata, "creationTimestamp": time},
        "timestamp": time,
        "window": WINDOW,
    }


def _written(usage: Mapping[str, int]) -> dict[str, str]:
    return {"cpu": f"{usage['cpu']}n", "memory": f"{usage['memory'] // _KI}Ki"}

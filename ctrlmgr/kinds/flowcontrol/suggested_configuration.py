"""The FlowSchemas and PriorityLevelConfigurations of every new cluster: suggested objects and mandatory objects.

An administrator can change or delete suggested objects. The server always restores mandatory objects.

Source: apiserver `pkg/apis/flowcontrol/bootstrap/default.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.kinds.flowcontrol.mandatory_configuration import (
    EVERYTHING,
    EXEMPT,
    FLOW_SCHEMAS,
    PRIORITY_LEVELS,
    groups,
    schema,
)

API_VERSION: Final = "flowcontrol.apiserver.k8s.io/v1"
AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
"""The annotation of FlowSchemas and priority levels whose spec the server updates."""

_NODES: Final = groups("system:nodes")
_ALL: Final = groups("system:unauthenticated", "system:authenticated")


def _users(*names: str) -> list[dict[str, Any]]:
    return [{"kind": "User", "user": {"name": f"system:{name}"}} for name in names]


_SYSTEM_ACCOUNTS: Final = [{"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}]


def _resources(verbs: list[str], group: str, names: list[str], *, cluster: bool) -> dict[str, Any]:
    scope = {"clusterScope": True} if cluster else {}
    return {"verbs": verbs, "apiGroups": [group], "resources": names, **scope, "namespaces": ["*"]}


_LEASES: Final = ("coordination.k8s.io", ["leases"])
_PROBES: Final = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
_ELECTION: Final = {"resourceRules": [_resources(["get", "create", "update"], *_LEASES, cluster=False)]}
_NODE_STATUS: Final = {
    "resourceRules": [
        _resources(["*"], "", ["nodes", "nodes/status"], cluster=True),
        _resources(["*"], *_LEASES, cluster=False),
    ]
}

_SUGGESTED_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "system-nodes": schema("system", 500, "ByUser", _NODES, EVERYTHING),
    "system-node-high": schema("node-high", 400, "ByUser", _NODES, _NODE_STATUS),
    "probes": schema(EXEMPT, 2, "", _ALL, _PROBES),
    "system-leader-election": schema(
        "leader-election",
        100,
        "ByUser",
        [*_users("kube-controller-manager", "kube-scheduler"), *_SYSTEM_ACCOUNTS],
        _ELECTION,
    ),
    "kube-controller-manager": schema(
        "workload-high", 800, "ByNamespace", _users("kube-controller-manager"), EVERYTHING
    ),
    "kube-scheduler": schema("workload-high", 800, "ByNamespace", _users("kube-scheduler"), EVERYTHING),
    "kube-system-service-accounts": schema("workload-high", 900, "ByNamespace", _SYSTEM_ACCOUNTS, EVERYTHING),
    "service-accounts": schema("workload-low", 9000, "ByUser", groups("system:serviceaccounts"), EVERYTHING),
    "global-default": schema("global-default", 9900, "ByUser", _ALL, EVERYTHING),
}


def _level(shares: int, lends: int, queues: int, hand: int) -> dict[str, Any]:
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
    response = {"type": "Queue", "queuing": queuing}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lends, "limitResponse": response}
    return {"type": "Limited", "limited": limited}


_SUGGESTED_LEVELS: Final[Mapping[str, Mapping[str, Any]]] = {
    "system": _level(30, 33, 64, 6),
    "node-high": _level(40, 25, 64, 6),
    "leader-election": _level(10, 0, 16, 4),
    "workload-high": _level(40, 50, 128, 6),
    "workload-low": _level(100, 90, 128, 6),
    "global-default": _level(20, 50, 128, 6),
}

_EXEMPT_LEVEL: Final = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}

BOOTSTRAP_LEVELS: Final[Mapping[str, Mapping[str, Any]]] = {
    **_SUGGESTED_LEVELS,
    **PRIORITY_LEVELS,
    EXEMPT: _EXEMPT_LEVEL,
}
"""The specs of every cluster's PriorityLevelConfigurations, by name."""
BOOTSTRAP_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {**_SUGGESTED_SCHEMAS, **FLOW_SCHEMAS}
"""The specs of every cluster's FlowSchemas, by name."""


def bootstrap_object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a FlowSchema or PriorityLevelConfiguration with a spec from one of the tables above."""
    metadata = {"name": name, "annotations": {AUTO_UPDATE: "true"}}
    return {"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec}

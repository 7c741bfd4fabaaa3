"""Returns the cluster at a revision: its nodes with their pods, and the pods that wait for a node, with the reasons.

Guarantees: the page shows the state of the cluster at the requested revision of the log. The page lists at most
`_SHOWN` pods of each node, and at most `_SHOWN` waiting pods. Counts and used resources include all objects that the
user may see.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.inspection import historical_state
from ctrlmgr.inspection.database import Database
from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.resource_amounts import CPU, MEMORY
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader

_SHOWN: Final = 120


class Cluster:
    """Reads the state of the cluster from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def cluster(self, parameters: Parameters) -> dict[str, Any]:
        """Return the nodes and pods at the revision `at`."""

        def answer(database: Database) -> dict[str, Any]:
            head, at = self._reader.head(database), self._reader.moment(database, parameters)
            visibility = parameters.visibility.past(database)
            nodes = [
                each
                for each in historical_state.objects(database, NODES, at=at)
                if visibility.sees(NODES, each.key, at)
            ]
            found = [
                each for each in historical_state.objects(database, PODS, at=at) if visibility.sees(PODS, each.key, at)
            ]
            pods = [PodInfo.of(each) for each in found]
            waiting = [_waiting(pod) for pod in pods if not pod.node_name and not pod.has_ended]
            ready = {each.name: _ready(each.to_dict()) for each in nodes}
            known = [NodeInfo.of(each) for each in nodes]
            return {
                "at": at,
                "head": head,
                "nodes": [_node(node, ready[node.name], pods) for node in known],
                "waiting": waiting[:_SHOWN],
                "waits": len(waiting),
            }

        return self._reader.ask(answer)


def _ready(node: dict[str, Any]) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "Unknown")


def _node(node: NodeInfo, ready: str, pods: list[PodInfo]) -> dict[str, Any]:
    here = [each for each in pods if each.node_name == node.name]
    for each in here:
        if not each.has_ended:
            node.add(each)
    return {
        "name": node.name,
        "ready": ready,
        "unschedulable": node.unschedulable,
        "taints": [f"{each.key}:{each.effect}" for each in node.taints],
        "zone": node.labels.get("topology.kubernetes.io/zone", ""),
        "used": {name: node.used.get(name, 0) for name in (CPU, MEMORY)},
        "allocatable": {name: node.allocatable.get(name, 0) for name in (CPU, MEMORY)},
        "pods": [_pod(each) for each in here[:_SHOWN]],
        "count": len(here),
    }


def _pod(pod: PodInfo) -> dict[str, Any]:
    status = pod.view.status
    is_ready = any(each.type == "Ready" and each.status == "True" for each in status.conditions or ())
    state = "Terminating" if pod.is_terminating else status.phase
    return {"namespace": pod.namespace, "name": pod.key.name, "state": state, "ready": is_ready}


def _waiting(pod: PodInfo) -> dict[str, Any]:
    conditions = pod.view.status.conditions or ()
    scheduled = next((each for each in conditions if each.type == "PodScheduled"), None)
    why = scheduled.message if scheduled is not None else ""
    return {"namespace": pod.namespace, "name": pod.key.name, "why": why, "nominated": pod.nominated}

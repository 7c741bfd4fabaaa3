"""Tests with recorded pods: from the minimal form of a pod, the strategy produces the pod that Kubernetes 1.36.2
stored.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctrlmgr.kinds.core.pod.strategy import PodStrategy
from tests.kinds.stage import Stage

BESIDE = Path(os.environ.get("CTRLMGR_RECORDINGS", Path(__file__).parents[4].parent / "shared" / "recordings"))
KEPT = Path(__file__).parents[3] / "recordings"
ZONE = "topology.kubernetes.io/zone"
ZONES = {"node-a": "zone-1", "node-b": "zone-1", "node-c": "zone-2", "node-d": "zone-3"}
OF_A_POD = (
    "dnsPolicy",
    "enableServiceLinks",
    "preemptionPolicy",
    "priority",
    "schedulerName",
    "securityContext",
    "terminationGracePeriodSeconds",
    "tolerations",
)
OF_A_CONTAINER = ("imagePullPolicy", "resources", "terminationMessagePath", "terminationMessagePolicy")


def recorded_pods(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every recorded pod in its state after the creation."""
    with gzip.open(path, "rb") as lines:
        for line in lines:
            event = json.loads(line)
            if event["type"] == "ADDED" and event["object"]["kind"] == "Pod":
                yield event["object"]


def minimal(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod without the fields that Kubernetes adds."""
    pod = json.loads(json.dumps(pod))
    spec = {field: value for field, value in pod["spec"].items() if field not in OF_A_POD}
    if spec["restartPolicy"] == "Always":
        del spec["restartPolicy"]
    if pod["spec"]["terminationGracePeriodSeconds"] != 30:
        spec["terminationGracePeriodSeconds"] = pod["spec"]["terminationGracePeriodSeconds"]
    spec["containers"] = [
        {field: value for field, value in container.items() if field not in OF_A_CONTAINER}
        for container in spec["containers"]
    ]
    for container in spec["containers"]:
        for port in container.get("ports", ()):
            if port["protocol"] == "TCP":
                del port["protocol"]
            if spec.get("hostNetwork"):
                del port["hostPort"]
    metadata = {field: value for field, value in pod["metadata"].items() if field != "managedFields"}
    metadata["labels"] = {key: value for key, value in metadata["labels"].items() if not key.startswith("topology.")}
    return {"metadata": metadata, "spec": spec}


def recordings() -> list[Path]:
    folder = BESIDE if BESIDE.is_dir() else KEPT
    return [path for name in ("small", "medium") if (path := folder / f"{name}.jsonl.gz").exists()]


def test_recorded_defaults_equal_kubernetes() -> None:
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {ZONE: zone}}}
        for node, zone in ZONES.items()
    ]
    stage = Stage("v1/pods", PodStrategy(), *nodes)
    compared = 0
    for pod in (pod for path in recordings() for pod in recorded_pods(path)):
        made = stage.create(minimal(pod))
        assert json.dumps(made["spec"]) == json.dumps(pod["spec"]), "in the same order, too"
        assert made["status"] == pod["status"]
        assert made["metadata"].get("labels") == pod["metadata"].get("labels")
        assert made["metadata"]["generation"] == pod["metadata"]["generation"]
        compared += 1
    assert compared > 20 if BESIDE.is_dir() else compared == 19, "the recording that is kept here has so many"

"""Recordings for tests: the recording in the repository, and small recordings that tests write line by line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SMALL = Path(__file__).parents[1] / "recordings" / "small.jsonl.gz"
"""A recording with 421 events of Kubernetes 1.36.2, from one scenario of each category."""

WORKLOADS = Path(__file__).parents[1] / "recordings" / "workloads.jsonl.gz"
"""A recording of workload scenarios on `ctrlmgr serve`, made from its log, with authors; see
`tests.scenario_recordings`.
"""

_SHARED = Path(__file__).parents[3] / "shared" / "recordings"
LARGER = [path for path in (_SHARED / "medium.jsonl.gz", _SHARED / "large.jsonl.gz") if path.exists()]
"""The larger recordings, with 5,862 and 99,611 events, on machines that have these files beside the repository."""

KCM = "kube-controller-manager"


def small_lines() -> list[bytes]:
    return gzip.decompress(SMALL.read_bytes()).splitlines()


def write_lines(path: Path, lines: Iterable[bytes | dict[str, Any]]) -> Path:
    data = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def managed(
    manager: str, fields: Sequence[str], *, time: str = "2026-01-01T00:00:00Z", operation: str = "Update"
) -> Any:
    """Return a managedFields entry that owns `fields`, which are paths with a blank between two steps; @ stands for the
    map itself.
    """
    tree: dict[str, Any] = {}
    for field in fields:
        at = tree
        for step in field.split():
            at = at.setdefault(f"f:{step}" if step != "@" else ".", {})
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsV1": tree}


def endpoints(name: str = "s", *, entries: Sequence[Any] = (), **fields: Any) -> dict[str, Any]:
    """Return Endpoints with these `labels` and `annotations` in the metadata, which contains no resourceVersion."""
    metadata: dict[str, Any] = {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    metadata |= {"name": name, "namespace": "shop", "uid": f"recorded-{name}", "managedFields": list(entries)}
    return {"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, **fields}


def service(name: str = "s", *, selector: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"service-{name}"}
    spec: dict[str, Any] = {
        "clusterIP": "10.96.0.1",
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "protocol": "TCP"}],
    }
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": spec | ({"selector": selector} if selector else {}),
    }


def pod(name: str, ip: str, *, ready: bool = True) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"pod-{name}", "labels": {"app": "s"}}
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"nodeName": "node-a"}, "status": status}


def addresses(*pods: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the subsets that the endpoints controller computes from ready `pods`, each given as (name, ip)."""
    listed = [
        {
            "ip": ip,
            "nodeName": "node-a",
            "targetRef": {"kind": "Pod", "namespace": "shop", "name": name, "uid": f"pod-{name}"},
        }
        for name, ip in pods
    ]
    return [{"addresses": listed, "ports": [{"port": 80, "protocol": "TCP"}]}]


def made_by_hand(ip: str) -> dict[str, Any]:
    """Return Endpoints that look like those of the recorded controller, but have an address that no recorded object
    explains.
    """
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    return endpoints(entries=[managed(KCM, ["subsets"])], labels=labels, subsets=addresses(("nobody", ip)))


class Script:
    """A writer of recordings, which writes event by event; it counts revisions and lets a second
    pass with each event.
    """

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.revision = 0

    def event(self, type: str, obj: dict[str, Any]) -> Script:
        self.revision += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        recorded_at = f"2026-01-01T00:{self.revision // 60:02}:{self.revision % 60:02}.000000Z"
        self.lines.append({"type": type, "object": obj, "recordedAt": recorded_at})
        return self

    def checkpoint(self, name: str) -> Script:
        metadata = {"name": name, "resourceVersion": str(self.revision)}
        self.lines.append(
            {"type": "BOOKMARK", "object": {"kind": "Checkpoint", "apiVersion": "v1", "metadata": metadata}}
        )
        return self

    def write(self, directory: Path) -> Path:
        return write_lines(directory / "script.jsonl", self.lines)

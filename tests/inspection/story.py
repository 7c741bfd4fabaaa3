"""Writes a short history of a cluster that contains data for every query.

The revisions of the history are the same in every database.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.eventlog import Author, Cause, EventLog, EventType, Fence, Outcome, Proposal, open_log
from ctrlmgr.testing import FakeClock

ALICE = Author("alice", "kubectl/v1.36")
KUBELET = Author("system:node:node-a", "kubelet/v1.36")
CONTROLLER = Author("system:controller:endpoint-controller", "ctrlmgr/0.1.0")
LEASE = "leases.coordination.k8s.io/kube-system/kube-controller-manager"
START = parse_time("2026-01-02T03:04:05.000001Z")
HEAD = 16

POD_ADDED, POD_READY, FIRST_WRITE, SECOND_WRITE = 4, 5, 8, 12
"""The revisions of the pod web-0, and of the writes of the Endpoints web that the pod caused."""


def obj(kind: str, name: str, namespace: str = "shop", api_version: str = "v1", **fields: Any) -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", **fields.pop("meta", {})}
    return Object.from_dict({"kind": kind, "apiVersion": api_version, "metadata": metadata, **fields})


def pod(name: str, ip: str, *, ready: bool, **labels: str) -> Object:
    condition = {"type": "Ready", "status": str(ready)}
    status = {"phase": "Running", "podIP": ip, "conditions": [{"type": "Initialized", "status": "True"}, condition]}
    meta = {"labels": {"app": "web", **labels}, "creationTimestamp": "2026-01-02T03:04:05Z"}
    return obj("Pod", name, meta=meta, spec={"nodeName": "node-a"}, status=status)


def endpoints(ready: Sequence[str], unready: Sequence[str] = ()) -> Object:
    def addresses(names: Sequence[str]) -> list[Any]:
        return [
            {"ip": f"10.0.0.{name[-1]}", "nodeName": "node-a", "targetRef": {"kind": "Pod", "name": name}}
            for name in names
        ]

    subset: dict[str, Any] = {"ports": [{"port": 80}]}
    subset |= {"addresses": addresses(ready)} if ready else {}
    subset |= {"notReadyAddresses": addresses(unready)} if unready else {}
    return obj("Endpoints", "web", subsets=[subset])


def endpoint_slice(addresses: Sequence[str]) -> Object:
    ready = [{"addresses": [each], "conditions": {"ready": True}, "nodeName": "node-a"} for each in addresses]
    meta = {"labels": {"kubernetes.io/service-name": "web"}}
    fields: dict[str, Any] = {"addressType": "IPv4", "endpoints": ready or None, "ports": [{"port": 80}]}
    return obj("EndpointSlice", "web-x", api_version="discovery.k8s.io/v1", meta=meta, **fields)


def claim(kind: str, name: str, api_version: str) -> Object:
    reference = {"group": "", "resource": "services", "namespace": "shop", "name": "web"}
    return obj(kind, name, "", api_version, spec={"parentRef": reference})


def lease(holder: str) -> Object:
    name = "kube-controller-manager"
    return obj("Lease", name, "kube-system", "coordination.k8s.io/v1", spec={"holderIdentity": holder})


def tell(log: EventLog, clock: FakeClock) -> None:
    """Write the history; each line is one append, and appends have intervals of one second."""

    def append(*changes: tuple[EventType, Object], author: Author = ALICE, **more: Any) -> None:
        log.append([Proposal(*change, None) for change in changes], author=author, **more)
        clock.step(1)

    def reconcile(id: int, triggers: tuple[int, ...], *, attempt: int = 1) -> Cause:
        return Cause(id, "endpoint-controller", "shop/web", attempt, clock.now(), triggers)

    added, modified, deleted = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
    append((added, obj("Namespace", "shop", "")))
    append(
        (
            added,
            obj(
                "Service",
                "web",
                meta={"annotations": {"nul": "a\0b"}},
                spec={"selector": {"app": "web"}, "clusterIP": "10.96.0.7"},
            ),
        ),
        (added, claim("IPAddress", "10.96.0.7", "networking.k8s.io/v1")),
    )
    append((added, pod("web-0", "10.0.0.0", ready=False)), author=KUBELET)
    append((modified, pod("web-0", "10.0.0.0", ready=True)), author=KUBELET)
    append((added, claim("NodePort", "30080", "internal.ctrlmgr.io/v1")))
    append((added, lease("one")), author=CONTROLLER, fence=Fence(LEASE, 1, takeover=True))
    append(
        (added, endpoints(["web-0"])),
        (added, endpoint_slice(["10.0.0.0", "10.0.0.1"])),
        author=CONTROLLER, fence=Fence(LEASE, 1), cause=reconcile(71, (2, 4, 5)),
    )  # fmt: skip
    log.finish(71, Outcome(1500, "ok"))
    append((added, pod("web-1", "10.0.0.1", ready=True, tier='a "b" \\ ü <&>')), author=KUBELET)
    append((modified, lease("two")), author=CONTROLLER, fence=Fence(LEASE, 2, takeover=True))
    append(
        (modified, endpoints(["web-0", "web-1"])),
        author=CONTROLLER, fence=Fence(LEASE, 2), cause=reconcile(72, (10,), attempt=2),
    )  # fmt: skip
    log.finish(72, Outcome(2500, "error", "the slice was not written"))
    append((deleted, pod("web-0", "10.0.0.0", ready=True)))
    append(
        (modified, endpoints(["web-1"])),
        (modified, endpoint_slice([])),
        author=CONTROLLER, fence=Fence(LEASE, 2), cause=reconcile(73, (12, 13)),
    )  # fmt: skip
    append((deleted, claim("NodePort", "30080", "internal.ctrlmgr.io/v1")))


def write(url: str) -> str:
    """Write the history into an empty database at `url`; return `url`."""
    clock = FakeClock(START)
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True)
    tell(log, clock)
    log.close()
    return url

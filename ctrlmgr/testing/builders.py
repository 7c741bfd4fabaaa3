"""Builds objects for tests. A test sets only the fields that matter; the other fields are as in a healthy cluster.

Guarantees: the same arguments always produce the same bytes. The uid of an object is computed from its name. A test
must not depend on optional fields that the test omits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.object import Object

CREATED = "2026-01-01T00:00:00Z"

Fields = Mapping[str, Any]


def _metadata(name: str, namespace: str, **optional: Any) -> dict[str, Any]:
    fields = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "creationTimestamp": CREATED, **optional}
    return {key: value for key, value in fields.items() if value}


def a_namespace(name: str = "default", *, phase: str = "Active", revision: int = 0) -> Object:
    """Return a Namespace object for a test. If its phase is `Terminating`, the namespace accepts no new objects."""
    metadata = _metadata(name, "")
    body = {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "status": {"phase": phase}}
    return Object.from_dict(body).at(revision)


def a_node(
    name: str = "node-a",
    zone: str = "zone-1",
    *,
    labels: Mapping[str, str] | None = None,
    cpu: str = "4",
    ready: bool = True,
    revision: int = 0,
) -> Object:
    """Return a ready Node; if `zone` or `cpu` is empty, the Node does not have it."""
    in_zone = {"topology.kubernetes.io/zone": zone} if zone else {}
    metadata = _metadata(name, "", labels={"kubernetes.io/hostname": name, **in_zone, **(labels or {})})
    status = {"allocatable": {"cpu": cpu} if cpu else {}, "conditions": [{"type": "Ready", "status": str(ready)}]}
    return Object.from_dict({"kind": "Node", "apiVersion": "v1", "metadata": metadata, "status": status}).at(revision)


def container_port(name: str, number: int, protocol: str = "TCP") -> Fields:
    """Return a named port of a container."""
    return {"name": name, "containerPort": number, "protocol": protocol}


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    ips: Sequence[str] = ("10.0.0.1",),
    ready: bool | None = True,
    ready_since: str | None = None,
    phase: str = "Running",
    ports: Iterable[Fields] = (),
    sidecar_ports: Iterable[Fields] = (),
    node: str = "node-a",
    hostname: str = "",
    subdomain: str = "",
    deleted_at: str | None = None,
    restart_policy: str = "Always",
    uid: str = "",
    revision: int = 0,
) -> Object:
    """Return a Pod; by default, it is ready and labelled `app: web`.

    If `ready` is None, the condition Ready is omitted; `deleted_at` makes the pod terminating. `ports` belong to the
    pod's container. `sidecar_ports` belong to an init container that always restarts.
    """
    metadata = _metadata(name, namespace, labels={"app": "web"} if labels is None else dict(labels))
    if uid:
        metadata["uid"] = uid
    if deleted_at:
        metadata |= {"deletionTimestamp": deleted_at, "deletionGracePeriodSeconds": 30}
    spec: dict[str, Any] = {"containers": [{"name": "main", "ports": list(ports)}], "restartPolicy": restart_policy}
    if sidecar := list(sidecar_ports):
        spec["initContainers"] = [{"name": "sidecar", "restartPolicy": "Always", "ports": sidecar}]
    spec |= {k: v for k, v in {"nodeName": node, "hostname": hostname, "subdomain": subdomain}.items() if v}
    status: dict[str, Any] = {"phase": phase, "conditions": list(_ready_condition(ready, ready_since))}
    if ips:
        status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}
    return Object.from_dict(body).at(revision)


def _ready_condition(ready: bool | None, since: str | None) -> Iterable[Fields]:
    if ready is not None:
        yield {"type": "PodScheduled", "status": "True"}
        yield {"type": "Ready", "status": str(ready)} | ({"lastTransitionTime": since} if since else {})


def service_port(
    name: str = "", port: int = 80, *, target: int | str | None = 8080, protocol: str = "TCP", app_protocol: str = ""
) -> Fields:
    """Return a port of a Service.

    If `target` is None, the target port is omitted, so `port` is also the target port.
    """
    optional = {"name": name, "appProtocol": app_protocol, "targetPort": target}
    return {"port": port, "protocol": protocol, **{key: value for key, value in optional.items() if value}}


def a_service(
    name: str = "web",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    selects_nothing: bool = False,
    ports: Iterable[Fields] | None = None,
    type: str = "ClusterIP",
    cluster_ip: str = "10.96.0.10",
    families: Sequence[str] = ("IPv4",),
    publish_not_ready: bool = False,
    traffic_distribution: str = "",
    created_at: str = CREATED,
    revision: int = 0,
) -> Object:
    """Return a Service; by default, it selects `app: web` and forwards port 80 to 8080.

    If `selects_nothing` is set, the Service has no selector. If `selector={}`, the Service has an empty selector.
    """
    metadata = _metadata(name, namespace, labels=labels, annotations=annotations) | {"creationTimestamp": created_at}
    spec: dict[str, Any] = {"type": type, "ports": [service_port()] if ports is None else list(ports)}
    if not selects_nothing:
        spec["selector"] = {"app": "web"} if selector is None else dict(selector)
    if publish_not_ready:
        spec["publishNotReadyAddresses"] = True
    if traffic_distribution:
        spec["trafficDistribution"] = traffic_distribution
    spec |= {key: value for key, value in {"clusterIP": cluster_ip, "ipFamilies": list(families)}.items() if value}
    return Object.from_dict({"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec}).at(revision)


def endpoints(
    name: str = "web",
    *,
    namespace: str = "default",
    subsets: Sequence[Fields] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    revision: int = 0,
) -> Object:
    """Return an Endpoints object.

    By default, it equals the object that the endpoints controller writes if there are no addresses.
    """
    managed = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    metadata = _metadata(name, namespace, labels=managed if labels is None else labels, annotations=annotations)
    body = {"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, **({"subsets": subsets} if subsets else {})}
    return Object.from_dict(body).at(revision)

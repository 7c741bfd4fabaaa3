"""The `kubectl get` columns of the core group's kinds (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api import quantity
from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import UNKNOWN, Ages
from ctrlmgr.engine.tables.rows import counted
from ctrlmgr.engine.tables.table_printer import (
    NONE,
    UNSET,
    Fields,
    Printer,
    age,
    columns,
    containers,
    joined,
    labels_text,
    printer,
    shown,
)

_ROLE = "node-role.kubernetes.io/"

_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _service(service: Fields, ages: Ages) -> list[Any]:
    spec = at(service, "spec") or {}
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
    return [
        spec.get("type", ""),
        addresses[0] or NONE,
        _external(service, spec),
        joined(map(_port, spec.get("ports") or ())),
        age(service, ages),
        labels_text(spec.get("selector")),
    ]


def _port(port: Mapping[str, Any]) -> str:
    number = f"{port['port']}:{port['nodePort']}" if port.get("nodePort") else port["port"]
    return f"{number}/{port.get('protocol', 'TCP')}"


def _external(service: Fields, spec: Mapping[str, Any]) -> str:
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case "LoadBalancer":
            ingress = at(service, "status", "loadBalancer", "ingress") or ()
            addresses = [each.get("ip") or each.get("hostname", "") for each in ingress]
            return joined([*addresses, *given], "<pending>")
    return joined(given)


def _endpoints(endpoints: Fields, ages: Ages) -> list[Any]:
    found = [each for subset in at(endpoints, "subsets") or () for each in _pairs(subset)]
    return [shown(found), age(endpoints, ages)]


def _pairs(subset: Mapping[str, Any]) -> Iterator[str]:
    addresses = [each["ip"] for each in subset.get("addresses") or ()]
    ports = [each["port"] for each in subset.get("ports") or ()]
    if not subset.get("ports"):
        yield from addresses
    for port in ports:
        for address in addresses:
            yield f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _namespace(namespace: Fields, ages: Ages) -> list[Any]:
    return [at(namespace, "status", "phase") or "", age(namespace, ages)]


def _node(node: Fields, ages: Ages) -> list[Any]:
    info = at(node, "status", "nodeInfo") or {}
    return [
        _node_status(node),
        _roles(at(node, "metadata", "labels") or {}),
        age(node, ages),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Fields) -> str:
    ready = [each for each in at(node, "status", "conditions") or () if each.get("type") == "Ready"]
    words = ["Ready" if each.get("status") == "True" else "NotReady" for each in ready] or ["Unknown"]
    if at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: Mapping[str, str]) -> str:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return joined(sorted(roles))


def _address(node: Fields, type_: str) -> str:
    for each in at(node, "status", "addresses") or ():
        if each.get("type") == type_:
            return str(each.get("address", ""))
    return NONE


def _event(event: Fields, ages: Ages) -> list[Any]:
    first = event.get("firstTimestamp") or event.get("eventTime")
    last, count = _last_seen(event, first)
    involved = event.get("involvedObject") or {}
    name = f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"
    return [
        ages.since(last),
        event.get("type", ""),
        event.get("reason", ""),
        name if involved.get("name") else involved.get("kind", "").lower(),
        involved.get("fieldPath", ""),
        _source(event),
        (event.get("message") or "").strip(),
        ages.since(first),
        count,
        at(event, "metadata", "name"),
    ]


def _last_seen(event: Fields, first: str | None) -> tuple[str | None, int]:
    if series := event.get("series"):
        return series.get("lastObservedTime"), series.get("count", 0)
    return event.get("lastTimestamp") or first, event.get("count") or 1


def _source(event: Fields) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or (event.get("reportingInstance") if not source.get("component") else "")
    return f"{component}, {host}" if component and host else str(component)


def _secret(secret: Fields, ages: Ages) -> list[Any]:
    return [secret.get("type", ""), len(secret.get("data") or ()), age(secret, ages)]


def _access_modes(modes: Any) -> str:
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in modes or ())


def _volume(volume: Fields, ages: Ages) -> list[Any]:
    spec, status = at(volume, "spec") or {}, at(volume, "status") or {}
    claim = spec.get("claimRef")
    phase = status.get("phase", "")
    return [
        quantity.canonical(at(spec, "capacity", "storage") or "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if at(volume, "metadata", "deletionTimestamp") else phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        age(volume, ages),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(claim: Fields, ages: Ages) -> list[Any]:
    spec, status = at(claim, "spec") or {}, at(claim, "status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        "Terminating" if at(claim, "metadata", "deletionTimestamp") else status.get("phase", ""),
        spec.get("volumeName", ""),
        quantity.canonical(at(status, "capacity", "storage") or "0") if bound else "",
        _access_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        age(claim, ages),
        spec.get("volumeMode") or UNSET,
    ]


def _quota(quota: Fields, ages: Ages) -> list[Any]:
    hard, used = at(quota, "status", "hard") or {}, at(quota, "status", "used") or {}
    parts = {name: f"{name}: {used.get(name, '0')}/{limit}" for name, limit in sorted(hard.items())}
    limits = [text for name, text in parts.items() if name.startswith("limits")]
    requests = [text for name, text in parts.items() if not name.startswith("limits")]
    return [", ".join(requests), ", ".join(limits), age(quota, ages)]


def _template(template: Fields, ages: Ages) -> list[Any]:
    names, images = containers(at(template, "template", "spec"))
    return [names, images, labels_text(at(template, "template", "metadata", "labels"))]


def _component(status: Fields, ages: Ages) -> list[Any]:
    healthy: Fields = next((each for each in status.get("conditions") or () if each.get("type") == "Healthy"), {})
    words = {"True": "Healthy", "False": "Unhealthy"}
    return [words.get(healthy.get("status", ""), "Unknown"), healthy.get("message", ""), healthy.get("error", "")]


SERVICE = printer("Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", _service)
ENDPOINTS = printer("Endpoints|Age", _endpoints)
NAMESPACE = printer("Status|Age", _namespace)
NODE = printer("Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime", _node)
CONFIG_MAP = printer("Data|Age", counted("data", "binaryData"))
SECRET = printer("Type|Data|Age", _secret)
SERVICE_ACCOUNT = printer("Age", lambda fields, ages: [age(fields, ages)])
PERSISTENT_VOLUME = printer(
    "Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|+VolumeMode",
    _volume,
)
PERSISTENT_VOLUME_CLAIM = printer(
    "Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode", _claim
)
RESOURCE_QUOTA = printer("Request|Limit|Age", _quota)
POD_TEMPLATE = printer("Containers|Images|Pod Labels", _template)
COMPONENT_STATUS = printer("Status|Message|Error", _component)
EVENT = Printer(
    columns("Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name"), _event, named=False
)


def _new_event(event: Fields, ages: Ages) -> list[Any]:
    """Return the table row of an events.k8s.io Event; some of its fields have other names in the core group."""
    names = {
        "firstTimestamp": "deprecatedFirstTimestamp",
        "lastTimestamp": "deprecatedLastTimestamp",
        "count": "deprecatedCount",
        "source": "deprecatedSource",
        "involvedObject": "regarding",
        "message": "note",
        "reportingComponent": "reportingController",
    }
    return _event({**event, **{name: event.get(here) for name, here in names.items()}}, ages)


NEW_EVENT = EVENT._replace(row=_new_event)
"""The printer of Events of the group events.k8s.io."""

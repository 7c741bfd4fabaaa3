"""Simulated nodes: the templates from which the nodes are created, and the status of each node.

Guarantees: only nodes with the label `MARK` are simulated. An error in a file of nodes is reported with its line and
reason. Fields that other clients write into a node's status, such as extended resources, are kept.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from ctrlmgr.api import quantity
from ctrlmgr.engine.calls.endpoint import SIMULATED
from ctrlmgr.engine.validation.name_formats import subdomain_name
from ctrlmgr.engine.validation.object_meta import validate_metadata
from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.core.node import validate_node
from ctrlmgr.simulation.behaviour import DURATION, NODE_ANNOTATION, compose, place_of, read_time
from ctrlmgr.simulation.csi_objects import MANAGED
from ctrlmgr.simulation.node_devices import read_devices

MARK: Final = SIMULATED
"""The label that marks simulated nodes; its value is "true"."""
CAPACITY: Final[Mapping[str, str]] = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
ADDRESSES: Final = ipaddress.IPv4Network("172.18.0.0/16")
"""The CIDR from which simulated nodes get their addresses."""
IMAGES: Final = (("registry.k8s.io/pause:3.10.1", 318731),)
VERSION: Final = "v1.36.2"
FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
"""The features that a kubelet of the simulated version declares. Admission refuses changes that need a feature which
the node lacks.
"""

_SLOW: Final = re.compile(rf"slow(?: {DURATION})?")
_SLOW_ATTACH: Final = re.compile(rf"slow attach(?: {DURATION})?")
_ATTACH_ERROR, _PROVISIONING_ERROR = "attach error", "provisioning error"
_SLOWNESS: Final = 10.0
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CONDITIONS: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_PRESSURES: Final = {
    "memory pressure": ("MemoryPressure", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "disk pressure": ("DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure"),
    "pid pressure": ("PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}


class Template(NamedTuple):
    """A simulated node that is to be created."""

    name: str
    labels: Mapping[str, str] = {}
    taints: Sequence[Mapping[str, str]] = ()
    capacity: Mapping[str, str] = CAPACITY
    annotations: Mapping[str, str] = {}
    devices: Mapping[str, Sequence[Mapping[str, Any]]] = {}


def templates(text: str) -> list[Template]:
    """Return the templates of the nodes that a number or a file describes.

    Raises `SettingsError` if the file is invalid.
    """
    if not text:
        return []
    if text.isdecimal():
        return [Template(f"node-{number}") for number in range(1, int(text) + 1)]
    if text.removeprefix("-").isdecimal():
        raise SettingsError(f"controllers.nodes: {text}: the number of nodes cannot be negative")
    return _read_file(Path(text).expanduser())


_FIELDS: Final = ("name", "count", "labels", "taints", "capacity", "zone", "annotations", "devices")


def _read_file(path: Path) -> list[Template]:
    node = compose(path, "controllers.nodes")
    if not isinstance(node, yaml.SequenceNode):
        raise SettingsError(f"{path}:1: a list of nodes is expected, each with a `name`")
    found: dict[str, Template] = {}
    for each in node.value:
        for template in _read_node(path, each):
            if template.name in found:
                raise SettingsError(f"{place_of(path, each, 'name')}: two nodes have the name {template.name!r}")
            found[template.name] = template
    return [*found.values()]


def _read_node(path: Path, node: yaml.Node) -> list[Template]:
    def refusal(field: str, what: str) -> SettingsError:
        return SettingsError(f"{place_of(path, node, field)}: {what}")

    fields: Any = yaml.constructor.SafeConstructor().construct_document(node)
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise refusal("name", "a node needs a `name`")
    unknown = min(map(str, fields.keys() - set(_FIELDS)), default="")
    if unknown:
        raise refusal(unknown, f"there is no {unknown!r} in a node; there are: {', '.join(_FIELDS)}")
    if not _NAME.fullmatch(fields["name"]):
        raise refusal("name", f"{fields['name']!r} is not a valid node name")
    tables: dict[str, dict[str, str]] = {}
    for name in ("capacity", "labels", "annotations"):
        table = fields.get(name) or {}
        if not isinstance(table, dict):
            raise refusal(name, f"`{name}` is a table of names and values")
        tables[name] = {str(key): str(value) for key, value in table.items()}
    for name, amount in tables["capacity"].items():
        try:
            quantity.parse(amount)
        except ValueError as error:
            raise refusal("capacity", f"{name}: {amount!r} is not a quantity") from error
    if "zone" in fields:
        tables["labels"]["topology.kubernetes.io/zone"] = str(fields["zone"])
    if found := problems(tables["annotations"]):
        raise refusal("annotations", found[0])
    taints = fields.get("taints") or []
    if not isinstance(taints, list) or not all(
        isinstance(each, dict) and {"key", "effect"} <= each.keys() for each in taints
    ):
        raise refusal("taints", "each of `taints` has a `key` and an `effect`")
    taints = [{name: str(value) for name, value in each.items()} for each in taints]
    count = fields.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise refusal("count", "`count` is a whole number of at least 1")
    names = [fields["name"]] if "count" not in fields else [f"{fields['name']}-{each}" for each in range(1, count + 1)]
    try:
        devices = read_devices(fields.get("devices") or {})
    except ValueError as error:
        raise refusal("devices", str(error)) from error
    capacity = {**CAPACITY, **tables["capacity"]}
    wrong = _validate(Template(names[0], tables["labels"], taints, capacity, tables["annotations"]))
    if wrong is not None:
        field, what = wrong
        raise refusal(field, what)
    return [Template(name, tables["labels"], taints, capacity, tables["annotations"], devices) for name in names]


def _validate(template: Template) -> tuple[str, str] | None:
    """Return the first invalid field of a node and the error; None if the API server would accept the node."""
    node = new_node(template)
    errors = validate_metadata(node["metadata"], namespaced=False, name_check=subdomain_name) + validate_node(node)
    if not errors:
        return None
    place = str(errors[0].field)
    return next((each for each in _FIELDS if each in place), "name"), errors[0].message


def new_node(template: Template) -> dict[str, Any]:
    """Return a node in the form in which its kubelet registers it."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": template.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "simulated",
        **template.labels,
        MARK: "true",
    }
    annotations = {**template.annotations, MANAGED: "true"}
    metadata: dict[str, Any] = {"name": template.name, "labels": labels, "annotations": annotations}
    spec = {"taints": [dict(each) for each in template.taints]} if template.taints else {}
    status = {"capacity": dict(template.capacity), "allocatable": dict(template.capacity)}
    return {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


def is_lost(annotations: Mapping[str, str]) -> bool:
    """Return whether a node behaves as if its machine had disappeared."""
    return "lost" in _stated_conditions(annotations)


def slowness(annotations: Mapping[str, str]) -> float:
    """Return the seconds by which containers start later on a slow node."""
    found = (_SLOW.fullmatch(each) for each in _stated_conditions(annotations))
    return sum(read_time(each[1], each[2]) if each[1] else _SLOWNESS for each in found if each)


def attach_delay(annotations: Mapping[str, str]) -> float:
    """Return the number of seconds for which the attachment of a volume to a node takes."""
    found = (_SLOW_ATTACH.fullmatch(each) for each in _stated_conditions(annotations))
    return sum(read_time(each[1], each[2]) if each[1] else _SLOWNESS for each in found if each)


def attaching_fails(annotations: Mapping[str, str]) -> bool:
    """Return whether volumes cannot be attached to a node."""
    return _ATTACH_ERROR in _stated_conditions(annotations)


def provisioning_fails(annotations: Mapping[str, str]) -> bool:
    """Return whether volumes cannot be created for a node."""
    return _PROVISIONING_ERROR in _stated_conditions(annotations)


def problems(annotations: Mapping[str, str]) -> list[str]:
    """Return the errors in the annotation that describes a node's behaviour."""
    known = {"lost", "not ready", *_PRESSURES, _ATTACH_ERROR, _PROVISIONING_ERROR}
    phrases = ", ".join(sorted({*known, "slow TIME", "slow attach TIME"}))
    return [
        f"{NODE_ANNOTATION}: {each!r} is not a valid phrase; write one of {phrases}"
        for each in _stated_conditions(annotations)
        if each not in known and not _SLOW.fullmatch(each) and not _SLOW_ATTACH.fullmatch(each)
    ]


def _stated_conditions(annotations: Mapping[str, str]) -> list[str]:
    parts = annotations.get(NODE_ANNOTATION, "").split(";")
    return [" ".join(each.split()).lower() for each in parts if each.strip()]


def node_status(node: Mapping[str, Any], address: str, now: str, *, beats: bool = True) -> dict[str, Any]:
    """Return the status of a node at `now`.

    If `beats` is set, the timestamps of the node's heartbeats are renewed.

    The capacity in the existing status is kept, so that a user can change the resources of a node.
    """
    before = node.get("status") or {}
    stated = _stated_conditions(node["metadata"].get("annotations") or {})
    held = before.get("capacity") or dict(CAPACITY)
    old = {each["type"]: each for each in before.get("conditions") or ()}
    wanted = [_condition(each, stated) for each in _CONDITIONS]
    wanted.append(
        ("Ready", "False", "KubeletNotReady", "the node's annotation says not ready")
        if "not ready" in stated
        else ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    )
    ours = {each[0] for each in wanted}
    others = [each for type_, each in old.items() if type_ not in ours]
    conditions = [_stamped(*each, old.get(each[0]), now, beats=beats) for each in wanted]
    return {
        **before,
        "capacity": held,
        "allocatable": before.get("allocatable") or dict(held),
        "conditions": [*others, *conditions],
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(node["metadata"]["name"]),
        "declaredFeatures": before.get("declaredFeatures") or list(FEATURES),
        "images": before.get("images") or [{"names": [name], "sizeBytes": size} for name, size in IMAGES],
    }


def _condition(usual: tuple[str, str, str], stated: Iterable[str]) -> tuple[str, str, str, str]:
    for phrase in stated:
        if phrase in _PRESSURES and _PRESSURES[phrase][0] == usual[0]:
            type_, reason, message = _PRESSURES[phrase]
            return type_, "True", reason, message
    return usual[0], "False", usual[1], usual[2]


def _stamped(
    type_: str, status: str, reason: str, message: str, old: Mapping[str, Any] | None, now: str, *, beats: bool
) -> dict[str, Any]:
    same = old is not None and old.get("status") == status
    return {
        "type": type_,
        "status": status,
        "lastHeartbeatTime": now if beats or old is None or not same else old.get("lastHeartbeatTime"),
        "lastTransitionTime": old.get("lastTransitionTime") if same and old is not None else now,
        "reason": reason,
        "message": message,
    }


def _info(name: str) -> dict[str, str]:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "simulated",
        "osImage": "simulated",
        "containerRuntimeVersion": "simulated://1",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def free_address(network: ipaddress.IPv4Network | ipaddress.IPv6Network, taken: Iterable[str], skip: int = 1) -> str:
    """Return the lowest unused address of a network; empty if there is none.

    The first `skip` addresses are never returned.
    """
    used = set(taken)
    first = int(network.network_address)
    kind = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    last = min(network.num_addresses - 1, skip + len(used) + 1)
    for offset in range(skip, last + 1):
        address = str(kind(first + offset))
        if address not in used:
            return address
    return ""


def lease(name: str, uid: str, now: str) -> dict[str, Any]:
    """Return the Lease that a kubelet renews as its heartbeat; `now` is a MicroTime."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
    }

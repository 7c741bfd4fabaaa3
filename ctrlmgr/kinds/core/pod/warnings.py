"""What a pod's author should know although it is allowed: what is deprecated, ignored, or hardly meant.

Rules come from Kubernetes' `pkg/api/pod/warnings.go` and `pkg/api/node/util.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api.field import Path
from ctrlmgr.api.go_text import quote
from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.kinds.core.pod.annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from ctrlmgr.kinds.core.pod.defaults import containers_of
from ctrlmgr.kinds.core.pod.scheduling import PREFERRED, REQUIRED

_NO_MATCH = "a null labelSelector results in matching no pod"
_USE_FIELD = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
VOLUMES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
"""Sources of volumes that are no more, as they are called in warnings, and what became of them."""

_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(owner: Mapping[str, Any], path: Path) -> list[str]:
    """Return the warnings for a pod, or for a template at `path` (the empty path for a pod)."""
    spec, metadata = owner.get("spec") or {}, owner.get("metadata") or {}
    below = path.child("spec")
    found: list[str] = []
    for warn in (_placement, _volumes, _repetitions):
        found += warn(spec, below)
    if annotations := metadata.get("annotations"):
        found += _annotations(annotations, spec, path)
    if overhead := spec.get("overhead"):
        found += _fractions(overhead, below.child("overhead"))
    for kind, index, container in containers_of(dict(spec)):
        if container.get("resources") or container.get("env"):
            found += _container(container, below.child(kind).at(index))
    found += _ports(spec, below)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = below.child("terminationGracePeriodSeconds")
        found.append(f"{where}: must be >= 0; negative values are invalid and will be treated as 1")
    return found


def _placement(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    if not (spec.get("nodeSelector") or spec.get("affinity") or spec.get("topologySpreadConstraints")):
        return
    for key in spec.get("nodeSelector") or ():
        if key in _NODE_LABELS:
            yield f"{path.child('nodeSelector').key(key)}: {_NODE_LABELS[key]}"
    affinity = spec.get("affinity") or {}
    node, below = affinity.get("nodeAffinity") or {}, path.child("affinity", "nodeAffinity")
    for index, term in enumerate((node.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from node_term_warnings(term, below.child(REQUIRED, "nodeSelectorTerms").at(index))
    for index, term in enumerate(node.get(PREFERRED) or ()):
        yield from node_term_warnings(
            term.get("preference") or {}, below.child(PREFERRED).at(index).child("preference")
        )
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = path.child("topologySpreadConstraints").at(index), constraint.get("topologyKey") or ""
        if key in _NODE_LABELS:
            yield f"{at.child('topologyKey')}: {key} is {_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at.child('labelSelector')}: {_NO_MATCH}"
    for field in ("podAffinity", "podAntiAffinity"):
        yield from _pod_terms(affinity.get(field) or {}, path.child("affinity", field))


def node_term_warnings(term: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Yield the warnings for a term of a node selector: labels that are called otherwise today."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if key in _NODE_LABELS:
            yield f"{path.child('matchExpressions').at(index).child('key')}: {key} is {_NODE_LABELS[key]}"


def _pod_terms(affinity: Mapping[str, Any], path: Path) -> Iterator[str]:
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path.child(REQUIRED).at(index).child('labelSelector')}: {_NO_MATCH}"
    for index, weighted in enumerate(affinity.get(PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{path.child(PREFERRED).at(index).child('podAffinityTerm', 'labelSelector')}: {_NO_MATCH}"


def _annotations(annotations: Mapping[str, str], spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    below = path.child("metadata", "annotations")
    for key, message in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{below.key(key)}: {message}"
    context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and context.get("seccompProfile") is None:
        yield f"{below.key(SECCOMP_POD)}: {_USE_FIELD}"
    for _, _, container in containers_of(dict(spec)):
        name, own = container.get("name") or "", container.get("securityContext") or {}
        if (key := SECCOMP_CONTAINER + name) in annotations and own.get("seccompProfile") is None:
            yield f"{below.key(key)}: {_USE_FIELD}"
        profile = own.get("appArmorProfile") or context.get("appArmorProfile")
        if path and profile is None and (key := APPARMOR + name) in annotations:
            yield f'{below.key(key)}: deprecated since v1.30; use the "appArmorProfile" field instead'


def _volumes(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for field, (shown, message) in VOLUMES.items():
            if volume.get(field) is not None:
                yield f"{path.child('volumes').at(index).child(shown)}: {message}"


def _repetitions(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        values = [each.get(key) or "" for each in spec.get(field) or ()]
        for index, value in enumerate(values):
            if value in values[:index]:
                yield f"{path.child(field).at(index).child(key)}: duplicate {key} {quote(value)}"
        if key == "name":
            for index in (index for index, value in enumerate(values) if not value):
                yield f'{path.child(field).at(index).child(key)}: invalid empty name ""'


def _container(container: Mapping[str, Any], path: Path) -> Iterator[str]:
    resources = container.get("resources") or {}
    for field in ("limits", "requests"):
        if amounts := resources.get(field):
            yield from _fractions(amounts, path.child("resources", field))
    variables = container.get("env") or ()
    if len(variables) < 2:
        return
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        builds_on = variable.get("valueFrom") is None and value != reference and reference in value
        if name in seen and not builds_on:
            message = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            yield f"{path.child('env').at(index)}: {message}"
        seen.add(name)


def _fractions(amounts: Mapping[str, str], path: Path) -> Iterator[str]:
    for name in _BYTES:
        amount = amounts.get(name)
        if amount and parse(amount) % WHOLE:
            yield f"{path.key(name)}: fractional byte value {quote(amount)} is invalid, must be an integer"


def _ports(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Warn of ports that are there twice, which is harmless until they are applied or exposed."""
    taken: dict[tuple[int, str], list[tuple[Path, str, int]]] = {}
    for kind, number, container in containers_of(dict(spec)):
        for index, port in enumerate(container.get("ports") or ()):
            at = Path(f"{path}.{kind}[{number}].ports[{index}]")
            address, host_port = port.get("hostIP") or "", port.get("hostPort") or 0
            if address and not host_port:
                yield f"{at}: hostIP set without hostPort: {_shown(port)}"
            same = taken.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
            for other, other_address, other_host_port in same:
                if (address, host_port) == (other_address, other_host_port):
                    yield f"{at}: duplicate port definition with {other}"
                elif not host_port or not other_host_port:
                    yield f"{at}: overlapping port definition with {other}"
                elif host_port == other_host_port and bool(address) != bool(other_address):
                    yield f"{at}: dangerously ambiguous port definition with {other}"
            same.append((at, address, host_port))


def _shown(port: Mapping[str, Any]) -> str:
    """Write a port as Go's `%+v` does."""
    values = (
        ("Name", port.get("name") or ""),
        ("HostPort", port.get("hostPort") or 0),
        ("ContainerPort", port.get("containerPort") or 0),
        ("Protocol", port.get("protocol") or ""),
        ("HostIP", port.get("hostIP") or ""),
    )
    return "{" + " ".join(f"{name}:{value}" for name, value in values) + "}"

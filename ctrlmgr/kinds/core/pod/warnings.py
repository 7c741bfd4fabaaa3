"""Warns about fields of valid pods that are deprecated, have no effect, or are probably a mistake.

Source: Kubernetes `pkg/api/pod/warnings.go` and `pkg/api/node/util.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, NamedTuple

from ctrlmgr.api.field import Path
from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.api.warning_limits import limited_warnings
from ctrlmgr.engine.validation.ip_validation import ip_warnings
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.core.claim_spec import claim_warnings
from ctrlmgr.kinds.core.pod.annotations import APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD, apparmor_field
from ctrlmgr.kinds.core.pod.defaults import containers_of
from ctrlmgr.kinds.core.pod.scheduling import PREFERRED, REQUIRED
from ctrlmgr.kinds.core.pod.volumes.overlaps import overlapping_paths

_NO_MATCH = "a null labelSelector results in matching no pod"
_USE_FIELD = 'non-functional in v1.27+; use the "seccompProfile" field instead'
NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
"""Deprecated node labels, with the warning for each label."""

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
"""Removed volume sources, keyed by their names in warnings, with the replacement of each source."""

_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(owner: Mapping[str, Any], path: Path) -> list[str]:
    """Return the warnings for a pod, or for the pod template at `path`; the path of a pod is empty.

    The function `limited_warnings` can limit the number of warnings.
    """
    return limited_warnings(_found(owner, path))


def _found(owner: Mapping[str, Any], path: Path) -> Iterator[str]:
    spec, metadata = owner.get("spec") or {}, owner.get("metadata") or {}
    below = path.child("spec")
    for warn in (_placement, _volumes, _repetitions):
        yield from warn(spec, below)
    if annotations := metadata.get("annotations"):
        yield from _annotations(annotations, spec, path)
    if overhead := spec.get("overhead"):
        yield from _fractions(overhead, below.child("overhead"))
    for kind, index, container in containers_of(dict(spec)):
        if container.get("resources") or container.get("env"):
            yield from _container(container, below.child(kind).at(index))
    yield from _ports(spec, below)
    yield from _port_names(spec, below)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = below.child("terminationGracePeriodSeconds")
        yield f"{where}: must be >= 0; negative values are invalid and will be treated as 1"
    yield from _addresses(spec, below)


def _port_names(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    first: dict[str, Path] = {}
    for kind, number, container in containers_of(dict(spec)):
        for index, port in enumerate(container.get("ports") or ()):
            at, name = path.child(kind).at(number).child("ports").at(index), port.get("name") or ""
            if name and (other := first.setdefault(name, at)) is not at:
                use = f"services and probes that select ports by name will use {other}"
                yield f"{at}: duplicate port name {quote(name)} with {other}, {use}"


def _addresses(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    for index, address in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(path.child("dnsConfig", "nameservers").at(index), address)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(path.child("hostAliases").at(index).child("ip"), alias.get("ip") or "")


def _placement(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    if not (spec.get("nodeSelector") or spec.get("affinity") or spec.get("topologySpreadConstraints")):
        return
    for key in spec.get("nodeSelector") or ():
        if key in NODE_LABELS:
            yield f"{path.child('nodeSelector').key(key)}: {NODE_LABELS[key]}"
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
        if key in NODE_LABELS:
            yield f"{at.child('topologyKey')}: {key} is {NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at.child('labelSelector')}: {_NO_MATCH}"
    for field in ("podAffinity", "podAntiAffinity"):
        yield from _pod_terms(affinity.get(field) or {}, path.child("affinity", field))


def node_term_warnings(term: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Yield the warnings about deprecated labels in a term of a node selector."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if key in NODE_LABELS:
            yield f"{path.child('matchExpressions').at(index).child('key')}: {key} is {NODE_LABELS[key]}"


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
        if not path or own.get("appArmorProfile") is not None or (key := APPARMOR + name) not in annotations:
            continue
        profile = context.get("appArmorProfile")
        if profile is None or profile != apparmor_field(annotations[key]):
            yield f'{below.key(key)}: deprecated since v1.30; use the "appArmorProfile" field instead'


def _volumes(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    for index, volume in enumerate(volumes):
        at = path.child("volumes").at(index)
        for field, (shown, message) in VOLUMES.items():
            if volume.get(field) is not None:
                yield f"{at.child(shown)}: {message}"
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            below = at.child("ephemeral", "volumeClaimTemplate", "spec")
            yield from claim_warnings(template.get("spec") or {}, below)
    for volume in volumes:
        yield from overlapping_paths(volume)


def _repetitions(spec: Mapping[str, Any], path: Path) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        values = [each.get(key) or "" for each in spec.get(field) or ()]
        for index in sorted(repeated(values)):
            yield f"{path.child(field).at(index).child(key)}: duplicate {key} {quote(values[index])}"
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
    """Warn about duplicate ports, which become a problem only when the pod is applied (`kubectl apply`) or exposed."""
    taken: dict[tuple[int, str], _PortDefinitions] = {}
    for kind, number, container in containers_of(dict(spec)):
        for index, port in enumerate(container.get("ports") or ()):
            at = Path(f"{path}.{kind}[{number}].ports[{index}]")
            address, host_port = port.get("hostIP") or "", port.get("hostPort") or 0
            if address and not host_port:
                yield f"{at}: hostIP set without hostPort: {_shown(port)}"
            key = (port.get("containerPort") or 0, port.get("protocol") or "")
            if key not in taken:
                taken[key] = _PortDefinitions()
            yield from taken[key].take(_Port(at, address, host_port))


class _Port(NamedTuple):
    at: Path
    address: str
    host_port: int


class _PortDefinitions:
    """The definitions of ports with the same number in one pod.

    A new definition of a port is compared only with the earlier definitions of the same port that conflict with it.
    """

    def __init__(self) -> None:
        self._all: list[_Port] = []
        self._on_no_host: list[int] = []
        self._with_address: dict[int, list[int]] = {}
        self._without: dict[int, list[int]] = {}
        self._same: dict[tuple[str, int], list[int]] = {}

    def take(self, port: _Port) -> Iterator[str]:
        """Yield the warnings for one more port definition, in the order of the conflicting earlier definitions."""
        at, address, host_port = port
        for each in map(self._all.__getitem__, self._conflicts(address, host_port)):
            if (address, host_port) == (each.address, each.host_port):
                yield f"{at}: duplicate port definition with {each.at}"
            elif not host_port or not each.host_port:
                yield f"{at}: overlapping port definition with {each.at}"
            else:
                yield f"{at}: dangerously ambiguous port definition with {each.at}"
        number = len(self._all)
        self._all.append(port)
        if not host_port:
            self._on_no_host.append(number)
            return
        (self._with_address if address else self._without).setdefault(host_port, []).append(number)
        self._same.setdefault((address, host_port), []).append(number)

    def _conflicts(self, address: str, host_port: int) -> Iterable[int]:
        if not host_port:
            return range(len(self._all))
        others = self._without if address else self._with_address
        return merge(self._on_no_host, others.get(host_port, ()), self._same.get((address, host_port), ()))


def _shown(port: Mapping[str, Any]) -> str:
    """Format a port in the same way as Go's `%+v`."""
    values = (
        ("Name", port.get("name") or ""),
        ("HostPort", port.get("hostPort") or 0),
        ("ContainerPort", port.get("containerPort") or 0),
        ("Protocol", port.get("protocol") or ""),
        ("HostIP", port.get("hostIP") or ""),
    )
    return "{" + " ".join(f"{name}:{value}" for name, value in values) + "}"

"""A DaemonSet's pods and their nodes: creates the pod of a node, and finds a pod's node and template.

Guarantees, as in Kubernetes (`pkg/controller/daemon/util/daemonset_util.go`): the node affinity of a new pod requires
the node by name. The required node affinity replaces the affinity terms of the template. The scheduler, not the
controller, binds the pod to the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.daemonset.view import DaemonSet, Pods, template_generation
from ctrlmgr.controllers.workloads.controlled_pods import created_at
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.pod_control import pod_from_template

HASH_LABEL: Final = "controller-revision-hash"
GENERATION_LABEL: Final = "pod-template-generation"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_for(owner: Owner, node: str, hash_: str) -> dict[str, Any]:
    """Return a new pod for a node, from the template whose revision has the hash `hash_`."""
    view, template = owner.object.view(DaemonSet), owner.object.view(DaemonSet).template
    metadata = dict(template.get("metadata") or {})
    labels = dict(metadata.get("labels") or {})
    generation = template_generation(owner.object)
    if generation is not None:
        labels[GENERATION_LABEL] = str(generation)
    labels[HASH_LABEL] = hash_
    spec = {**view.pod_spec, "affinity": _affinity(view.pod_spec.get("affinity") or {}, node)}
    return pod_from_template({"metadata": {**metadata, "labels": labels}, "spec": spec}, owner)


def _affinity(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"nodeSelectorTerms": [term]}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required}}


def target_node(pod: Object) -> str | None:
    """Return the node to which a pod is bound, or which it requires by name; None if there is no such node."""
    node = pod.view(Pod).spec.node_name
    if node:
        return node
    affinity = (pod.to_dict().get("spec") or {}).get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                values = field.get("values") or []
                return str(values[0]) if len(values) == 1 else None
    return None


def by_node(pods: Iterable[Object], *, ended_too: bool = False) -> Pods:
    """Group pods by node; terminating pods that have ended are included only if `ended_too` is set."""
    found = defaultdict(list)
    for pod in pods:
        if not ended_too and pod.is_terminating and pod.view(Pod).is_terminal:
            continue
        node = target_node(pod)
        if node is not None:
            found[node].append(pod)
    return found


def is_updated(daemon_set: Object, pod: Object, hash_: str) -> bool:
    """Return whether a pod was created from the template that has the given hash."""
    generation = template_generation(daemon_set)
    same = generation is not None and pod.labels.get(GENERATION_LABEL) == str(generation)
    return same or (bool(hash_) and pod.labels.get(HASH_LABEL) == hash_)


def oldest_first(pods: Iterable[Object]) -> list[Object]:
    """Return pods in the order of preference: bound pods first, then the oldest pods, then in the order of names."""
    return sorted(pods, key=lambda pod: (not pod.view(Pod).spec.node_name, created_at(pod), pod.name))

"""What Kubernetes' default admission makes of every pod: its priority, two tolerations, its node's topology labels.

Guarantees: fields are set in place; managers of fields never own them, because admission comes after the caller's
fields have been attributed.

Rules come from Kubernetes' `plugin/pkg/admission/{priority,defaulttolerationseconds,podtopologylabels}`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.refusals import forbidden
from ctrlmgr.engine.strategy import Context, View
from ctrlmgr.kinds.core.pod.scheduling import DEFAULT_TOLERATIONS

NODES = Resource("", "nodes")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "priorityclasses")
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")

_PREEMPTION_POLICY = "PreemptLowerPriority"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admit_new_pod(ctx: Context, pod: Unstructured) -> None:
    """Complete a pod that is being created; raises `Forbidden`."""
    spec = pod.setdefault("spec", {})
    _set_priority(ctx.view, _name(pod), spec)
    _add_tolerations(spec)
    node = spec.get("nodeName")
    if node and (labels := topology_labels(ctx.view, node)):
        metadata = metadata_of(pod)
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}


def admit_changed_pod(new: Unstructured, old: Unstructured) -> None:
    """Complete a pod that is being changed with what its creation gave it."""
    spec = new.setdefault("spec", {})
    for field in ("priority", "preemptionPolicy"):
        before = (old.get("spec") or {}).get(field)
        if spec.get(field) is None and before is not None:
            spec[field] = before
    _add_tolerations(spec)


def topology_labels(view: View, node: str) -> dict[str, str]:
    """Return the labels that a node gives its pods; none if there is no such node."""
    found = view.get(NODES, Key("", node))
    return {key: found.labels[key] for key in TOPOLOGY_LABELS if key in found.labels} if found else {}


def _name(pod: Unstructured) -> str:
    metadata = metadata_of(pod)
    return metadata.get("name") or metadata.get("generateName") or ""


def _set_priority(view: View, name: str, spec: dict[str, Any]) -> None:
    class_name, priority, policy = _priority_class(view, name, spec.get("priorityClassName") or "")
    given = spec.get("priority")
    computed = "must not be provided in pod spec; priority admission controller computed"
    if given is not None and given != priority:
        detail = f"the integer value of priority ({given}) {computed} {priority} from the given PriorityClass name"
        raise forbidden(PODS, name, detail)
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        detail = f"the string value of PreemptionPolicy ({given}) {computed} {policy} from the given PriorityClass name"
        raise forbidden(PODS, name, detail)
    if class_name:
        spec["priorityClassName"] = class_name
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _priority_class(view: View, name: str, class_name: str) -> tuple[str, int, str]:
    """Return the name, value and preemption policy of the class a pod is in, the default one if it names none."""
    if class_name:
        found = view.get(PRIORITY_CLASSES, Key("", class_name))
        if found is None and class_name in _SYSTEM_CLASSES:
            return class_name, _SYSTEM_CLASSES[class_name], _PREEMPTION_POLICY
        if found is None:
            raise forbidden(PODS, name, f"no PriorityClass with name {class_name} was found")
        return _read_class(found)
    classes = [_read_class(each) for each in view.list(PRIORITY_CLASSES) if each.to_dict().get("globalDefault")]
    return min(classes, key=lambda each: each[1]) if classes else ("", 0, _PREEMPTION_POLICY)


def _read_class(found: Object) -> tuple[str, int, str]:
    fields = found.to_dict()
    return found.name, fields.get("value") or 0, fields.get("preemptionPolicy") or _PREEMPTION_POLICY


def _add_tolerations(spec: dict[str, Any]) -> None:
    """Let a pod outlive a short failure of its node, unless it says how long."""
    given = spec.get("tolerations") or ()
    effective = [each.get("key") or "" for each in given if (each.get("effect") or "NoExecute") == "NoExecute"]
    missing = [each for each in DEFAULT_TOLERATIONS if each["key"] not in effective and "" not in effective]
    if missing:
        spec["tolerations"] = [*given, *(dict(each) for each in missing)]

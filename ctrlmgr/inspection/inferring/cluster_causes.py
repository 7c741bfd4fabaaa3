"""Infers causes of changes to nodes, namespaces, bindings, and the objects that every namespace contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.resource import NAMESPACES, NODES, Key
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.deletions import binding, disruption, is_terminating, taint_reason
from ctrlmgr.inspection.inferring.inference import Inference, inferred
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step, newest

_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_GIFTS: Final[Mapping[tuple[str, str], str]] = {
    ("serviceaccounts", "default"): "serviceaccount-controller",
    ("configmaps", "kube-root-ca.crt"): "root-ca-certificate-publisher-controller",
}
"""The objects that every namespace contains, each with the controller that creates it."""


def infer_namespace(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a write to a terminating namespace."""
    if step.previous is None or not is_terminating(step.before) or not (step.changes("status") or step.changes("spec")):
        return None
    own = past.history(NAMESPACES, step.key, until=step.revision)
    mark = newest(own, lambda each: is_terminating(each.after) and not is_terminating(each.before))
    return inferred("namespace-controller", "it is terminating", [(mark, "the namespace's deletion")])


def infer_namespace_content(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of the creation of an object that every namespace contains."""
    giver = _GIFTS.get((str(step.resource), step.key.name))
    if giver is None or step.type is not EventType.ADDED:
        return None
    own = past.history(step.resource, step.key, until=step.revision)
    if own:  # the object existed before, and is created again
        return inferred(giver, "every namespace has one", [(own[-1], "the previous one was deleted")])
    space = newest(past.history(NAMESPACES, Key("", step.key.namespace), until=step.revision), _is_new)
    return inferred(giver, "every namespace has one", [(space, "the namespace was created")])


def _is_new(step: Step) -> bool:
    return step.type is EventType.ADDED


def infer_binding(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a pod's binding to a node.

    The cause is the pod's creation, unless the pod had to wait for a node.
    """
    if step.previous is None or at(step.before, "spec", "nodeName") or not at(step.after, "spec", "nodeName"):
        return None
    came = newest(past.history(step.resource, step.key, until=step.revision), _is_new)
    if _condition(step.before, "PodScheduled").get("status") == "False":
        return inferred("kube-scheduler", "a pending pod was bound to a node", [])
    return inferred("kube-scheduler", "a pod was bound to a node", [(came, "the pod was created")])


def infer_pod_status(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a write that a controller or kubelet made to a pod's status or finalizers."""
    if step.previous is None:
        return None
    had, has = (at(each, "metadata", "finalizers") or () for each in (step.before, step.after))
    if _TRACKING in had and _TRACKING not in has:
        return inferred(
            "job-controller", f"it removed its finalizer {_TRACKING}", [(step.previous, "the pod had terminated")]
        )
    node = str(at(step.after, "spec", "nodeName") or "")
    machine = past.history(NODES, Key("", node), until=step.revision)
    reason = disruption(step.after)
    if reason == "DeletionByTaintManager" and not disruption(step.before):
        reason_text = f"it wrote the condition {reason}"
        return inferred("taint-eviction-controller", reason_text, [taint_reason(step, past)])
    if step.actor == "kube-controller-manager" and _lost_readiness(step):
        lost = newest(machine, _flips_readiness)
        bound = binding(step, past)
        is_newer = lost is not None and bound is not None and bound.revision > lost.revision
        cause = (bound, f"it was bound to {node} then") if is_newer else (lost, _readiness_told(lost))
        return inferred("node-lifecycle-controller", f"its node {node} was not ready", [cause])
    return _of_kubelet(step)


def _of_kubelet(step: Step) -> Inference | None:
    """Infer the cause of the first status that a kubelet writes to a pod."""
    bound = step.previous
    if bound is None or step.actor != "kubelet" or at(bound.before, "spec", "nodeName"):
        return None
    if not at(bound.after, "spec", "nodeName") or not step.changes("status"):
        return None
    return inferred("kubelet", "its field manager is a kubelet", [(bound, "the pod was bound to its node")])


def infer_node(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a write by the node-lifecycle-controller to a node."""
    if step.previous is None or step.actor != "kube-controller-manager":
        return None
    if _condition(step.after, "Ready").get("status") == "Unknown" and _flips_readiness(step):
        return inferred("node-lifecycle-controller", "its kubelet had not reported within the grace period", [])
    if not step.changes("spec", "taints"):
        return None
    own = past.history(NODES, step.key, until=step.revision)
    flip = newest(own, lambda each: _flips_readiness(each) or each.changes("spec", "unschedulable"))
    return inferred(
        "node-lifecycle-controller", "it writes the taints for node conditions", [(flip, _readiness_told(flip))]
    )


def _condition(fields: Mapping[str, Any], type: str) -> Mapping[str, Any]:
    conditions = at(fields, "status", "conditions") or ()
    return next((each for each in conditions if each.get("type") == type), {})


def _lost_readiness(pod: Step) -> bool:
    was, now = (_condition(each, "Ready").get("status") for each in (pod.before, pod.after))
    return was == "True" and now == "False"


def _flips_readiness(node: Step) -> bool:
    return _condition(node.before, "Ready").get("status") != _condition(node.after, "Ready").get("status")


def _readiness_told(node: Step | None) -> str:
    if node is None:
        return ""
    was, now = (_condition(each, "Ready").get("status", "none") for each in (node.before, node.after))
    return f"{node.key.name} Ready {was}→{now}"

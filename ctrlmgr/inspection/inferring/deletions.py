"""Infers causes of deletions: a deleted namespace or owner, fewer replicas, or a lost node.

In a recording, a deletion event does not contain the author of the deletion. Therefore an author is inferred only if
the earlier state explains the deletion unambiguously.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.inference import Inference, inferred
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step, newest
from ctrlmgr.inspection.inferring.owner_causes import Owner, node_meant, owned_pods, owner_of
from ctrlmgr.inspection.inferring.status_causes import is_active, is_ready

_SCALED: Final = frozenset({"replicaset-controller", "replicationcontroller-controller", "statefulset-controller"})
_REVISION_LABEL: Final = "controller-revision-hash"


def is_terminating(fields: Mapping[str, Any]) -> bool:
    """Return whether an object is terminating."""
    return at(fields, "metadata", "deletionTimestamp") is not None


def infer_deletion(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of an object's deletion, or of its deletion request."""
    before = step.before if step.previous is not None else step.fields
    if step.type is EventType.DELETED and is_terminating(before):
        return _infer_removal(step, past)
    if step.type is not EventType.DELETED and not (is_terminating(step.after) and not is_terminating(before)):
        return None
    if step.resource == NAMESPACES:
        return None
    disruption_text = _infer_disruption(step, past) if step.resource == PODS else None
    if disruption_text is not None:
        return disruption_text
    owner = owner_of(step, past)
    is_orphan = owner is not None and _is_gone_or_terminating(owner)
    leaving = _namespace_deletion(step, past)
    if leaving is not None and not is_orphan:
        return inferred("namespace-controller", "its namespace is terminating", [(leaving, "the namespace's deletion")])
    if owner is None or leaving is not None:
        return None
    if is_orphan:
        gone = newest(owner.steps, lambda each: each.type is EventType.DELETED or is_terminating(each.after))
        return inferred(
            "garbage-collector-controller", f"its owner {owner.key.name} was deleted", [(gone, "the owner's deletion")]
        )
    return _infer_scale_down(step, owner, past) if step.resource == PODS else None


def _infer_removal(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of the removal of a terminating object."""
    own = past.history(step.resource, step.key, until=step.revision)
    mark = newest(own, lambda each: is_terminating(each.after) and not is_terminating(each.before))
    if step.resource == NAMESPACES:
        return inferred("namespace-controller", "it contained no more objects", [(mark, "the namespace's deletion")])
    node = node_meant(step.fields) if step.resource == PODS else ""
    if not node:
        return None
    machine_steps = past.history(NODES, Key("", node), until=step.revision)
    machine = newest(machine_steps)
    if mark is not None and at(mark.after, "metadata", "deletionGracePeriodSeconds") == 0:
        # without a grace period, the deletion request and the removal have the same cause
        return infer_deletion(mark, past)
    if machine is not None and machine.type is EventType.DELETED:
        return inferred(
            "pod-garbage-collector-controller", f"its node {node} was deleted", [(machine, "the node was deleted")]
        )
    flip = newest(machine_steps, lambda each: is_ready(each.before) != is_ready(each.after))
    if flip is not None and mark is not None and flip.revision > mark.revision:
        return inferred("kubelet", f"its containers had stopped on {node}, which had not reported for some time", [])
    if machine is not None and not is_ready(machine.after):
        return inferred("kubelet", f"its containers had stopped on {node}, which had not reported", [])
    return inferred("kubelet", f"its containers had stopped on {node}", [(mark, "its deletion was requested")])


def _namespace_deletion(step: Step, past: PastSteps) -> Step | None:
    """Return the step in which an object's namespace became terminating; None if the namespace is not terminating."""
    if not step.key.namespace:
        return None
    steps = past.history(NAMESPACES, Key("", step.key.namespace), until=step.revision)
    if not steps or not is_terminating(steps[-1].after):
        return None
    return newest(steps, lambda each: is_terminating(each.after) and not is_terminating(each.before))


def _is_gone_or_terminating(owner: Owner) -> bool:
    return bool(owner.steps) and (owner.steps[-1].type is EventType.DELETED or is_terminating(owner.steps[-1].after))


def _infer_disruption(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a pod's deletion from its condition DisruptionTarget."""
    reason = disruption(step.fields)
    node = node_meant(step.fields)
    steps = past.history(NODES, Key("", node), until=step.revision)
    if reason == "DeletionByTaintManager":
        return inferred("taint-eviction-controller", f"its condition says {reason}", [taint_reason(step, past)])
    if reason == "DeletionByPodGC":
        gone = newest(steps, lambda each: each.type is EventType.DELETED)
        return inferred(
            "pod-garbage-collector-controller", f"its condition says {reason}", [(gone, f"{node} was deleted")]
        )
    return None


def disruption(pod: Mapping[str, Any]) -> str:
    """Return the reason in a pod's condition DisruptionTarget; empty if the pod does not have the condition."""
    conditions = at(pod, "status", "conditions") or ()
    return next((str(each.get("reason", "")) for each in conditions if each.get("type") == "DisruptionTarget"), "")


def taint_reason(pod: Step, past: PastSteps) -> tuple[Step | None, str]:
    """Return the step that made a node's taint affect a pod: the taint's addition, or the pod's later binding."""
    name = node_meant(pod.fields)
    node = past.history(NODES, Key("", name), until=pod.revision)
    taint = newest(node, lambda each: _evicting(each.after) > _evicting(each.before))
    bound = binding(pod, past)
    if taint is not None and bound is not None and bound.revision > taint.revision:
        return bound, f"it was bound to {name}, which had a taint"
    return taint, f"{name}'s taint"


def binding(pod: Step, past: PastSteps) -> Step | None:
    """Return the step that bound a pod to its node."""
    own = past.history(PODS, pod.key, until=pod.revision)
    return newest(own, lambda each: each.changes("spec", "nodeName") and each.type is not EventType.DELETED)


def _evicting(node: Mapping[str, Any]) -> set[str]:
    return {str(each.get("key")) for each in at(node, "spec", "taints") or () if each.get("effect") == "NoExecute"}


def _infer_scale_down(step: Step, owner: Owner, past: PastSteps) -> Inference | None:
    """Infer that an owner's controller deleted a pod, because of too many pods or an outdated revision."""
    edit = owner.edit
    if edit is None or owner.controller not in _SCALED:
        return None
    desired = at(edit.after, "spec", "replicas")
    last = {each.key: each for each in owned_pods(owner.uid, step, past)}
    active = sum(1 for each in last.values() if each.type is not EventType.DELETED and is_active(each.fields))
    if isinstance(desired, int) and active > desired:
        why = f"{owner.key.name} had {active} pods and needed {desired}"
        return inferred(owner.controller, f"it belongs to {owner.resource} {owner.key.name}", [(edit, why)])
    return _infer_replacement(step, owner, edit)


def _infer_replacement(step: Step, owner: Owner, edit: Step) -> Inference | None:
    """Infer that a StatefulSet replaced a pod of an older revision."""
    target = at(owner.steps[-1].after, "status", "updateRevision")
    has = at(step.fields, "metadata", "labels", _REVISION_LABEL)
    if owner.controller != "statefulset-controller" or not target or not has or has == target:
        return None
    why = f"{owner.key.name} updates to revision {target}, and this pod had revision {has}"
    return inferred(owner.controller, f"it belongs to {owner.resource} {owner.key.name}", [(edit, why)])

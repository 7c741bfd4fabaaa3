"""Infers the causes of creations and changes of owned objects: edits of the owner, and lost or newly ready objects.

The cause is the newest of the events that allowed the owner's controller to act.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.inference import Inference, inferred
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step, heard, newest
from ctrlmgr.inspection.inferring.status_causes import REPLICASETS, is_active, is_owned, is_ready

DEPLOYMENTS: Final = Resource("apps", "deployments")
_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_REVISION: Final = "deployment.kubernetes.io/revision"

CONTROLLERS: Final[Mapping[tuple[str, str], tuple[Resource, str]]] = {
    ("apps", "ReplicaSet"): (REPLICASETS, "replicaset-controller"),
    ("", "ReplicationController"): (Resource("", "replicationcontrollers"), "replicationcontroller-controller"),
    ("apps", "StatefulSet"): (Resource("apps", "statefulsets"), "statefulset-controller"),
    ("apps", "DaemonSet"): (Resource("apps", "daemonsets"), "daemonset-controller"),
    ("apps", "Deployment"): (DEPLOYMENTS, "deployment-controller"),
    ("batch", "Job"): (Resource("batch", "jobs"), "job-controller"),
    ("batch", "CronJob"): (Resource("batch", "cronjobs"), "cronjob-controller"),
}
"""The resource of an owner and the controller that reconciles it, by the owner's group and kind."""

_Told = tuple[Step | None, str]


class Owner(NamedTuple):
    """The controlling owner of an object, with the owner's steps before the change."""

    controller: str
    resource: Resource
    key: Key
    uid: str
    steps: Sequence[Step]

    @property
    def edit(self) -> Step | None:
        """Return the newest edit of the owner's spec, or the owner's creation."""
        return newest(self.steps, lambda each: each.previous is None or each.changes("metadata", "generation"))


def owner_of(step: Step, past: PastSteps) -> Owner | None:
    """Return the controlling owner of an object; None if the owner's kind is unknown."""
    for each in at(step.fields, "metadata", "ownerReferences") or ():
        group = str(each.get("apiVersion", "")).rpartition("/")[0]
        known = CONTROLLERS.get((group, str(each.get("kind"))))
        if known is not None and each.get("controller"):
            key = Key(step.key.namespace, each.get("name", ""))
            steps = past.history(known[0], key, until=step.revision)
            incarnation = [one for one in steps if at(one.fields, "metadata", "uid") == each.get("uid")]
            return Owner(known[1], known[0], key, each.get("uid", ""), incarnation)
    return None


def infer_creation(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of the creation of an owned object."""
    if step.type is not EventType.ADDED:
        return None
    owner = owner_of(step, past)
    if owner is None or owner.edit is None:
        return None
    explanation = f"it belongs to {owner.resource} {owner.key.name}"
    if owner.controller == "cronjob-controller":
        moment = at(step.fields, "metadata", "annotations", _SCHEDULED_AT) or "this time"
        return inferred(owner.controller, f"{explanation}, which was scheduled for {moment}", [])
    reasons: list[_Told] = [(owner.edit, f"{owner.key.name} was created or changed then")]
    if step.resource == PODS:
        reasons += _for_pod(step, owner, past)
    youngest = max(reasons, key=lambda each: 0 if each[0] is None else each[0].revision)
    return inferred(owner.controller, explanation, [youngest])


def _for_pod(step: Step, owner: Owner, past: PastSteps) -> Iterator[_Told]:
    """Yield possible causes of a pod's creation, except edits of the owner."""
    pods = owned_pods(owner.uid, step, past)
    if owner.controller == "statefulset-controller":
        yield (
            newest(pods, lambda each: each.key == step.key and each.type is EventType.DELETED),
            "its predecessor was deleted",
        )
        base, _, ordinal = step.key.name.rpartition("-")
        before = Key(step.key.namespace, f"{base}-{int(ordinal or 0) - 1}")
        yield newest(pods, lambda each: each.key == before and _became_ready(each)), f"{before.name} Ready False→True"
    elif owner.controller == "daemonset-controller":
        node = node_meant(step.fields)
        gone = newest(pods, lambda each: each.type is EventType.DELETED and node_meant(each.fields) == node)
        yield gone, f"the pod on {node} was deleted"
        nodes = past.history(NODES, Key("", node), until=step.revision)
        yield newest(nodes, _opens), f"{node} was added, or changed in what it accepts"
    else:
        selector = at(owner.steps[-1].after, "spec", "selector") or {}
        labels = selector.get("matchLabels", selector)
        made = newest(pods, lambda each: each.type is EventType.ADDED)
        since = made.revision if made is not None else 0
        lost = heard(pods, lambda each: _is_loss(each, labels), step, since=since)
        lost = lost or newest(pods, lambda each: _is_loss(each, labels))
        if lost is not None:
            yield lost, f"{lost.key.name} was deleted, terminated, or released"


def owned_pods(uid: str, step: Step, past: PastSteps) -> Sequence[Step]:
    """Return the steps before `step` of the pods that the owner with this uid controls."""
    steps = past.histories(PODS, step.key.namespace, until=step.revision)
    return [each for each in steps if each.mentions(uid) and is_owned(each.fields, uid)]


def node_meant(pod: Mapping[str, Any]) -> str:
    """Return the node of a pod, or the node for which a DaemonSet created the pod."""
    if name := at(pod, "spec", "nodeName"):
        return str(name)
    terms = at(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in (terms or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str((field.get("values") or [""])[0])
    return ""


def _became_ready(pod: Step) -> bool:
    return is_ready(pod.after) and not is_ready(pod.before)


def _is_loss(pod: Step, labels: Mapping[str, Any]) -> bool:
    was, now = (
        bool(fields) and is_active(fields) and labels.items() <= (at(fields, "metadata", "labels") or {}).items()
        for fields in (pod.before, pod.after)
    )
    return was and not now


def _opens(node: Step) -> bool:
    return node.previous is None or any(node.changes(*path) for path in (("spec",), ("metadata", "labels")))


def infer_replica_set(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a Deployment's write to one of its ReplicaSets."""
    if step.type is not EventType.MODIFIED or step.changes("status"):
        return None
    owner = owner_of(step, past)
    if owner is None or owner.resource != DEPLOYMENTS:
        return None
    sets = [
        each
        for each in past.histories(REPLICASETS, step.key.namespace, until=step.revision)
        if is_owned(each.fields, owner.uid)
    ]
    last = newest(sets, lambda each: each.type is EventType.ADDED or each.changes("spec"))
    since = last.revision if last is not None else 0
    reported = heard(sets, lambda each: _lets_go_on(each, step), step, since=since)
    causes: list[_Told] = []
    if owner.edit is not None and owner.edit.revision > since:
        causes.append((owner.edit, f"{owner.key.name} was edited then"))
    elif reported is not None:
        causes.append((reported, f"its rollout continues: {reported.key.name} {_progress(reported)}"))
    return inferred(owner.controller, f"it belongs to deployments.apps {owner.key.name}", causes)


def _lets_go_on(status: Step, step: Step) -> bool:
    """Return whether a new status of a ReplicaSet allows a Deployment to continue scaling down or up."""
    if status.previous is None:
        return False
    (was, ready), (now, ready_now) = (
        (at(each, "status", "replicas") or 0, at(each, "status", "availableReplicas") or 0)
        for each in (status.before, status.after)
    )
    before, after = (at(each, "spec", "replicas") or 0 for each in (step.before, step.after))
    return bool(ready_now > ready or (after > before and now < was))


def _progress(replica_set: Step) -> str:
    was, now = (at(each, "status") or {} for each in (replica_set.before, replica_set.after))
    reports = (
        (name, was.get(name) or 0, now.get(name) or 0) for name in ("replicas", "readyReplicas", "availableReplicas")
    )
    return ", ".join(f"{name} {old}→{new}" for name, old, new in reports if old != new)


def infer_deployment(step: Step, past: PastSteps) -> Inference | None:
    """Infer the cause of a write in which the Deployment controller sets a Deployment's revision annotation."""
    if step.type is not EventType.MODIFIED or not step.changes("metadata", "annotations", _REVISION):
        return None
    own = past.history(step.resource, step.key, until=step.revision)
    edit = newest(own, lambda each: each.previous is None or each.changes("metadata", "generation"))
    number = at(step.after, "metadata", "annotations", _REVISION)
    return inferred(
        "deployment-controller",
        f"it wrote the revision {number} of the rollout",
        [(edit, "the change of the template")],
    )

"""Checks the invariants of workloads at every revision of a log; each violation is reported in one line.

The checks apply only to writes of controllers, at the revisions of these writes. Writes of users and kubelets are not
checked.

- Deployments: no ready pod is deleted if fewer than the minimum would remain. The sizes of a Deployment's ReplicaSets
  never exceed the surge together, and no ReplicaSet creates more pods than its size. (Pods of a ReplicaSet that was
  scaled down may exist for a moment longer, because Kubernetes counts desired replicas.)
- StatefulSets with ordered pods: a pod is created only when all pods before it are ready, and a ready pod is deleted
  only when all other pods are ready.
- DaemonSets: no node has two pods that are not terminating; no ready pod is deleted beyond `maxUnavailable`.
- Jobs: no pod is counted twice or before it has ended, and counts never decrease.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Resource
from ctrlmgr.controllers.daemonset.daemon_pods import target_node
from ctrlmgr.controllers.daemonset.view import DaemonSet
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, is_active, is_ready
from ctrlmgr.controllers.workloads.int_or_percent import fenceposts
from ctrlmgr.eventlog import Event, EventType
from tests.controllers.workloads.stage import SYSTEM

DEPLOYMENTS = Resource("apps", "deployments")
REPLICA_SETS = Resource("apps", "replicasets")
STATEFUL_SETS = Resource("apps", "statefulsets")
DAEMON_SETS = Resource("apps", "daemonsets")
JOBS = Resource("batch", "jobs")
TRACKING = "batch.kubernetes.io/job-tracking"


def _wanted(obj: Object) -> int:
    return int(obj.to_dict()["spec"]["replicas"])


def is_staying(pod: Object) -> bool:
    return is_ready(pod) and not pod.is_terminating


class Judge:
    """A judge, which reads the events of a log in order."""

    def __init__(self) -> None:
        self._there: dict[Resource, dict[str, Object]] = defaultdict(dict)
        self._ended: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.counted: dict[str, tuple[int, int]] = {}
        self._rules: dict[str, Callable[[Object, Object, bool], Iterator[str]]] = {
            "Deployment": self._of_deployment,
            "StatefulSet": self._of_stateful_set,
            "DaemonSet": self._of_daemon_set,
        }

    def read(self, events: Iterable[Event]) -> list[str]:
        """Return the violations in these events, which directly follow the events of earlier calls."""
        return [f"revision {event.revision}: {said}" for event in events for said in self._read(event)]

    def all(self, resource: Resource) -> list[Object]:
        return [*self._there[resource].values()]

    def _read(self, event: Event) -> list[str]:
        obj, there = event.object, self._there[event.object.resource]
        old = there.get(obj.uid)
        if event.type is EventType.DELETED:
            there.pop(obj.uid, None)
        else:
            there[obj.uid] = obj
        if obj.resource == PODS:
            self._note_end(obj, gone=event.type is EventType.DELETED)
            return [*self._of_pod(event, old)]
        if event.type is EventType.DELETED:
            return []
        if obj.resource == REPLICA_SETS:
            return [*self._of_replica_set(obj, old)]
        return [*self._of_job(obj)] if obj.resource == JOBS else []

    def _of_pod(self, event: Event, old: Object | None) -> Iterator[str]:
        if not event.actor.startswith(SYSTEM):
            return
        going = event.type is EventType.DELETED or event.object.is_terminating
        if going == (event.type is EventType.ADDED) or (
            old is not None and (old.is_terminating or not is_staying(old))
        ):
            return
        if not going and event.type is not EventType.ADDED:
            return
        if not going:
            yield from self._too_many(event.object)
        owner = self._owner(event.object)
        if owner is not None:
            rule = self._rules.get(str(owner.to_dict().get("kind")))
            if rule is not None:
                yield from (f"{said}, pod {event.key.name}" for said in rule(owner, event.object, going))

    def _too_many(self, pod: Object) -> Iterator[str]:
        reference = controller_of(pod)
        owner = None if reference is None else self._there[REPLICA_SETS].get(reference.uid)
        if owner is not None:
            active = sum(1 for each in self.all(PODS) if is_active(each) and self._is_of(each, owner))
            if active > _wanted(owner):
                yield f"{owner.name} has {active} pods instead of {_wanted(owner)}"

    def _owner(self, obj: Object) -> Object | None:
        """Return the topmost workload that owns a pod, directly or indirectly."""
        reference = controller_of(obj)
        if reference is None:
            return None
        for resource in (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS):
            found = self._there[resource].get(reference.uid)
            if found is not None:
                return self._owner(found) or found
        return None

    def pods_of(self, owner: Object) -> list[Object]:
        return [pod for pod in self._there[PODS].values() if (found := self._owner(pod)) and found.uid == owner.uid]

    def _of_deployment(self, owner: Object, _: Object, going: bool) -> Iterator[str]:
        spec = owner.to_dict()["spec"]
        rolling = spec["strategy"].get("rollingUpdate") or {}
        room = fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), spec["replicas"])
        pods = self.pods_of(owner)
        ready = sum(map(is_staying, pods))
        if going and ready < spec["replicas"] - room.unavailable:
            yield f"{ready} of {spec['replicas']} are ready, and {room.unavailable} may be away"

    def _of_replica_set(self, new: Object, old: Object | None) -> Iterator[str]:
        """Check a write of the Deployment controller to one of the Deployment's ReplicaSets."""
        owner = self._owner(new)
        if owner is None or owner.uid == new.uid or _wanted(new) <= (0 if old is None else _wanted(old)):
            return
        spec = owner.to_dict()["spec"]
        rolling = spec["strategy"].get("rollingUpdate") or {}
        room = fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), spec["replicas"])
        total = sum(_wanted(each) for each in self.all(REPLICA_SETS) if self._is_of(each, owner))
        if total > spec["replicas"] + room.surge:
            yield f"{new.name}: {total} are wanted instead of {spec['replicas']}, and {room.surge} may be too many"

    def _of_stateful_set(self, owner: Object, pod: Object, going: bool) -> Iterator[str]:
        pods = {int(pod.name.rpartition("-")[2]): pod for pod in self.pods_of(owner)}
        if len(pods) != len(self.pods_of(owner)):
            yield "two pods have one number"
        if going:
            if not all(is_staying(each) for each in pods.values() if each.uid != pod.uid):
                yield "a ready pod goes while another is not"
        else:
            before = range(int(pod.name.rpartition("-")[2]))
            if not all(number in pods and is_staying(pods[number]) for number in before):
                yield "it comes before those below it are ready"

    def _of_daemon_set(self, owner: Object, _: Object, going: bool) -> Iterator[str]:
        pods, nodes = self.pods_of(owner), len(self._there[NODES])
        view = owner.view(DaemonSet)
        staying = [target_node(pod) for pod in pods if is_active(pod)]
        if not view.surges and len(staying) != len(set(staying)):
            yield f"two pods for one node: {sorted(map(str, staying))}"
        ready = len({target_node(pod) for pod in pods if is_staying(pod)})
        if going and ready < nodes - view.max_unavailable(nodes):
            yield f"{ready} of {nodes} nodes have a ready pod"

    # Jobs.

    def _note_end(self, pod: Object, *, gone: bool) -> None:
        owner = controller_of(pod)
        if owner is None or owner.kind != "Job":
            return
        phase = pod.view(Pod).status.phase
        ended = self._ended[owner.uid]
        if phase == "Succeeded":
            ended["succeeded"].add(pod.uid)
        elif phase == "Failed" or pod.is_terminating or gone:
            ended["failed"].add(pod.uid)

    def _of_job(self, job: Object) -> Iterator[str]:
        status: dict[str, Any] = job.to_dict().get("status") or {}
        counted = status.get("succeeded", 0), status.get("failed", 0)
        before = self.counted.get(job.uid, (0, 0))
        self.counted[job.uid] = counted
        ended = self._ended[job.uid]
        for what, now, was in zip(("succeeded", "failed"), counted, before, strict=True):
            if now < was:
                yield f"job {job.name}: {what} falls from {was} to {now}"
            if now > len(ended[what]):
                yield f"job {job.name}: {now} are said to have {what}, {len(ended[what])} have"
        uncounted = status.get("uncountedTerminatedPods") or {}
        for uids in uncounted.values():
            if len(set(uids)) != len(uids):
                yield f"job {job.name}: a pod waits twice to be counted"

    # At rest.

    def at_rest(self) -> list[str]:
        """Return the errors in the final state of the cluster."""
        return [*self._orphans(), *self._numbers(), *self._unfinished_jobs()]

    def _orphans(self) -> Iterator[str]:
        for pod in self.all(PODS):
            if self._owner(pod) is None:
                yield f"pod {pod.name} is nobody's"
            if pod.is_terminating:
                yield f"pod {pod.name} does not go"

    def _numbers(self) -> Iterator[str]:
        for resource in (REPLICA_SETS, STATEFUL_SETS, DEPLOYMENTS):
            for each in self.all(resource):
                wanted = _wanted(each)
                found = sum(1 for pod in self.all(PODS) if is_active(pod) and self._is_of(pod, each))
                if found != wanted:
                    yield f"{resource.plural} {each.name} has {found} pods instead of {wanted}"
        nodes = {each.name for each in self.all(NODES)}
        for each in self.all(DAEMON_SETS):
            placed = sorted(str(target_node(pod)) for pod in self.pods_of(each))
            if placed != sorted(nodes):
                yield f"daemonset {each.name} is on {placed}"

    def _is_of(self, pod: Object, owner: Object) -> bool:
        reference = controller_of(pod)
        found = self._owner(pod)
        return (reference is not None and reference.uid == owner.uid) or (found is not None and found.uid == owner.uid)

    def _unfinished_jobs(self) -> Iterator[str]:
        for job in self.all(JOBS):
            status = job.to_dict().get("status") or {}
            if not any(each["type"] in ("Complete", "Failed") for each in status.get("conditions") or ()):
                yield f"job {job.name} does not end: {status}"
            ended = self._ended[job.uid]
            counted = status.get("succeeded", 0), status.get("failed", 0)
            if counted != (len(ended["succeeded"]), len(ended["failed"])):
                yield f"job {job.name} counts {counted} of {len(ended['succeeded'])} and {len(ended['failed'])}"
            if status.get("uncountedTerminatedPods"):
                yield f"job {job.name} has pods left to count"
        held = [pod.name for pod in self.all(PODS) if TRACKING in (pod.metadata.finalizers or ())]
        if held:
            yield f"finalizers are left on {held}"

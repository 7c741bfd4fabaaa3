"""Reconstructs a rollout as a timeline that shows when pods were created and deleted, and why each step had to wait.

Guarantees:

- A rollout begins with the event that set the template of a Deployment, StatefulSet or DaemonSet, and ends with the
  next such event. A step is an event of the rollout that creates, changes or ends a pod, or that scales a ReplicaSet.
- The reason why a step had to wait is found in the state before the step. Possible reasons are pods that are unready,
  not bound, terminating or refused by the API. A pause, and the limits for a Deployment's surge and unavailability, are
  also possible reasons.
- If the beginning of the rollout was compacted, `Expired` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource, Revision
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, is_active, is_available, is_ready
from ctrlmgr.controllers.workloads.int_or_percent import fenceposts
from ctrlmgr.controllers.workloads.status_conditions import condition_of
from ctrlmgr.errors import BadRequest, NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.differences import Difference, content, differences
from ctrlmgr.inspection.historical_state import Author, Change, author_of, history, objects

DEPLOYMENTS = Resource("apps", "deployments")
REPLICA_SETS = Resource("apps", "replicasets")
STATEFUL_SETS = Resource("apps", "statefulsets")
DAEMON_SETS = Resource("apps", "daemonsets")
ROLLED = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)

_HASH = "pod-template-hash"
_GENERATION = "deprecated.daemonset.template.generation"
_NAMED = 3
"""The maximum number of pods that a description names."""
_MOMENT = 1_000_000
"""The minimum microseconds between two steps for which the timeline shows that the controller was waiting."""


class Step(NamedTuple):
    """One step.

    `waited` is the time since the previous step in microseconds, and `waited_for` is the reason, if known.
    """

    revision: Revision
    at: int
    """The time of the step, in microseconds since 1970."""
    author: Author
    what: str
    waited: int = 0
    waited_for: str = ""


class Rollout(NamedTuple):
    """One rollout: its beginning, its steps, and the reason why it is still waiting (empty if it is complete)."""

    began: Change
    edits: Sequence[Difference]
    steps: Sequence[Step]
    is_complete: bool
    waits_for: str = ""


def rollout(database: Database, resource: Resource, key: Key, *, until: Revision) -> Rollout:
    """Return the newest rollout of a workload up to `until`.

    Raises `BadRequest` for a resource without rollouts, `NotFound` if there is no rollout, and `Expired` if the
    beginning of the rollout was compacted.
    """
    if resource not in ROLLED:
        names = ", ".join(each.plural for each in ROLLED)
        raise BadRequest(f"{resource} have no rollouts; these have: {names}")
    changes = history(database, resource, key, until=until)
    began = next((each for each in reversed(changes) if _begins(each)), None)
    if began is None:
        raise NotFound(f'{resource} "{key}" never had a template')
    there = [
        obj
        for kind in (REPLICA_SETS, PODS)
        for obj in objects(database, kind, namespace=key.namespace, at=began.revision)
    ]
    later = [*_events(database, key.namespace, began.revision, until)]
    return timeline(
        began, there, [each for each in later if each.object.resource != resource or each.object.key == key]
    )


def _begins(change: Change) -> bool:
    if change.type is EventType.DELETED:
        return False
    return change.before is None or _template(change.before) != _template(change.object)


def _template(obj: Object) -> dict[str, Any]:
    return dict((obj.to_dict().get("spec") or {}).get("template") or {})


_EVENTS = """
SELECT h.resource, h.revision, e.type, h.recorded_at, h.actor, h.user_agent, h.term,
    h.reconcile_id, h.controller, h.key, h.attempt, h.body
FROM history AS h JOIN event AS e ON e.revision = h.revision
WHERE h.namespace = :namespace AND h.revision > :first AND h.revision <= :last
    AND h.resource IN ('pods', 'replicasets.apps', 'deployments.apps', 'statefulsets.apps', 'daemonsets.apps')
ORDER BY h.revision"""


def _events(database: Database, namespace: str, first: Revision, last: Revision) -> Iterator[Change]:
    rows = database.query(_EVENTS, {"namespace": namespace, "first": first, "last": last}).rows
    for kind, revision, number, recorded_at, *author, body in rows:
        obj = Object(Resource.parse(kind), body.encode(), revision)
        yield Change(revision, EventType(number), recorded_at, author_of(author), obj, None)


def timeline(began: Change, there: Iterable[Object], events: Iterable[Change]) -> Rollout:
    """Return the rollout that the event `began` started.

    `there` contains the ReplicaSets and pods that existed when the rollout began; `events` contains all later events.
    """
    state = _State(began.object, there)
    steps: list[Step] = []
    last = began.recorded_at
    for event in events:
        waited_for = state.waits_for()
        for what in state.take(event):
            waited = event.recorded_at - last
            was_idle = waited >= _MOMENT or not event.author.reconcile
            step = Step(event.revision, event.recorded_at, event.author, what, waited, waited_for if was_idle else "")
            steps.append(step)
            last, waited_for = event.recorded_at, ""
    edits = () if began.before is None else tuple(differences(content(began.before), content(began.object)))
    made = [each for each in edits if each.path.startswith("spec.")]
    complete = state.is_complete()
    return Rollout(began, made, steps, complete, "" if complete else state.waits_for())


class _State:
    """A workload, its ReplicaSets and its pods at one revision."""

    def __init__(self, workload: Object, there: Iterable[Object]) -> None:
        self.workload = workload
        self._sets: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        for obj in there:
            if self._is_ours(obj):
                (self._pods if obj.resource == PODS else self._sets)[obj.uid] = obj

    def take(self, event: Change) -> Iterator[str]:
        """Process an event, and yield a description of each step that the event makes."""
        obj = event.object
        if obj.resource == PODS:
            yield from self._take(event, self._pods, self._told_of_pod)
        elif obj.resource == REPLICA_SETS:
            yield from self._take(event, self._sets, self._told_of_set)
        elif obj.uid == self.workload.uid:
            old, self.workload = self.workload, obj
            yield from _told_of_workload(old, obj, gone=event.type is EventType.DELETED)

    def _take(
        self, event: Change, known: dict[str, Object], describe: Callable[[Object | None, Object], Iterator[str]]
    ) -> Iterator[str]:
        obj, old = event.object, known.get(event.object.uid)
        if old is None and not self._is_ours(obj):
            return
        if event.type is EventType.DELETED:
            known.pop(obj.uid, None)
            yield f"{obj.name} deleted"
            return
        known[obj.uid] = obj
        yield from describe(old, obj)

    def _is_ours(self, obj: Object) -> bool:
        reference = controller_of(obj)
        return reference is not None and (reference.uid == self.workload.uid or reference.uid in self._sets)

    def _told_of_pod(self, old: Object | None, pod: Object) -> Iterator[str]:
        view = pod.view(Pod)
        if old is None:
            yield f"{pod.name} created ({'new' if self.is_new(pod) else 'old'})"
            return
        before = old.view(Pod)
        if view.spec.node_name != before.spec.node_name:
            yield f"{pod.name} bound to {view.spec.node_name}"
        if view.is_terminal and not before.is_terminal:
            yield f"{pod.name} terminated ({view.status.phase})"
        if pod.is_terminating and not old.is_terminating:
            yield f"{pod.name} deletion requested ({'new' if self.is_new(pod) else 'old'})"
        elif view.is_ready != before.is_ready:
            yield f"{pod.name} {'ready' if view.is_ready else 'not ready'}"

    def _told_of_set(self, old: Object | None, replica_set: Object) -> Iterator[str]:
        new = _replicas(replica_set)
        if old is None:
            yield f"{replica_set.name} created with {_replicas_text(new)}"
        elif _replicas(old) != new:
            yield f"{replica_set.name} scaled from {_replicas(old)} to {_replicas_text(new)}"
        failure = _failure(replica_set)
        if failure and failure != (_failure(old) if old is not None else ""):
            yield f"{replica_set.name} cannot create pods: {failure}"

    # Progress

    def is_new(self, pod: Object) -> bool:
        """Return whether a pod was created from the new template."""
        if self.workload.resource == DAEMON_SETS:
            generation = self.workload.annotations.get(_GENERATION)
            return pod.labels.get("pod-template-generation") == generation
        if self.workload.resource == STATEFUL_SETS:
            return pod.labels.get("controller-revision-hash") == self._status.get("updateRevision")
        reference = controller_of(pod)
        return reference is not None and reference.uid in self._new_sets()

    def _new_sets(self) -> set[str]:
        return {uid for uid, each in self._sets.items() if _plain(_template(each)) == _plain(_template(self.workload))}

    @property
    def _spec(self) -> dict[str, Any]:
        return dict(self.workload.to_dict().get("spec") or {})

    @property
    def _status(self) -> dict[str, Any]:
        return dict(self.workload.to_dict().get("status") or {})

    @property
    def _desired(self) -> int:
        """The desired number of pods of the workload."""
        if self.workload.resource == DAEMON_SETS:
            return int(self._status.get("desiredNumberScheduled") or 0)
        return _replicas(self.workload)

    @property
    def _kept(self) -> int:
        """The number of pods that keep the old template (a StatefulSet's partition)."""
        rolling = (self._spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        return int(rolling.get("partition") or 0) if self.workload.resource == STATEFUL_SETS else 0

    def is_complete(self) -> bool:
        """Return whether the rollout is complete.

        All pods that should have the new template must have the new template and be ready, and no old pods may be left.
        """
        staying = [pod for pod in self._pods.values() if is_active(pod)]
        new = [pod for pod in staying if self.is_new(pod)]
        is_seen = (self._status.get("observedGeneration") or 0) >= (self.workload.metadata.generation or 0)
        enough = len(new) >= self._desired - self._kept and all(is_ready(pod) for pod in new)
        return is_seen and enough and len(staying) == self._desired

    def waits_for(self) -> str:
        """Return a description of what must happen before the next step."""
        if self._spec.get("paused"):
            return "the user: it is paused"
        refused = next((text for each in self._sets.values() if (text := _failure(each))), "")
        awaited = [f"pods that the API rejects: {refused}"] if refused else [*self._awaited()]
        if not awaited:
            return ""
        more = len(awaited) - _NAMED
        named = [*awaited[:_NAMED], *([f"{more} more"] if more > 0 else [])]
        return "; ".join([", ".join(named), *self._room()])

    def _awaited(self) -> Iterator[str]:
        least = int(self._spec.get("minReadySeconds") or 0)
        for pod in sorted(self._pods.values(), key=lambda each: each.revision):
            if pod.is_terminating:
                yield f"{pod.name} to be deleted"
            elif not pod.view(Pod).spec.node_name:
                yield f"{pod.name} to be bound to a node"
            elif not is_ready(pod):
                yield f"{pod.name} to be ready"
            elif least and self.is_new(pod) and not is_available(pod, least, pod.view(Pod).ready_changed_at or 0):
                yield f"{pod.name} to have been ready for {least} s"

    def _room(self) -> Iterator[str]:
        rolling = (self._spec.get("strategy") or {}).get("rollingUpdate")
        if rolling is None:
            return
        room = fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), self._desired)
        active = [pod for pod in self._pods.values() if is_active(pod)]
        ready = sum(map(is_ready, active))
        yield f"{ready} of {self._desired} ready, at most {room.unavailable} unavailable"
        yield f"{_pods(len(active))}, at most {room.surge} surplus"


def _told_of_workload(old: Object, new: Object, *, gone: bool) -> Iterator[str]:
    if gone:
        yield f"{new.name} deleted"
        return
    if new.resource != DAEMON_SETS and _replicas(old) != _replicas(new):
        yield f"{new.name} scaled from {_replicas(old)} to {_replicas_text(_replicas(new))}"
    paused = [bool((each.to_dict().get("spec") or {}).get("paused")) for each in (old, new)]
    if paused[0] != paused[1]:
        yield f"{new.name} {'paused' if paused[1] else 'resumed'}"


def _replicas(obj: Object) -> int:
    replicas = (obj.to_dict().get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def _replicas_text(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _failure(replica_set: Object) -> str:
    conditions = (replica_set.to_dict().get("status") or {}).get("conditions")
    failure = condition_of(conditions, "ReplicaFailure")
    return str(failure.get("message") or "") if failure is not None and failure["status"] == "True" else ""


def _plain(template: dict[str, Any]) -> dict[str, Any]:
    """Return a pod template without the label that a ReplicaSet adds."""
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def as_json(found: Rollout) -> dict[str, Any]:
    """Return a rollout as plain JSON values; times and waits are in microseconds."""
    return {
        "revision": found.began.revision,
        "beganAt": found.began.recorded_at,
        "actor": found.began.author.actor,
        "complete": found.is_complete,
        "waitsFor": found.waits_for,
        "steps": [
            {
                "revision": each.revision,
                "at": each.at,
                "actor": each.author.actor,
                "what": each.what,
                "waited": each.waited,
                "waitedFor": each.waited_for,
            }
            for each in found.steps
        ],
    }

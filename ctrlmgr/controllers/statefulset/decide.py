"""Decides the next steps and the status of a StatefulSet, without writing.

Guarantees, as in Kubernetes (`pkg/controller/statefulset/stateful_set_control.go`):
- If the policy is OrderedReady, pods are created one by one, beginning with the lowest ordinal. Each pod is created
  when all pods with lower ordinals are available. Pods are deleted one by one, beginning with the highest ordinal. Each
  pod is deleted when all remaining pods are available. If the policy is Parallel, no pod waits for another pod. A pod
  that has ended is deleted and created again.
- A pod whose ordinal is below the partition is created from the current revision. Other pods are created from the
  update revision. If there is no partition, the number of pods with the current revision is used as the partition. An
  update deletes the pods with an old revision one by one, beginning with the highest ordinal. Each pod is deleted when
  all pods with higher ordinals are available.
- Scaling has precedence over updating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.statefulset.identity import (
    claim_name,
    has_identity,
    has_storage,
    new_pod,
    ordinal_of,
    revision_of,
)
from ctrlmgr.controllers.statefulset.retention import is_stale_for_pod, is_up_to_date
from ctrlmgr.controllers.statefulset.view import StatefulSet
from ctrlmgr.controllers.workloads.controlled_pods import is_available, is_ready

GetClaim = Callable[[str], Object | None]
"""The type of a function that returns the claim with a given name in the StatefulSet's namespace."""


class PodAction(Enum):
    """An action for one pod of a StatefulSet."""

    CREATE = "create"
    DELETE = "delete"
    CLAIM = "claim"
    """The action that creates the pod's missing claims."""
    UPDATE = "update"
    """The action that corrects the pod's identity, its storage and its claims."""
    HAND_OVER = "hand over"
    """The action that sets the owners of the pod's claims."""
    REPLACE = "replace"
    """The action that deletes the pod because of its revision."""


class Step(NamedTuple):
    """The actions for one pod, in the order in which they are performed."""

    pod: Object
    acts: tuple[PodAction, ...]


Phases = Sequence[Sequence[Step]]
"""The phases of a reconcile. The steps of one phase are independent. A phase starts only if all steps of earlier phases
have succeeded.
"""

_NOTHING: Final = ()


class Members(NamedTuple):
    """The pods of a StatefulSet: desired pods and surplus pods."""

    replicas: Sequence[Object]
    """The desired pods by ordinal. If a pod is missing, this list contains the pod that must be created."""
    condemned: Sequence[Object]
    """The surplus pods, sorted by ordinal, the highest ordinal first."""


class Revisions(NamedTuple):
    """The names and templates of the current revision and of the update revision."""

    current: str
    current_template: Mapping[str, Any]
    update: str
    update_template: Mapping[str, Any]


def members(stateful_set: Object, pods: Iterable[Object], revisions: Revisions) -> Members:
    """Return the desired pods, including missing pods, and the surplus pods."""
    view = stateful_set.view(StatefulSet)
    found = {ordinal_of(pod): pod for pod in pods}
    condemned = [pod for number, pod in found.items() if number not in view.ordinals and number >= 0]
    replicas = [found.get(number) or _missing(stateful_set, number, revisions) for number in view.ordinals]
    return Members(replicas, sorted(condemned, key=ordinal_of, reverse=True))


def _missing(stateful_set: Object, ordinal: int, revisions: Revisions) -> Object:
    view = stateful_set.view(StatefulSet)
    kept = view.partition
    if kept is None:
        kept = view.status.current_replicas if view.is_rolling else 0
    if ordinal < view.spec.ordinals.start + kept:
        return new_pod(stateful_set, revisions.current_template, ordinal, revisions.current)
    return new_pod(stateful_set, revisions.update_template, ordinal, revisions.update)


def is_created(pod: Object) -> bool:
    """Return whether a pod exists; pods that must still be created do not exist."""
    return pod.revision != 0


def _has_ended(pod: Object) -> bool:
    return pod.view(Pod).is_terminal


def _is_running(pod: Object) -> bool:
    return pod.view(Pod).status.phase == "Running" and is_ready(pod)


class Planner:
    """Plans the steps for one StatefulSet at one point in time."""

    def __init__(self, stateful_set: Object, found: Members, update: str, claim: GetClaim, now: int) -> None:
        """Create a planner for the time `now` (microseconds since 1970).

        `update` is the name of the update revision.
        """
        self._set = stateful_set
        self._view = stateful_set.view(StatefulSet)
        self._members = found
        self._update = update
        self._claim = claim
        self._now = now
        self._first_unavailable = next(
            filter(self._is_unavailable, (*found.replicas, *reversed(found.condemned))), None
        )

    def phases(self) -> Phases:
        """Return the phases of steps that can be performed now."""
        if self._set.is_terminating:
            return _NOTHING
        replicas, blocked = self._of_all(self._members.replicas, self._of_replica)
        if blocked:
            return (replicas,)
        handed, _ = self._of_all(self._members.condemned, self._of_claims)
        condemned, blocked = self._of_all(self._members.condemned, self._of_condemned)
        phases = (replicas, handed, condemned)
        return phases if blocked or not self._view.is_rolling else (*phases, self._of_update())

    def _of_all(
        self, pods: Sequence[Object], decide: Callable[[Object], tuple[tuple[PodAction, ...], bool]]
    ) -> tuple[list[Step], bool]:
        """Return the steps for some pods, and whether one of these pods blocks the pods after it.

        If the StatefulSet is ordered, the returned steps end at the first pod that blocks later pods.
        """
        steps = []
        for pod in pods:
            acts, blocks = decide(pod)
            if acts:
                steps.append(Step(pod, acts))
            if blocks and self._view.is_ordered:
                return steps, True
        return steps, False

    def _of_replica(self, pod: Object) -> tuple[tuple[PodAction, ...], bool]:
        """Return the actions for a desired pod, and whether the pod blocks the pods after it."""
        if not is_created(pod):
            return ((), True) if self._has_stale_claim(pod) else ((PodAction.CREATE,), True)
        if _has_ended(pod):
            return ((), True) if pod.is_terminating else ((PodAction.DELETE,), True)
        acts = (PodAction.CLAIM,) if pod.view(Pod).status.phase == "Pending" and self._lacks_claim(pod) else ()
        if self._view.is_ordered and (pod.is_terminating or not self._is_available(pod) or not _is_running(pod)):
            return acts, True
        is_right = has_identity(self._set, pod) and has_storage(self._set, pod) and self._has_right_claims(pod)
        return acts if is_right else (*acts, PodAction.UPDATE), False

    def _of_claims(self, pod: Object) -> tuple[tuple[PodAction, ...], bool]:
        return () if self._has_right_claims(pod) else (PodAction.HAND_OVER,), False

    def _of_condemned(self, pod: Object) -> tuple[tuple[PodAction, ...], bool]:
        if pod.is_terminating:
            return (), True
        is_healthy = _is_running(pod) and self._is_available(pod)
        if self._view.is_ordered and not is_healthy and pod is not self._first_unavailable:
            return (), True
        return (PodAction.DELETE,), True

    def _of_update(self) -> list[Step]:
        """Return the step that deletes the highest pod of another revision, if all higher pods are available."""
        replicas = self._members.replicas
        for number in range(len(replicas) - 1, (self._view.partition or 0) - 1, -1):
            pod = replicas[number]
            if revision_of(pod) != self._update and not pod.is_terminating:
                return [Step(pod, (PodAction.REPLACE,))]
            if self._is_unavailable(pod):
                break
        return []

    def _is_available(self, pod: Object) -> bool:
        return is_available(pod, self._view.spec.min_ready_seconds, self._now)

    def _is_unavailable(self, pod: Object) -> bool:
        return pod.is_terminating or not self._is_available(pod)

    def _claims(self, pod: Object) -> Iterable[Object | None]:
        ordinal = ordinal_of(pod)
        return (self._claim(claim_name(each, self._set, ordinal)) for each in self._view.claim_templates)

    def _has_stale_claim(self, pod: Object) -> bool:
        """Return whether a claim belongs to an earlier pod and must be deleted before the new pod is created."""
        if not self._view.retention.deletes_with_pod:
            return False
        return any(claim is not None and is_stale_for_pod(claim, pod) for claim in self._claims(pod))

    def _lacks_claim(self, pod: Object) -> bool:
        return any(claim is None or claim.is_terminating for claim in self._claims(pod))

    def _has_right_claims(self, pod: Object) -> bool:
        return all(claim is None or is_up_to_date(claim, self._set, pod) for claim in self._claims(pod))


def desired_status(
    stateful_set: Object,
    pods: Iterable[Object],
    current: str,
    update: str,
    collisions: int,
    now: int,
    replaced: int = 0,
) -> dict[str, Any]:
    """Return the status of the StatefulSet, computed from its pods.

    The argument `replaced` is the number of pods of the current revision that were just deleted. If all pods have the
    update revision and are ready, the update revision becomes the current revision (`completeRollingUpdate`).
    """
    view = stateful_set.view(StatefulSet)
    there = [pod for pod in pods if is_created(pod)]
    staying = [pod for pod in there if not pod.is_terminating]
    running = [pod for pod in there if _is_running(pod)]
    updated = sum(1 for pod in staying if revision_of(pod) == update)
    kept = max(sum(1 for pod in staying if revision_of(pod) == current) - replaced, 0)
    if view.is_rolling and updated == len(running) == len(there) == view.replicas:
        kept, current = updated, update
    return {
        "observedGeneration": stateful_set.metadata.generation or 0,
        "replicas": len(there),
        "readyReplicas": len(running),
        "currentReplicas": kept,
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        "availableReplicas": sum(1 for pod in running if is_available(pod, view.spec.min_ready_seconds, now)),
    }


def is_inconsistent(stateful_set: Object, status: Mapping[str, Any]) -> bool:
    """Return whether a status must be written: it has a newer generation, or other changes than the collision count."""
    now = stateful_set.view(StatefulSet).status
    if status["observedGeneration"] > now.observed_generation:
        return True
    numbers = (now.replicas, now.ready_replicas, now.current_replicas, now.updated_replicas, now.available_replicas)
    names = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    if any(status[name] != number for name, number in zip(names, numbers, strict=True)):
        return True
    return (now.current_revision, now.update_revision) != (status["currentRevision"], status["updateRevision"])

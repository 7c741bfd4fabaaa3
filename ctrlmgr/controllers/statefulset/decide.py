"""What is to be done about a StatefulSet's pods, and what its status says; decided without writing anything.

Guarantees, Kubernetes' (`pkg/controller/statefulset/stateful_set_control.go`):
- Ordered: pods come one after the other from the lowest number, each when all before it are available, and go from the
  highest when all that stay are available. One that has ended goes and comes again. In parallel nothing waits.
- A pod below the partition (or, without one, among the first that the current revision has) is made from the current
  revision, any other from the new one; of those that have the old one the highest goes, once all above are available.
- Scaling comes before updating.
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
from ctrlmgr.controllers.workloads.pods import is_available, is_ready

GetClaim = Callable[[str], Object | None]
"""Returns the claim of a name in the StatefulSet's namespace."""


class Act(Enum):
    """What is done about a pod."""

    CREATE = "create"
    DELETE = "delete"
    CLAIM = "claim"
    """The claims it lacks are made."""
    UPDATE = "update"
    """Its identity, storage and claims are put right."""
    HAND_OVER = "hand over"
    """Its claims are given to whom they belong."""
    REPLACE = "replace"
    """It is deleted because of its revision."""


class Step(NamedTuple):
    """What is to be done about one pod, in this order."""

    pod: Object
    acts: tuple[Act, ...]


Phases = Sequence[Sequence[Step]]
"""Steps that may fail each on its own; the next phase is for when none has."""

_NOTHING: Final = ()


class Members(NamedTuple):
    """The pods of a StatefulSet: those that it shall have, and those beyond."""

    replicas: Sequence[Object]
    """By number; what is not there yet is there as it shall be made."""
    condemned: Sequence[Object]
    """The highest number first."""


class Revisions(NamedTuple):
    """The revision that pods have had, and the one they are to have: names and templates."""

    current: str
    current_template: Mapping[str, Any]
    update: str
    update_template: Mapping[str, Any]


def members(stateful_set: Object, pods: Iterable[Object], revisions: Revisions) -> Members:
    """Sort pods by whether the StatefulSet wants them, and add those that it lacks."""
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
    """Say whether a pod is there, rather than yet to be made."""
    return pod.revision != 0


def _has_ended(pod: Object) -> bool:
    return pod.view(Pod).is_terminal


def _is_running(pod: Object) -> bool:
    return pod.view(Pod).status.phase == "Running" and is_ready(pod)


class Planner:
    """Plans for one StatefulSet as it is at one moment."""

    def __init__(self, stateful_set: Object, found: Members, update: str, claim: GetClaim, now: int) -> None:
        """`update` is the name of the new revision, `now` in microseconds since 1970."""
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
        """Return what is to be done now."""
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
        self, pods: Sequence[Object], decide: Callable[[Object], tuple[tuple[Act, ...], bool]]
    ) -> tuple[list[Step], bool]:
        """Return the steps of all pods; in order only up to one that the others wait for, which is said."""
        steps = []
        for pod in pods:
            acts, blocks = decide(pod)
            if acts:
                steps.append(Step(pod, acts))
            if blocks and self._view.is_ordered:
                return steps, True
        return steps, False

    def _of_replica(self, pod: Object) -> tuple[tuple[Act, ...], bool]:
        """Return what is to be done about a pod that there shall be, and whether those after it wait."""
        if not is_created(pod):
            return ((), True) if self._has_stale_claim(pod) else ((Act.CREATE,), True)
        if _has_ended(pod):
            return ((), True) if pod.is_terminating else ((Act.DELETE,), True)
        acts = (Act.CLAIM,) if pod.view(Pod).status.phase == "Pending" and self._lacks_claim(pod) else ()
        if self._view.is_ordered and (pod.is_terminating or not self._is_available(pod) or not _is_running(pod)):
            return acts, True
        is_right = has_identity(self._set, pod) and has_storage(self._set, pod) and self._has_right_claims(pod)
        return acts if is_right else (*acts, Act.UPDATE), False

    def _of_claims(self, pod: Object) -> tuple[tuple[Act, ...], bool]:
        return () if self._has_right_claims(pod) else (Act.HAND_OVER,), False

    def _of_condemned(self, pod: Object) -> tuple[tuple[Act, ...], bool]:
        if pod.is_terminating:
            return (), True
        is_healthy = _is_running(pod) and self._is_available(pod)
        if self._view.is_ordered and not is_healthy and pod is not self._first_unavailable:
            return (), True
        return (Act.DELETE,), True

    def _of_update(self) -> list[Step]:
        """Return the deletion of the highest pod of another revision, if all above it are available."""
        replicas = self._members.replicas
        for number in range(len(replicas) - 1, (self._view.partition or 0) - 1, -1):
            pod = replicas[number]
            if revision_of(pod) != self._update and not pod.is_terminating:
                return [Step(pod, (Act.REPLACE,))]
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
        """Say whether a claim goes with an earlier pod, before which the new one cannot have it."""
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
    """Return the status that the pods give it; `replaced` of those with the current revision have just been deleted.

    When all pods have the new revision and are ready, it is the current one from then on (`completeRollingUpdate`).
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
    """Say whether a status is worth writing: newer, or other in anything but the collisions."""
    now = stateful_set.view(StatefulSet).status
    if status["observedGeneration"] > now.observed_generation:
        return True
    numbers = (now.replicas, now.ready_replicas, now.current_replicas, now.updated_replicas, now.available_replicas)
    names = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    if any(status[name] != number for name, number in zip(names, numbers, strict=True)):
        return True
    return (now.current_revision, now.update_revision) != (status["currentRevision"], status["updateRevision"])

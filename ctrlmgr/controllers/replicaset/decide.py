"""Decides a ReplicaSet's next step and its status, without writing.

Source: Kubernetes' `pkg/controller/replicaset/{replica_set,replica_set_utils}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.workloads.controlled_pods import is_available, is_ready
from ctrlmgr.controllers.workloads.deletion_order import deletion_order
from ctrlmgr.controllers.workloads.replica_sets import ReplicaSet
from ctrlmgr.controllers.workloads.status_conditions import condition_of, with_condition, without

BURST: Final = 500
"""The maximum number of pods that are created or deleted in one reconcile (`BurstReplicas`)."""
REPLICA_FAILURE: Final = "ReplicaFailure"


class Step(NamedTuple):
    """The next step for a ReplicaSet: the number of pods to create, or the pods to delete."""

    create: int = 0
    delete: Sequence[Object] = ()


def next_step(replicas: int, pods: Sequence[Object], related: Iterable[Object], now: int) -> Step:
    """Return the next step towards the desired number of pods; `related` and `now` determine the order of deletion."""
    surplus = len(pods) - replicas
    if surplus < 0:
        return Step(create=min(-surplus, BURST))
    if surplus == 0:
        return Step()
    if surplus == len(pods):
        return Step(delete=pods[:BURST])
    return Step(delete=deletion_order(pods, related, now)[: min(surplus, BURST)])


def desired_status(
    owner: Object, pods: Sequence[Object], terminating: int | None, failure: str | None, now: int
) -> dict[str, Any]:
    """Return the status of a ReplicaSet for the active `pods`, without the observed generation.

    The argument `terminating` is the number of terminating pods; it is None if the kind does not report this number.
    The argument `failure` is the error that prevented the creation or deletion of pods. Zeros in the status are
    omitted, as in Go's encoding.
    """
    view = owner.view(ReplicaSet)
    labels = ((view.template.get("metadata") or {}).get("labels") or {}).items()
    ready = [pod for pod in pods if is_ready(pod)]
    counts = {
        "fullyLabeledReplicas": sum(1 for pod in pods if labels <= pod.labels.items()),
        "readyReplicas": len(ready),
        "availableReplicas": sum(1 for pod in ready if is_available(pod, view.spec.min_ready_seconds, now)),
    }
    status: dict[str, Any] = {"replicas": len(pods), **{name: count for name, count in counts.items() if count}}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    conditions = desired_conditions(view, len(pods), failure, now)
    return {**status, "conditions": conditions} if conditions else status


def desired_conditions(view: ReplicaSet, pods: int, failure: str | None, now: int) -> list[dict[str, Any]]:
    """Return the desired conditions of a ReplicaSet's status.

    A failure condition is set once and stays unchanged until the failure ends.
    """
    conditions = view.status.conditions
    if failure is None:
        return without(conditions, REPLICA_FAILURE)
    if condition_of(conditions, REPLICA_FAILURE) is not None:
        return list(conditions or ())
    reason = "FailedCreate" if pods < view.replicas else "FailedDelete" if pods > view.replicas else ""
    failed = {
        "type": REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": format_time_seconds(now),
        "reason": reason,
        "message": failure,
    }
    return with_condition(conditions, failed)


def with_status(owner: Object, status: Mapping[str, Any]) -> Object | None:
    """Return the ReplicaSet with a status and its observed generation; None if the ReplicaSet already has both."""
    fields = owner.to_dict()
    current = dict(fields.get("status") or {})
    observed = current.pop("observedGeneration", 0)
    generation = owner.metadata.generation or 0
    if current == status and observed == generation:
        return None
    return Object.from_dict({**fields, "status": {**status, "observedGeneration": generation}})

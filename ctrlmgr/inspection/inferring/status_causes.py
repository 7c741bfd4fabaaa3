"""Infers the causes of statuses that contain counts of other objects (mostly pods) or an observed generation.

A controller computed a status from the objects that existed at some point in time. This module assumes that the
controller read its caches at the last point in time at which the counts equal the new status. The causes are the steps
between that point and the last earlier point at which the counts equal the old status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.api.unstructured import at
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.inferring.inference import Inference, inferred
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step, newest

REPLICASETS: Final = Resource("apps", "replicasets")

Counts = tuple[int, ...]


class Counting(NamedTuple):
    """The counts in the status of a kind: `fields` contains the sums of the values that `adds` returns for the objects.

    Only objects that the object with the status owns or selects are counted.
    """

    controller: str
    counted: Resource
    fields: tuple[str, ...]
    adds: Callable[[Mapping[str, Any]], Counts]
    """A function that returns the numbers that one object adds to the fields of a status."""
    selects: bool = False


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is ready."""
    return any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in at(pod, "status", "conditions") or ()
    )


def is_active(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has not finished and is not terminating."""
    return at(pod, "status", "phase") not in ("Succeeded", "Failed") and not at(pod, "metadata", "deletionTimestamp")


def _of_replica_sets(pod: Mapping[str, Any]) -> Counts:
    return (int(is_active(pod)), int(is_active(pod) and is_ready(pod)))


def _of_stateful_sets(pod: Mapping[str, Any]) -> Counts:
    is_there = at(pod, "status", "phase") is not None
    return (int(is_there), int(is_there and at(pod, "status", "phase") == "Running" and is_ready(pod)))


def _of_daemon_sets(pod: Mapping[str, Any]) -> Counts:
    return (int(is_ready(pod)),)


def _of_jobs(pod: Mapping[str, Any]) -> Counts:
    is_running = is_active(pod)
    phase = at(pod, "status", "phase")
    return (int(is_running), int(is_running and is_ready(pod)), int(phase == "Succeeded"), int(phase == "Failed"))


def _of_budgets(pod: Mapping[str, Any]) -> Counts:
    return (int(is_ready(pod) and not at(pod, "metadata", "deletionTimestamp")),)


def _of_deployments(replica_set: Mapping[str, Any]) -> Counts:
    status = at(replica_set, "status") or {}
    return tuple(int(status.get(name) or 0) for name in ("replicas", "readyReplicas", "availableReplicas"))


_REPLICAS: Final = ("replicas", "readyReplicas")
COUNTINGS: Final[Mapping[str, Counting]] = {
    "replicasets.apps": Counting("replicaset-controller", PODS, _REPLICAS, _of_replica_sets),
    "replicationcontrollers": Counting("replicationcontroller-controller", PODS, _REPLICAS, _of_replica_sets),
    "statefulsets.apps": Counting("statefulset-controller", PODS, _REPLICAS, _of_stateful_sets),
    "daemonsets.apps": Counting("daemonset-controller", PODS, ("numberReady",), _of_daemon_sets),
    "jobs.batch": Counting("job-controller", PODS, ("active", "ready", "succeeded", "failed"), _of_jobs),
    "poddisruptionbudgets.policy": Counting("disruption-controller", PODS, ("currentHealthy",), _of_budgets, True),
    "deployments.apps": Counting(
        "deployment-controller", REPLICASETS, ("replicas", "readyReplicas", "availableReplicas"), _of_deployments
    ),
}
"""The counts in the status of each kind."""


def infer_status(step: Step, past: PastSteps) -> Inference | None:
    """Infer the causes of a status that counts other objects."""
    counting = COUNTINGS[str(step.resource)]
    if step.previous is None or not step.changes("status") or step.changes("spec"):
        return None
    find = _finished if counting.controller == "job-controller" else _counted
    causes = [*_observed(step, past), *find(step, counting, past)]
    return inferred(counting.controller, f"it writes the status of {step.resource}", causes)


def _observed(step: Step, past: PastSteps) -> Iterator[tuple[Step | None, str]]:
    """Yield the edit that set the object's generation to the status's observed generation."""
    generation = at(step.after, "status", "observedGeneration")
    if generation is None or not step.changes("status", "observedGeneration"):
        return
    own = past.history(step.resource, step.key, until=step.revision)
    edit = newest(own, lambda each: each.changes("metadata", "generation"))
    if edit is not None and at(edit.after, "metadata", "generation") == generation:
        yield edit, f"it observed generation {generation}, which was written then"


def _counted(step: Step, counting: Counting, past: PastSteps) -> Iterator[tuple[Step | None, str]]:
    was, now = (_stated(each, counting) for each in (step.before, step.after))
    if was == now:
        return
    steps = _subjects(step, counting, past)
    for each in _between(steps, _counter(step, counting), was, now):
        yield each, f"{_difference(counting.fields, was, now)}: {_explanation(each)}"


def _finished(step: Step, counting: Counting, past: PastSteps) -> Iterator[tuple[Step | None, str]]:
    """Yield the steps in which pods of a Job became ready or terminated, since the last write of the Job's status.

    The job controller counts a pod in the reconcile that creates it, so creations are not causes.
    """
    was, now = (_stated(each, counting) for each in (step.before, step.after))
    own = past.history(step.resource, step.key, until=step.revision)
    since = newest(own)
    if was == now or since is None:
        return
    ended, adds = was[2:] != now[2:], _counter(step, counting)
    for each in _subjects(step, counting, past):
        old, new = (adds(fields)[2 * ended :] for fields in (each.before, each.fields))
        if each.revision > since.revision and each.previous is not None and old != new:
            yield each, f"{_difference(counting.fields, was, now)}: {_explanation(each)}"


def _stated(fields: Mapping[str, Any], counting: Counting) -> Counts:
    return tuple(int(at(fields, "status", name) or 0) for name in counting.fields)


def _difference(fields: Sequence[str], was: Counts, now: Counts) -> str:
    changed = (f"{name} {old}→{new}" for name, old, new in zip(fields, was, now, strict=True) if old != new)
    return f"counted in {', '.join(changed)}"


def _counter(step: Step, counting: Counting) -> Callable[[Mapping[str, Any]], Counts]:
    """Return a function that returns the numbers that an object adds to the counts.

    If the object is neither owned nor selected, the numbers are 0.
    """
    uid = at(step.fields, "metadata", "uid") or ""
    selector = at(step.fields, "spec", "selector") or {}
    labels = selector.get("matchLabels", {} if counting.selects or "matchExpressions" in selector else selector)
    nothing = (0,) * len(counting.fields)

    def adds(fields: Mapping[str, Any]) -> Counts:
        is_its = labels.items() <= (at(fields, "metadata", "labels") or {}).items()
        return counting.adds(fields) if is_its and (counting.selects or is_owned(fields, uid)) else nothing

    return adds


def _subjects(step: Step, counting: Counting, past: PastSteps) -> Sequence[Step]:
    """Return the steps of all objects that may be counted now or were counted earlier."""
    steps = past.histories(counting.counted, step.key.namespace, until=step.revision)
    if counting.selects:
        return steps
    uid = at(step.fields, "metadata", "uid") or ""
    owned = {each.key for each in steps if each.mentions(uid) and is_owned(each.fields, uid)}
    return [each for each in steps if each.key in owned]


def is_owned(fields: Mapping[str, Any], uid: str) -> bool:
    """Return whether the object with this uid is the controlling owner of an object."""
    owners = at(fields, "metadata", "ownerReferences") or ()
    return any(each.get("uid") == uid and each.get("controller") for each in owners)


def _between(
    steps: Sequence[Step], count: Callable[[Mapping[str, Any]], Counts], was: Counts, now: Counts
) -> Sequence[Step]:
    """Return the latest steps between the points in time at which the counts are `was` and `now`.

    The result is empty if the counts never had one of these values.
    """
    totals, flips = _totals(steps, count, len(now))
    end = next((index for index in range(len(totals) - 1, -1, -1) if totals[index] == now), None)
    if end is None:
        return ()
    begin = next((index for index in range(end, -1, -1) if totals[index] == was), None)
    return () if begin is None else flips[begin:end]


def _totals(
    steps: Sequence[Step], count: Callable[[Mapping[str, Any]], Counts], width: int
) -> tuple[list[Counts], list[Step]]:
    """Return the initial total counts, and the total counts after each step that changes them.

    The function also returns the steps that change the total counts.
    """
    each: dict[Key, Counts] = {}
    nothing = (0,) * width
    total = nothing
    totals, flips = [total], []
    for step in steps:
        old = each.get(step.key, nothing)
        new = nothing if step.type is EventType.DELETED else count(step.fields)
        if old != new:
            each[step.key] = new
            total = tuple(sum_ - left + right for sum_, left, right in zip(total, old, new, strict=True))
            totals.append(total)
            flips.append(step)
    return totals, flips


def _explanation(step: Step) -> str:
    """Return a description of how a counted object changed."""
    name = step.key.name
    if step.type is not EventType.MODIFIED:
        return f"{name} {'was created' if step.type is EventType.ADDED else 'was deleted'}"
    if step.changes("metadata", "deletionTimestamp"):
        return f"the deletion of {name} was requested"
    if step.resource == PODS and is_ready(step.before) != is_ready(step.after):
        return f"{name} Ready {is_ready(step.before)}→{is_ready(step.after)}"
    return f"{name} changed"

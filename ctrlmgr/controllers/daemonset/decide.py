"""Decides a DaemonSet's next writes and its status, without writing.

Guarantees, as in Kubernetes (`pkg/controller/daemon/daemon_controller.go` and `update.go`):
- Every node on which a pod of the template may start has one pod. If a pod of the template may no longer start on a
  node, `scheduling.daemon_pod_fit` decides whether the node's existing pod may continue. A pod that has ended is
  deleted and replaced; a failed pod is replaced only after its backoff.
- If a node has several pods, only the oldest pod stays. In an update with surge, both an old and a new pod stay while
  the old pod is ready and the new pod is not available yet.
- An update without surge never exceeds the maximum of unavailable pods; unavailable old pods are deleted first. An
  update with surge creates new pods on nodes whose old pods are available. The number of these new pods never exceeds
  the maximum surge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.daemonset.daemon_pods import HASH_LABEL, is_updated, oldest_first
from ctrlmgr.controllers.daemonset.view import DaemonSet, Pods
from ctrlmgr.controllers.workloads.controlled_pods import is_available, is_ready
from ctrlmgr.scheduling.daemon_pod_fit import Fit, FitNode, fit

Backoff = Callable[[str], float]
"""A function that returns the seconds for which the failed pod on a node must be kept. The function is called once for
each failed pod.
"""


class DaemonEvent(NamedTuple):
    """An Event about the DaemonSet."""

    type: str
    reason: str
    message: str


@dataclass
class Step:
    """The next writes for a DaemonSet: pods to create (by node), pods to delete, and Events.

    A step also contains the number of seconds until the next reconcile.
    """

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    events: list[DaemonEvent] = field(default_factory=list)
    again: float | None = None

    def __bool__(self) -> bool:
        """Return whether the step creates or deletes pods."""
        return bool(self.create or self.delete)

    def wait(self, seconds: float) -> None:
        """Reconcile the DaemonSet again after at most this many seconds."""
        self.again = seconds if self.again is None else min(self.again, seconds)


def fits(daemon_set: Object, node: Object) -> Fit:
    """Return whether a DaemonSet's pod should run on a node, and whether an existing pod may continue there."""
    return fit(daemon_set.view(DaemonSet).fit_spec, node.view(FitNode))


class Planner:
    """Plans the writes for one DaemonSet at one point in time."""

    def __init__(self, daemon_set: Object, nodes: Sequence[Object], pods: Pods, hash_: str, now: int) -> None:
        """Create a planner for the time `now` (microseconds since 1970).

        `hash_` is the hash of the current template's revision.
        """
        self._set = daemon_set
        self._view = daemon_set.view(DaemonSet)
        self._fits = {node.name: fits(daemon_set, node) for node in sorted(nodes, key=lambda node: node.name)}
        self._pods = pods
        self._hash = hash_
        self._now = now

    # The following methods decide on which nodes pods are created or deleted.

    def manage(self, backoff: Backoff) -> Step:
        """Return the step that creates missing pods and deletes pods on wrong nodes, regardless of their templates."""
        step = Step()
        for node, desired in self._fits.items():
            pods = self._pods.get(node)
            if desired.should_run and pods is None:
                step.create.append(node)
            elif desired.may_continue:
                self._tidy(node, pods or (), desired, step, backoff)
            elif pods:
                step.delete += [pod for pod in pods if not pod.is_terminating]
        # A pod that is not bound yet can never be bound to a node that was deleted.
        for node, pods in self._pods.items():
            if node not in self._fits:
                step.delete += [pod for pod in pods if not pod.view(Pod).spec.node_name]
        return step

    def _tidy(self, node: str, pods: Iterable[Object], desired: Fit, step: Step, backoff: Backoff) -> None:
        running = []
        for pod in pods:
            if pod.is_terminating:
                continue
            phase = pod.view(Pod).status.phase
            if phase == "Failed":
                self._replace_failed(node, pod, step, backoff)
            elif phase == "Succeeded":
                what = f"Found succeeded daemon pod {pod.namespace}/{pod.name} on node {node}, will try to delete it"
                step.events.append(DaemonEvent("Normal", "SucceededDaemonPod", what))
                step.delete.append(pod)
            else:
                running.append(pod)
        if self._view.surges:
            self._tidy_surge(node, running, desired, step)
        else:
            step.delete += oldest_first(running)[1:]

    def _replace_failed(self, node: str, pod: Object, step: Step, backoff: Backoff) -> None:
        wait = backoff(node)
        if wait > 0:
            step.wait(wait)
            return
        what = f"Found failed daemon pod {pod.namespace}/{pod.name} on node {node}, will try to kill it"
        step.events.append(DaemonEvent("Warning", "FailedDaemonPod", what))
        step.delete.append(pod)

    def _tidy_surge(self, node: str, running: Sequence[Object], desired: Fit, step: Step) -> None:
        if len(running) <= 1:
            if not running and desired.should_run:
                step.create.append(node)
            return
        ordered = oldest_first(running)
        new = next((pod for pod in ordered if pod.labels.get(HASH_LABEL) == self._hash), None)
        old = next((pod for pod in ordered if pod.labels.get(HASH_LABEL) != self._hash), None)
        step.delete += [pod for pod in ordered if pod is not new and pod is not old]
        if new is not None and old is not None and (not is_ready(old) or self._is_available(new)):
            step.delete.append(old)

    # Rolling update.

    def roll(self) -> Step:
        """Return the next step of a rolling update; call it only when `manage` returns no writes."""
        desired = sum(wanted.should_run for wanted in self._fits.values())
        pods = {**dict.fromkeys((node for node, wanted in self._fits.items() if wanted.should_run), ()), **self._pods}
        surge = self._view.max_surge(desired)
        return self._surge(pods, desired, surge) if surge else self._swap(pods, self._view.max_unavailable(desired))

    def _swap(self, pods: Pods, room: int) -> Step:
        """Return the deletion of old pods: all unavailable old pods, and at most `room` of the available old pods."""
        broken, candidates, unavailable = [], [], 0
        for on_node in pods.values():
            found = self._new_and_old(on_node)
            if found is None or (found.new is None) == (found.old is None):
                unavailable += 1  # `manage` handles this node.
            elif found.old is None:
                unavailable += not self._is_available(found.new)
            elif not self._is_available(found.old):
                broken.append(found.old)
                unavailable += 1
            else:
                candidates.append(found.old)
        return Step(delete=[*broken, *candidates[: max(room - unavailable, 0)]])

    def _surge(self, pods: Pods, desired: int, room: int) -> Step:
        """Return the step of an update with surge.

        The step creates new pods on nodes that have an old pod, and deletes the old pods that new pods have replaced.
        """
        step, surged, available = Step(), 0, 0
        candidates: list[str] = []
        sunset: list[Object] = []
        for node, on_node in pods.items():
            found = self._new_and_old(on_node)
            if found is None:
                surged += 1
                continue
            new, old = found
            available += self._is_available(old if old is not None else new)
            if old is None:
                continue
            if new is not None:
                if self._is_available(new):
                    step.delete.append(old)
                else:
                    surged += 1
            elif self._should_run(node):
                (candidates if self._is_available(old) else step.create).append(node)
            else:
                (sunset if self._is_available(old) else step.delete).append(old)
        step.create += candidates[: max(room - surged, 0)]
        # If the set of nodes for the pods changes, an old pod is deleted only after its replacement is available.
        step.delete += sunset[: max(available - desired, 0)]
        return step

    def _should_run(self, node: str) -> bool:
        return node in self._fits and self._fits[node].should_run

    def _new_and_old(self, pods: Iterable[Object]) -> _NewAndOld | None:
        """Return the new and the old pod on a node, without terminating pods.

        The result is None if there are several new or several old pods.
        """
        staying = [pod for pod in pods if not pod.is_terminating]
        new = [pod for pod in staying if is_updated(self._set, pod, self._hash)]
        old = [pod for pod in staying if pod not in new]
        if len(new) > 1 or len(old) > 1:
            return None
        return _NewAndOld(new[0] if new else None, old[0] if old else None)

    def _is_available(self, pod: Object | None) -> bool:
        return pod is not None and is_available(pod, self._view.spec.min_ready_seconds, self._now)

    # Status.

    def status(self) -> dict[str, Any]:
        """Return the counts for the status of the DaemonSet."""
        desired = current = misplaced = ready = updated = available = 0
        for node, wanted in self._fits.items():
            pods = self._pods.get(node)
            if not wanted.should_run:
                misplaced += bool(pods)
                continue
            desired += 1
            if not pods:
                continue
            pod = oldest_first(pods)[0]
            current += 1
            ready += is_ready(pod)
            available += self._is_available(pod)
            updated += is_updated(self._set, pod, self._hash)
        return {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }


class _NewAndOld(NamedTuple):
    """The pod on a node that has the current template, and the pod on the same node that has an earlier template."""

    new: Object | None
    old: Object | None


def with_status(daemon_set: Object, counts: dict[str, Any]) -> Object | None:
    """Return the DaemonSet with these counts and its current `observedGeneration`.

    Return None if the DaemonSet's status is already up to date.
    """
    was = daemon_set.view(DaemonSet).status
    before = (
        was.current_number_scheduled,
        was.number_misscheduled,
        was.desired_number_scheduled,
        was.number_ready,
        was.updated_number_scheduled,
        was.number_available,
        was.number_unavailable,
    )
    generation = daemon_set.metadata.generation or 0
    if tuple(counts.values()) == before and was.observed_generation >= generation:
        return None
    body = daemon_set.to_dict()
    status = {**(body.get("status") or {}), **counts, "observedGeneration": generation}
    return Object.from_dict({**body, "status": status})

"""The disruption controller; the module `disruption.decide` states its guarantees.

A budget is reconciled when the PodDisruptionBudget or one of its pods changes. If the pods of a budget cannot be
counted, no disruption is allowed. If a pod with the condition DisruptionTarget is not deleted in time, the controller
removes the condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.disruption import DESCRIPTOR
from ctrlmgr.controllers.disruption.decide import (
    disrupted,
    expected,
    failed_safe,
    healthy,
    stale_after,
    with_status,
)
from ctrlmgr.controllers.disruption.scales import KNOWN, NoScaleError, Scales
from ctrlmgr.controllers.disruption.view import BUDGETS, DISRUPTION, Budget, selects
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.errors import ApiError, Conflict, NotFound
from ctrlmgr.golang.go_text import quote
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.core.pod.pod_conditions import set_condition
from ctrlmgr.kinds.label_selectors import selector_shown
from ctrlmgr.manager import Controller, Result, Watch, own_key

_POD: Final = "pod/"
"""The prefix that marks the key of a pod; a key without the prefix belongs to a budget."""
_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the "
    "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these "
    'pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


class DisruptionReconciler:
    """Reconciles a budget, or the condition DisruptionTarget of a pod, depending on the key."""

    def __init__(self, budgets: Lister, pods: Lister, scales: Scales, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches; `recorder` records Events."""
        self._budgets = budgets
        self._pods = pods
        self._scales = scales
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Write the status of a budget or pod; raises the errors of the API if a request fails."""
        if key.name.startswith(_POD):
            return self._see_to_mark(Key(key.namespace, key.name.removeprefix(_POD)), client)
        budget = self._budgets.get(key)
        if budget is None:
            return None
        try:
            return self._count(budget, client)
        except Conflict:
            raise
        except (ApiError, NoScaleError) as problem:
            client.update(failed_safe(budget, str(problem), self._clock.now()), "status")
            return None

    def _count(self, budget: Object, client: EngineClient) -> Result | None:
        now = self._clock.now()
        pods = [pod for pod in self._pods.list(budget.namespace) if selects(budget, pod)]
        if not pods:
            self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        try:
            desired = expected(budget, pods, lambda pod: self._scales.of(pod, client))
        except (ApiError, NoScaleError) as problem:
            message = f"Failed to calculate the number of expected pods: {problem}"
            self._recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        if desired.unmanaged:
            message = _UNMANAGED.format(selector=selector_shown(budget.view(Budget).spec.selector))
            self._recorder.event(budget, WARNING, "UnmanagedPods", message)
        gone = disrupted(budget, pods, now)
        self._tell_overdue(budget, gone.overdue)
        new = with_status(budget, desired, healthy(pods, gone.pods, now), gone.pods, now)
        if new is not None:
            client.update(new, "status")
        return None if gone.until is None else Result(requeue_after=max(gone.until - now, 0) / 1_000_000 + 0.001)

    def _tell_overdue(self, budget: Object, pods: Sequence[Object]) -> None:
        for pod in pods:
            # Kubernetes' message contains the namespace twice, and does not contain the name of the budget.
            where = f"{budget.namespace}/{budget.namespace}"
            message = f"Pod was expected by PDB {where} to be deleted but it wasn't"
            self._recorder.event(pod, WARNING, "NotDeleted", message)

    def _see_to_mark(self, key: Key, client: EngineClient) -> Result | None:
        pod = self._pods.get(key)
        left = None if pod is None else stale_after(pod, self._clock.now())
        if pod is None or left is None:
            return None
        if left > 0:
            return Result(requeue_after=left / 1_000_000)
        body = pod.to_dict()
        status: dict[str, Any] = dict(body.get("status") or {})
        set_condition(status, format_time_seconds(self._clock.now()), DISRUPTION, "False")
        try:
            client.update(Object.from_dict({**body, "status": status}), "status")
        except NotFound:
            return None
        return None


class PodChanges:
    """Maps a pod's change to the pod's budget, and to the pod itself if its condition may have to be reset.

    If several budgets select the pod, the pod maps to the first budget by name, because Kubernetes reconciles only one
    of them. A pod that several budgets select cannot be evicted.
    """

    def __init__(self, budgets: Lister, recorder: Recorder, *, clock: Clock) -> None:
        """Create the mapping, which reads `budgets`.

        `recorder` records an Event for a pod that several budgets select.
        """
        self._budgets = budgets
        self._recorder = recorder
        self._clock = clock

    def __call__(self, change: Change) -> list[Key]:
        """Return the keys of the budgets and pods to reconcile."""
        keys = self._of_budgets(change.object) if len(self._budgets) else []
        pod = change.new
        if pod is not None and stale_after(pod, self._clock.now()) is not None:
            keys.append(Key(pod.namespace, _POD + pod.name))
        return keys

    def _of_budgets(self, pod: Object) -> list[Key]:
        found = [each for each in self._budgets.list(pod.namespace) if selects(each, pod)]
        if len(found) > 1:
            chosen = f"Chose {quote(found[0].name)} arbitrarily."
            message = f"Pod {quote(pod.namespace)}/{quote(pod.name)} matches multiple PodDisruptionBudgets.  {chosen}"
            self._recorder.event(pod, WARNING, "MultiplePodDisruptionBudgets", message)
        return [each.key for each in found[:1]]


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    budgets, pods = context.informers.informer(BUDGETS), context.informers.informer(PODS)
    recorder = context.recorder(DESCRIPTOR)
    scales = Scales({each: context.informers.informer(each).lister for each in KNOWN}, lambda: context.engine.kinds)
    reconciler = DisruptionReconciler(budgets.lister, pods.lister, scales, recorder, clock=context.clock)
    watches = [
        Watch(budgets, own_key, after_sync=True),
        Watch(pods, PodChanges(budgets.lister, recorder, clock=context.clock)),
    ]
    return assemble(DESCRIPTOR, context, reconciler, watches, reads_own_writes=True)

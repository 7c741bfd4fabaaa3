"""The device taint eviction controller: deletes pods with devices that have a NoExecute taint.

Guarantees, which are the same as in Kubernetes' `pkg/controller/devicetainteviction`:
- A pod that is bound to a node is deleted at the earliest `eviction_of` the claims that are reserved for it.
- If the gate DRADeviceTaintRules is on, the taints of DeviceTaintRules count, too. The status of a rule contains
  the number of pods that it evicts (`rule_status`). The status is written at once after the rule changes, and then at
  most every 10 s.
- Before a pod is deleted, an Event is recorded, and then the condition DisruptionTarget is set.
- If a taint is removed or tolerated before the pod is deleted, the deletion is cancelled with an Event.

Keys with a namespace name pods, and keys without a namespace name rules. Only one worker uses a key at a time, so the
planned deletions need no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.device_taint_eviction import DESCRIPTOR, Options
from ctrlmgr.controllers.device_taint_eviction.rule_status import (
    PERIOD,
    EvictedPods,
    Selected,
    condition_of_rule,
    time_left,
    with_condition,
)
from ctrlmgr.controllers.device_taint_eviction.tainted_devices import (
    Eviction,
    allocated_devices,
    device_names,
    eviction_of,
    joined,
    may_be_tainted,
    pool_of,
    pools_of,
    users_of,
)
from ctrlmgr.controllers.disrupted_pods import delete_disrupted
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.resourceclaim.decide import ClaimingPod, PodClaim
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.metrics import DEVICE_TAINT_EVICTIONS
from ctrlmgr.scheduling.structured.tainting_rules import DEVICE_TAINT_RULES, GATE, DeviceTaintRule, in_order
from ctrlmgr.scheduling.taints import NO_EXECUTE

CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
SLICES: Final = Resource("resource.k8s.io", "resourceslices")
_BY_POOL: Final = "devicePool"
_SECOND: Final = 1_000_000
_REASON: Final = "DeviceTaintManagerEviction"
_DISRUPTED: Final = "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"
"""The reason and the message of the condition DisruptionTarget of evicted pods."""


class DeviceTaintEviction:
    """Reconciles a pod that uses devices, or a DeviceTaintRule."""

    def __init__(
        self,
        pods: Lister,
        claims: Lister,
        slices: Lister,
        rules: Lister | None,
        recorder: Recorder,
        *,
        clock: Clock,
    ) -> None:
        """Create a reconciler that reads objects from these caches; without `rules`, rules have no effect."""
        self._pods, self._claims, self._slices, self._rules = pods, claims, slices, rules
        self._recorder = recorder
        self._clock = clock
        self._evicted = EvictedPods()
        self._planned: dict[Key, str] = {}
        """The uids of the pods that will be deleted."""
        self.wake: Callable[[Key, float], None] = lambda key, seconds: None
        """Adds a key to the controller's queue after a number of seconds."""

    def on_start(self) -> Iterator[Key]:
        """Remove all planned deletions, and yield the keys of all rules and of every pod with tainted devices."""
        self._planned.clear()
        self._evicted.clear()
        yield from (each.key for each in (self._rules.list() if self._rules is not None else ()))
        yield from (pod.key for pod in self._pods.list() if self._eviction(pod) is not None)

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Delete the pod if its time is over; otherwise requeue the pod. The method raises the errors of the API."""
        if not key.namespace:
            return self._report(key, client)
        pod = self._pods.get(key)
        eviction = None if pod is None else self._eviction(pod)
        if pod is None or eviction is None:
            if self._planned.pop(key, "") and pod is not None:
                self._recorder.event(pod, NORMAL, _REASON, "Cancelling deletion")
            return None
        self._planned[key] = pod.uid
        self._wake_rules(eviction)
        if (left := eviction.due - self._clock.now()) > 0:
            return Result(requeue_after=left / _SECOND)
        if not pod.is_terminating:
            self._evict(pod, eviction, client)
        del self._planned[key]
        return None

    def _evict(self, pod: Object, eviction: Eviction, client: EngineClient) -> None:
        self._recorder.event(pod, NORMAL, _REASON, "Marking for deletion")
        now = self._clock.now()
        if delete_disrupted(pod, *_DISRUPTED, now, client):
            DEVICE_TAINT_EVICTIONS.deleted.inc()
            DEVICE_TAINT_EVICTIONS.seconds.observe((now - eviction.due) / _SECOND)
            self._evicted.count(eviction.rules)

    def _wake_rules(self, eviction: Eviction) -> None:
        for each in self._rules.list() if self._rules is not None and eviction.rules else ():
            if each.uid in eviction.rules:
                self.wake(each.key, PERIOD)

    def _report(self, key: Key, client: EngineClient) -> Result | None:
        """Write the status of a rule, unless the status was written in the last seconds."""
        found = self._rules.get(key) if self._rules is not None else None
        if found is None:
            return None
        now = self._clock.now()
        if left := time_left(found, now):
            return Result(requeue_after=left)
        rule = DeviceTaintRule.of(found)
        condition = condition_of_rule(rule, self._selected(rule), self._evicted.of(found.uid))
        changed = with_condition(found, condition, now)
        if changed is not None:
            client.apply(changed, DESCRIPTOR.name, force=True, subresource="status")
        return None

    def _selected(self, rule: DeviceTaintRule) -> Selected:
        """Return what a rule affects, or would affect if its effect were NoExecute."""
        if rule.effect not in (NO_EXECUTE, "None"):
            return Selected()
        tainting = [rule] if rule.effect == "None" else self._evicting()
        pods = [each for each in self._pods.list() if not each.is_terminating and self._is_due(each, rule, tainting)]
        if rule.selector is None or rule.effect == NO_EXECUTE:
            return Selected(pods)
        devices = sum(map(rule.selector.matches, device_names(self._slices.list())))
        allocated = (one.id for each in self._claims.list() for one in allocated_devices(each))
        return Selected(pods, devices, sum(map(rule.selector.matches, allocated)))

    def _is_due(self, pod: Object, rule: DeviceTaintRule, tainting: list[DeviceTaintRule]) -> bool:
        eviction = self._eviction(pod, tainting)
        return eviction is not None and rule.object.uid in eviction.rules

    def _evicting(self) -> list[DeviceTaintRule]:
        rules = in_order(self._rules.list()) if self._rules is not None else ()
        return [each for each in rules if each.effect == NO_EXECUTE]

    def _eviction(self, pod: Object, tainting: list[DeviceTaintRule] | None = None) -> Eviction | None:
        """Return when and why a pod must be deleted; None if it may keep its devices."""
        found = ClaimingPod.of(pod)
        if found is None or not found.is_bound:
            return None
        rules = self._evicting() if tainting is None else tainting
        evictions = (self._eviction_for(found, each, rules) for each in found.claims)
        return joined(each for each in evictions if each is not None)

    def _eviction_for(self, pod: ClaimingPod, entry: PodClaim, rules: list[DeviceTaintRule]) -> Eviction | None:
        try:
            name = pod.name_of(entry)
        except CtrlmgrError:
            return None  # The claim does not exist yet.
        claim = None if name is None else self._claims.get(Key(pod.pod.namespace, name))
        if claim is None or (entry.resource_claim_name is None and not is_controlled_by(claim, pod.pod)):
            return None
        return eviction_of(claim, pod.pod.uid, self._slices_of, rules)

    def _slices_of(self, pool: str) -> list[Object]:
        return self._slices.by_index(_BY_POOL, pool)

    # The mapping from changes to pods.

    def of_pod(self, change: Change) -> Iterator[Key]:
        """Yield the key of a pod that has tainted devices, or whose deletion is planned."""
        pod = change.object
        if self._is_affected(pod):
            yield pod.key

    def of_claim(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods that use or used a changed claim with tainted devices."""
        yield from {key: None for each in (change.old, change.new) if each is not None for key in self._affected(each)}

    def of_slice(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods with devices of a pool that has or had a NoExecute taint."""
        states = [each for each in (change.old, change.new) if each is not None]
        for pool in sorted({pool for each in states for pool in pool_of(each)}):
            if may_be_tainted([*states, *self._slices_of(pool)]):
                for claim in self._claims.by_index(_BY_POOL, pool):
                    yield from self._affected(claim)

    def of_rule(self, change: Change) -> Iterator[Key]:
        """Yield the key of a new or changed rule, and the keys of the pods that it affects or affected."""
        old, new = change.old, change.new
        specs = [each.to_dict().get("spec") for each in (old, new) if each is not None]
        if old is not None and new is not None and old.uid == new.uid and specs[0] == specs[1]:
            return
        if new is not None:
            yield new.key
        if any(DeviceTaintRule.of(each).effect == NO_EXECUTE for each in (old, new) if each is not None):
            yield from self._all_affected(self._claims.list())

    def _all_affected(self, claims: Iterable[Object]) -> Iterator[Key]:
        yield from {key: None for claim in claims for key in self._affected(claim)}

    def _affected(self, claim: Object) -> Iterator[Key]:
        for each in users_of(claim):
            pod = self._pods.get(Key(claim.namespace, each.name))
            if pod is not None and pod.uid == each.uid and self._is_affected(pod):
                yield pod.key

    def _is_affected(self, pod: Object) -> bool:
        return pod.key in self._planned or self._eviction(pod) is not None


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    pods, claims, slices = (context.informers.informer(each) for each in (PODS, CLAIMS, SLICES))
    claims.add_index(_BY_POOL, pools_of)
    slices.add_index(_BY_POOL, pool_of)
    rules = context.informers.informer(DEVICE_TAINT_RULES) if is_on(GATE) else None
    reconciler = DeviceTaintEviction(
        pods.lister,
        claims.lister,
        slices.lister,
        None if rules is None else rules.lister,
        context.recorder(DESCRIPTOR),
        clock=context.clock,
    )
    watches = [
        Watch(pods, reconciler.of_pod),
        Watch(claims, reconciler.of_claim),
        Watch(slices, reconciler.of_slice),
        *([] if rules is None else [Watch(rules, reconciler.of_rule)]),
    ]
    workers = options.concurrent_device_taint_eviction_syncs
    controller = assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)
    reconciler.wake = controller.queue.add_after
    return controller

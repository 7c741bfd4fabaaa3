"""The device taint eviction controller: deletes pods with devices that have a NoExecute taint.

Guarantees, those of Kubernetes' `pkg/controller/devicetainteviction` without DeviceTaintRules, whose feature gate is
off:
- A pod that is bound to a node is deleted at the earliest `eviction_time` of the claims that are reserved for it.
- Before a pod is deleted, an Event is recorded, and then the condition DisruptionTarget is set.
- If a taint is removed or tolerated before the pod is deleted, the deletion is cancelled with an Event.

Only one worker uses a key at a time, so the planned deletions need no lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.device_taint_eviction import DESCRIPTOR, Options
from ctrlmgr.controllers.device_taint_eviction.tainted_devices import (
    eviction_time,
    may_be_tainted,
    pool_of,
    pools_of,
    users_of,
)
from ctrlmgr.controllers.disrupted_pods import delete_disrupted
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.resourceclaim.decide import ClaimingPod, PodClaim
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.metrics import DEVICE_TAINT_EVICTIONS

CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
SLICES: Final = Resource("resource.k8s.io", "resourceslices")
_BY_POOL: Final = "devicePool"
_SECOND: Final = 1_000_000
_REASON: Final = "DeviceTaintManagerEviction"
_DISRUPTED: Final = "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint"
"""The reason and the message of the condition DisruptionTarget of evicted pods."""


class DeviceTaintEviction:
    """Reconciles a pod that uses devices."""

    def __init__(self, pods: Lister, claims: Lister, slices: Lister, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._pods, self._claims, self._slices = pods, claims, slices
        self._recorder = recorder
        self._clock = clock
        self._planned: dict[Key, str] = {}
        """The uids of the pods that will be deleted."""

    def on_start(self) -> Iterator[Key]:
        """Remove all planned deletions, and yield the key of every pod with tainted devices."""
        self._planned.clear()
        yield from (pod.key for pod in self._pods.list() if self._due(pod) is not None)

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Delete the pod if its time is over; otherwise requeue the pod. Raises the errors of the API."""
        pod = self._pods.get(key)
        due = None if pod is None else self._due(pod)
        if pod is None or due is None:
            if self._planned.pop(key, "") and pod is not None:
                self._recorder.event(pod, NORMAL, _REASON, "Cancelling deletion")
            return None
        self._planned[key] = pod.uid
        if (left := due - self._clock.now()) > 0:
            return Result(requeue_after=left / _SECOND)
        if not pod.is_terminating:
            self._evict(pod, due, client)
        del self._planned[key]
        return None

    def _evict(self, pod: Object, due: int, client: EngineClient) -> None:
        self._recorder.event(pod, NORMAL, _REASON, "Marking for deletion")
        now = self._clock.now()
        if delete_disrupted(pod, *_DISRUPTED, now, client):
            DEVICE_TAINT_EVICTIONS.deleted.inc()
            DEVICE_TAINT_EVICTIONS.seconds.observe((now - due) / _SECOND)

    def _due(self, pod: Object) -> int | None:
        """Return when a pod must be deleted (microseconds since 1970); None if it may keep its devices."""
        found = ClaimingPod.of(pod)
        if found is None or not found.is_bound:
            return None
        times = (self._due_of(found, each) for each in found.claims)
        return min((each for each in times if each is not None), default=None)

    def _due_of(self, pod: ClaimingPod, entry: PodClaim) -> int | None:
        try:
            name = pod.name_of(entry)
        except CtrlmgrError:
            return None  # The claim does not exist yet.
        claim = None if name is None else self._claims.get(Key(pod.pod.namespace, name))
        if claim is None or (entry.resource_claim_name is None and not is_controlled_by(claim, pod.pod)):
            return None
        return eviction_time(claim, pod.pod.uid, self._slices_of)

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

    def _affected(self, claim: Object) -> Iterator[Key]:
        for each in users_of(claim):
            pod = self._pods.get(Key(claim.namespace, each.name))
            if pod is not None and pod.uid == each.uid and self._is_affected(pod):
                yield pod.key

    def _is_affected(self, pod: Object) -> bool:
        return pod.key in self._planned or self._due(pod) is not None


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    pods, claims, slices = (context.informers.informer(each) for each in (PODS, CLAIMS, SLICES))
    claims.add_index(_BY_POOL, pools_of)
    slices.add_index(_BY_POOL, pool_of)
    recorder = context.recorder(DESCRIPTOR)
    reconciler = DeviceTaintEviction(pods.lister, claims.lister, slices.lister, recorder, clock=context.clock)
    watches = [
        Watch(pods, reconciler.of_pod),
        Watch(claims, reconciler.of_claim),
        Watch(slices, reconciler.of_slice),
    ]
    workers = options.concurrent_device_taint_eviction_syncs
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)

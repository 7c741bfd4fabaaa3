"""The controllers of ReplicaSets and ReplicationControllers; both kinds use the same code.

Guarantees, as in Kubernetes (`pkg/controller/replicaset`, `pkg/controller/replication`):
- The controller changes the number of active pods (pods that have not ended and are not being deleted) to the desired
  number. Surplus pods are deleted in the order of `deletion_order`. Missing pods are created in batches of growing size
  (slow start), at most `BURST` pods in one reconcile.
- Pods that match the selector and have no controller are adopted, and pods that no longer match are released. No pods
  are created for a ReplicaSet or ReplicationController that is being deleted.
- The status is written if its content or the observed generation has changed. If the reconcile fails, the condition
  ReplicaFailure in the written status contains the reason of the failure, and the reconcile is retried with backoff.
- A ReplicaSet is reconciled only after the caches contain the writes of its last reconcile. Therefore the controller
  never creates too many pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers import replicationcontroller
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, ControllerDescriptor
from ctrlmgr.controllers.events.recorder import Recorder
from ctrlmgr.controllers.replicaset import DESCRIPTOR, Options
from ctrlmgr.controllers.replicaset.decide import Step, desired_status, next_step, with_status
from ctrlmgr.controllers.workloads.controlled_pods import (
    active,
    controller_of,
    index_by_controller,
    is_controlled_by,
    is_ready,
    is_terminating,
    next_availability,
    owned_or_orphaned,
)
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
from ctrlmgr.controllers.workloads.owners import DependentChanges
from ctrlmgr.controllers.workloads.pod_control import PodControl, in_batches, pod_from_template
from ctrlmgr.controllers.workloads.replica_sets import (
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    ReplicaSet,
    controller_selects,
    selects,
)
from ctrlmgr.controllers.workloads.workload_metrics import note_sorting
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key


class Flavour(NamedTuple):
    """The properties in which the kinds ReplicaSet and ReplicationController differ."""

    descriptor: ControllerDescriptor[Any]
    resource: Resource
    api_version: str
    kind: str
    selects: Callable[[Object, Object], bool]
    counts_terminating: bool


REPLICA_SET: Final = Flavour(DESCRIPTOR, REPLICA_SETS, "apps/v1", "ReplicaSet", selects, True)
REPLICATION_CONTROLLER: Final = Flavour(
    replicationcontroller.DESCRIPTOR,
    REPLICATION_CONTROLLERS,
    "v1",
    "ReplicationController",
    controller_selects,
    False,
)


class ReplicaSetReconciler:
    """Reconciles the pods of one ReplicaSet or ReplicationController."""

    def __init__(
        self,
        flavour: Flavour,
        sets: Lister,
        pods: Lister,
        claimer: ControllerRefManager,
        recorder: Recorder,
        *,
        clock: Clock,
        at_once: int = 1,
    ) -> None:
        """Create a reconciler that reads these caches, and creates `at_once` pods concurrently.

        The informer of pods needs the index that `index_by_controller` adds.
        """
        self._at_once = at_once
        self._flavour = flavour
        self._sets = sets
        self._pods = pods
        self._claimer = claimer
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Create or delete pods, and write the status; raises the errors of the API if a request fails."""
        obj = self._sets.get(key)
        if obj is None:
            return None
        owner = Owner(obj, self._flavour.api_version, self._flavour.kind)
        found = owned_or_orphaned(self._pods, obj)
        pods = self._claimer.claim(owner, active(found), lambda pod: self._flavour.selects(obj, pod), client)
        failure = None if obj.is_terminating else self._manage(owner, pods, client)
        status = desired_status(obj, pods, self._terminating(obj, found), _message_of(failure), self._clock.now())
        desired = with_status(obj, status)
        if desired is not None:
            client.update(desired, "status")
        if failure is not None:
            raise failure
        due = next_availability(pods, obj.view(ReplicaSet).spec.min_ready_seconds, self._clock.now())
        return None if due is None else Result(requeue_after=due)

    def _manage(self, owner: Owner, pods: list[Object], client: EngineClient) -> CtrlmgrError | None:
        """Perform the next step for a ReplicaSet; return the error of that step, if any."""
        view = owner.object.view(ReplicaSet)
        related = self._related(owner.object) if len(pods) > view.replicas > 0 else ()
        step = next_step(view.replicas, pods, related, self._clock.now())
        if step.delete and view.replicas > 0:
            note_sorting(self._ready_ages(pods), self._ready_ages(step.delete))
        return self._do(step, PodControl(owner, client, self._recorder), owner, view.template)

    def _do(self, step: Step, control: PodControl, owner: Owner, template: Mapping[str, Any]) -> CtrlmgrError | None:
        if step.create:
            new = pod_from_template(template, owner)
            return in_batches(step.create, lambda number: control.create(new), self._at_once)[1]
        return control.delete_each(step.delete)

    def _ready_ages(self, pods: Iterable[Object]) -> list[int]:
        """Return the age of each ready pod: the milliseconds since the pod's creation."""
        created = (pod.metadata.creation_timestamp for pod in pods if is_ready(pod))
        return [(self._clock.now() - parse_time(each)) // 1000 for each in created if each]

    def _related(self, obj: Object) -> list[Object]:
        """Return the pods of all ReplicaSets that have the same controller as this ReplicaSet."""
        reference = controller_of(obj)
        if reference is None:
            return []
        related = [each for each in self._sets.list(obj.namespace) if _has_controller(each, reference.uid)]
        return [pod for pod in self._pods.list(obj.namespace) if any(selects(each, pod) for each in related)]

    def _terminating(self, obj: Object, pods: Iterable[Object]) -> int | None:
        if not self._flavour.counts_terminating:
            return None
        mine = (pod for pod in pods if is_terminating(pod) and is_controlled_by(pod, obj))
        return sum(1 for pod in mine if self._flavour.selects(obj, pod))


def _has_controller(obj: Object, uid: str) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid


def _message_of(failure: CtrlmgrError | None) -> str | None:
    return None if failure is None else str(failure)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller of ReplicaSets from its context and options."""
    return _build(REPLICA_SET, context, options.concurrent_replicaset_syncs)


def build_for_replication_controllers(context: ControllerContext, options: replicationcontroller.Options) -> Controller:
    """Build the controller of ReplicationControllers from its context and options."""
    return _build(REPLICATION_CONTROLLER, context, options.concurrent_rc_syncs)


def _build(flavour: Flavour, context: ControllerContext, workers: int) -> Controller:
    sets, pods = context.informers.informer(flavour.resource), context.informers.informer(PODS)
    index_by_controller(pods)
    reconciler = ReplicaSetReconciler(
        flavour,
        sets.lister,
        pods.lister,
        ControllerRefManager(context.event_log),
        context.recorder(flavour.descriptor),
        clock=context.clock,
        at_once=context.at_once,
    )
    changed = DependentChanges(sets.lister, flavour.resource.group, flavour.kind, flavour.selects)
    watches = [Watch(sets, own_key, after_sync=True), Watch(pods, changed)]
    return assemble(flavour.descriptor, context, reconciler, watches, workers=workers, reads_own_writes=True)

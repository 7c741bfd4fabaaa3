"""The DaemonSet controller; the module `daemonset.decide` states its guarantees.

A reconcile continues a rolling update only if it neither creates nor deletes a pod. Therefore the update counts only
pods that exist. A DaemonSet that is being deleted is not reconciled, because its ControllerRevisions may already be
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.daemonset import DESCRIPTOR, Options
from ctrlmgr.controllers.daemonset.daemon_pods import by_node, pod_for, target_node
from ctrlmgr.controllers.daemonset.daemonset_revisions import RevisionKeeper
from ctrlmgr.controllers.daemonset.decide import Planner, Step, fits, with_status
from ctrlmgr.controllers.daemonset.failed_daemon_pods import FailedPodsBackoff, Series
from ctrlmgr.controllers.daemonset.view import API_VERSION, DAEMON_SETS, KIND, DaemonSet, selects
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import Recorder
from ctrlmgr.controllers.workloads.controlled_pods import (
    index_by_controller,
    next_availability,
    owned,
    owned_or_orphaned,
)
from ctrlmgr.controllers.workloads.controller_history import History
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
from ctrlmgr.controllers.workloads.controller_revisions import CONTROLLER_REVISIONS
from ctrlmgr.controllers.workloads.owners import DependentChanges
from ctrlmgr.controllers.workloads.pod_control import PodControl, in_batches
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)

BURST: Final = 250
"""The maximum number of pods that one reconcile creates, and the maximum number of pods that it deletes
(`BurstReplicas`).
"""


class DaemonSetReconciler:
    """Reconciles a DaemonSet."""

    def __init__(
        self,
        daemon_sets: Lister,
        pods: Lister,
        nodes: Lister,
        history: History,
        event_log: EventLog,
        recorder: Recorder,
        *,
        clock: Clock,
        at_once: int = 1,
    ) -> None:
        """Create a reconciler that reads objects from these caches; `pods` needs `index_by_controller`.

        A reconcile creates `at_once` pods concurrently.
        """
        self._at_once = at_once
        self._sets = daemon_sets
        self._pods = pods
        self._nodes = nodes
        self._history = history
        self._log = event_log
        self._claimer = ControllerRefManager(event_log)
        self._recorder = recorder
        self._clock = clock
        self._backoff = FailedPodsBackoff(clock)

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Create and delete pods as needed, and write the status; raises the errors of the API if a request fails."""
        obj = self._sets.get(key)
        if obj is None or obj.is_terminating:
            return None
        if obj.view(DaemonSet).selector is None:
            log.error("daemon set has no valid selector", daemon_set=str(key))
            return None
        owner = Owner(obj, API_VERSION, KIND)
        revisions = self._history.of(owner, lambda each: selects(obj, each), client)
        found = owned_or_orphaned(self._pods, obj)
        pods = self._claimer.claim(owner, found, lambda pod: selects(obj, pod), client)
        return self._sync(owner, revisions, pods, client)

    def _sync(
        self, owner: Owner, found: Sequence[Object], pods: Sequence[Object], client: EngineClient
    ) -> Result | None:
        obj, now = owner.object, self._clock.now()
        keeper = RevisionKeeper(owner, self._log, client)
        revisions = keeper.sort(found, pods)
        planner = Planner(obj, self._nodes.list(), by_node(pods), revisions.hash, now)
        step = planner.manage(lambda node: self._wait(obj, node))
        for tale in step.events:
            self._recorder.event(obj, *tale)
        if not step and obj.view(DaemonSet).is_rolling:
            rolled = planner.roll()
            step = Step(rolled.create, rolled.delete, again=step.again)
        failure = self._carry_out(owner, step, revisions.hash, client)
        if failure is None:
            keeper.clean_up(revisions.old, pods)
        desired = with_status(obj, planner.status())
        if desired is not None:
            client.update(desired, "status")
        if failure is not None:
            raise failure
        due = next_availability(pods, obj.view(DaemonSet).spec.min_ready_seconds, now)
        if due is not None:
            step.wait(due)
        return None if step.again is None else Result(requeue_after=step.again)

    def _wait(self, obj: Object, node: str) -> float:
        series = Series(obj.uid, obj.view(DaemonSet).status.observed_generation, node)
        return self._backoff.before_replacing(series)

    def _carry_out(self, owner: Owner, step: Step, hash_: str, client: EngineClient) -> CtrlmgrError | None:
        """Create pods in batches of growing size (slow start), and delete the pods that are not wanted.

        Return the first error of a request.
        """
        control = PodControl(owner, client, self._recorder)
        nodes = step.create[:BURST]
        pods = [pod_for(owner, node, hash_) for node in nodes]
        not_created = in_batches(len(pods), lambda number: control.create(pods[number]), self._at_once)[1]
        not_deleted = control.delete_each(step.delete[:BURST])
        return not_created or not_deleted


class NodeChanges:
    """Maps a changed node to the DaemonSets that must create or delete a pod on the node.

    As in Kubernetes, if a change of a node neither adds nor removes pods, the change maps to no DaemonSets. The
    deletion of a node maps to no DaemonSets either, because the deletion of its pods triggers the reconciles.
    """

    def __init__(self, daemon_sets: Lister, pods: Lister) -> None:
        """Create the mapping, which reads `daemon_sets` and `pods`; `pods` needs `index_by_controller`."""
        self._sets = daemon_sets
        self._pods = pods

    def __call__(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the DaemonSets that must create or delete a pod on the changed node."""
        old, new = change.old, change.new
        if new is None or (old is not None and _same(old, new)):
            return
        for each in self._sets.list():
            if each.view(DaemonSet).selector is None:
                continue
            desired = fits(each, new)
            has_pod = any(target_node(pod) == new.name for pod in owned(self._pods, each))
            if (not desired.may_continue) if has_pod else desired.should_run:
                yield each.key


def _same(old: Object, new: Object) -> bool:
    """Return whether two versions of a node have the same effect on DaemonSets.

    For example, a status report of the kubelet usually has no effect on DaemonSets.
    """
    if old.labels != new.labels:
        return False
    taints = ((each.to_dict().get("spec") or {}).get("taints") for each in (old, new))
    return len({str(each) for each in taints}) == 1


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    resources = (DAEMON_SETS, PODS, NODES, CONTROLLER_REVISIONS)
    sets, pods, nodes, revisions = (context.informers.informer(each) for each in resources)
    index_by_controller(pods)
    index_by_controller(revisions)
    history = History(revisions.lister, context.event_log)
    reconciler = DaemonSetReconciler(
        sets.lister,
        pods.lister,
        nodes.lister,
        history,
        context.event_log,
        context.recorder(DESCRIPTOR),
        clock=context.clock,
        at_once=context.at_once,
    )
    changed = DependentChanges(sets.lister, DAEMON_SETS.group, KIND, selects)
    watches = [
        Watch(sets, own_key, after_sync=True),
        Watch(pods, changed),
        Watch(revisions, changed),
        Watch(nodes, NodeChanges(sets.lister, pods.lister)),
    ]
    workers = options.concurrent_daemonset_syncs
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)

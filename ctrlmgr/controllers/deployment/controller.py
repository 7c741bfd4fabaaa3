"""The Deployment controller.

Guarantees, as in Kubernetes (`pkg/controller/deployment`):
- The number of pods never exceeds the desired number plus the surge. The controller never reduces the number of
  available pods below the desired number minus the maximum of unavailable pods. With the strategy Recreate, no new pod
  is created before the last old pod has ended.
- If a Deployment is scaled during a rollout, its ReplicaSets are scaled in proportion to their sizes. The controller
  scales and cleans up a paused Deployment, but does not continue its rollout.
- At most `spec.revisionHistoryLimit` old ReplicaSets are kept. The annotation `deprecated.deployment.rollback.to`
  restores the template of an old ReplicaSet.
- The status of a Deployment describes the generation in `observedGeneration`. A rollout that makes no progress for
  `spec.progressDeadlineSeconds` is reported in the status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import structlog

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.deployment import DESCRIPTOR, Options, decide, deployment_annotations, status
from ctrlmgr.controllers.deployment.owned_replica_sets import API_VERSION, KIND, Rollout
from ctrlmgr.controllers.deployment.view import DEPLOYMENTS, Deployment
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, index_by_controller, owned, owned_or_orphaned
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
from ctrlmgr.controllers.workloads.owners import DependentChanges
from ctrlmgr.controllers.workloads.replica_sets import REPLICA_SETS, ReplicaSet
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)


def selects(deployment: Object, replica_set: Object) -> bool:
    """Return whether a Deployment selects a ReplicaSet by the labels of the ReplicaSet."""
    selector = deployment.view(Deployment).selector
    return selector is not None and not selector.is_empty and selector.matches(replica_set.labels)


class DeploymentReconciler:
    """Takes the next step of a Deployment's rollout."""

    def __init__(
        self,
        deployments: Lister,
        replica_sets: Lister,
        pods: Lister,
        event_log: EventLog,
        recorder: Recorder,
        *,
        clock: Clock,
    ) -> None:
        """Create a reconciler that reads objects from these caches.

        The informers of ReplicaSets and pods need `index_by_controller`.
        """
        self._deployments = deployments
        self._sets = replica_sets
        self._pods = pods
        self._log = event_log
        self._claimer = ControllerRefManager(event_log)
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Take the next step of the Deployment's rollout; raises the errors of the API if a request fails."""
        deployment = self._deployments.get(key)
        if deployment is None:
            return None
        selector = deployment.view(Deployment).selector
        if selector is None:
            log.error("deployment has no valid selector", deployment=str(key))
            return None
        if selector.is_empty:
            self._refuse_all(deployment, client)
            return None
        owner = Owner(deployment, API_VERSION, KIND)
        found = owned_or_orphaned(self._sets, deployment)
        mine = self._claimer.claim(owner, found, lambda each: selects(deployment, each), client)
        return self._sync(Rollout(deployment, mine, client, self._log, self._recorder, self._clock))

    def _refuse_all(self, deployment: Object, client: EngineClient) -> None:
        message = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.event(deployment, WARNING, "SelectingAll", message)
        fields = deployment.to_dict()
        generation = deployment.metadata.generation or 0
        if deployment.view(Deployment).status.observed_generation < generation:
            fields["status"] = {**(fields.get("status") or {}), "observedGeneration": generation}
            client.update(Object.from_dict(fields), "status")

    def _sync(self, rollout: Rollout) -> Result | None:
        if rollout.deployment.is_terminating:
            rollout.sync_revision()
            self._write_numbers(rollout)
            return None
        if (paused := status.pausing(rollout.view, self._clock.now())) is not None:
            rollout.set_condition(paused)
        if rollout.view.spec.paused:
            self._scale(rollout)
            return None
        if (revision := deployment_annotations.rollback_to(rollout.deployment)) is not None:
            return self._roll_back(rollout, revision)
        rollout.sync_revision()
        if decide.is_scaling(rollout.view, rollout.all):
            self._scale(rollout)
            return None
        return self._recreate(rollout) if rollout.view.recreates else self._roll(rollout)

    def _scale(self, rollout: Rollout) -> None:
        new = rollout.sync_revision()
        scaled = decide.scale(rollout.view, new, rollout.old)
        rollout.resize(scaled.sizes, note=scaled.shared)
        if rollout.view.spec.paused and deployment_annotations.rollback_to(rollout.deployment) is None:
            rollout.clean_up()
        self._write_numbers(rollout)

    def _roll(self, rollout: Rollout) -> Result | None:
        new = rollout.require_new()
        if new is None:
            return _AT_ONCE
        others = sum(map(decide.size, rollout.old))
        desired = decide.size_of_new(rollout.view, others, decide.size(new))
        shrinks = decide.size(new) > rollout.view.replicas
        if rollout.resize({new.name: rollout.view.replicas if shrinks else desired}):
            return self._write_rollout(rollout)
        if rollout.resize(decide.shrink_old(rollout.view, new, rollout.old)):
            return self._write_rollout(rollout)
        return self._finish(rollout)

    def _recreate(self, rollout: Rollout) -> Result | None:
        if rollout.resize({each.name: 0 for each in decide.scaled_up(rollout.old)}):
            return self._write_rollout(rollout)
        if self._old_pods_run(rollout):
            return self._write_rollout(rollout)
        new = rollout.require_new()
        if new is None:
            return _AT_ONCE
        rollout.resize({new.name: rollout.view.replicas})
        return self._finish(rollout)

    def _finish(self, rollout: Rollout) -> Result | None:
        if status.is_complete(rollout.deployment, rollout.deployment.to_dict().get("status") or {}):
            rollout.clean_up()
        return self._write_rollout(rollout)

    def _old_pods_run(self, rollout: Rollout) -> bool:
        """Return whether any pod of an old ReplicaSet has not ended."""
        new = rollout.new
        if any(each.view(ReplicaSet).status.replicas for each in rollout.old):
            return True
        old = [each for each in rollout.all if new is None or each.uid != new.uid]
        pods = (pod for each in old for pod in owned(self._pods, each))
        return any(not pod.view(Pod).is_terminal for pod in pods if selects(rollout.deployment, pod))

    def _roll_back(self, rollout: Rollout, revision: int) -> Result | None:
        """Restore the template of an earlier revision, if that revision exists."""
        if rollout.require_new() is None:
            return _AT_ONCE
        desired = revision or deployment_annotations.last_revision(rollout.all)
        fields = rollout.deployment.to_dict()
        noted = dict(rollout.deployment.annotations)
        target = next((each for each in rollout.all if deployment_annotations.revision_of(each) == desired), None)
        done = ""
        if not desired:
            rollout.tell(WARNING, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
        elif target is None:
            message = "Unable to find the revision to rollback to."
            rollout.tell(WARNING, "DeploymentRollbackRevisionNotFound", message)
        elif decide.same_template(rollout.view.template, target.view(ReplicaSet).template):
            message = (
                f'The rollback revision contains the same template as current deployment "{rollout.deployment.name}"'
            )
            rollout.tell(WARNING, "DeploymentRollbackTemplateUnchanged", message)
        else:
            fields["spec"]["template"] = decide.without_hash(target.view(ReplicaSet).template)
            noted = deployment_annotations.of_rolled_back(noted, target.annotations)
            done = f'Rolled back deployment "{rollout.deployment.name}" to revision {desired}'
        noted.pop(deployment_annotations.ROLLBACK_TO, None)
        fields["metadata"]["annotations"] = noted
        rollout.update(fields)
        if done:
            rollout.tell(NORMAL, "DeploymentRollback", done)
        return None

    def _write_numbers(self, rollout: Rollout) -> None:
        new = rollout.new
        rollout.write_status(status.numbers(rollout.deployment, new, rollout.all, self._clock.now()))

    def _write_rollout(self, rollout: Rollout) -> Result | None:
        now = self._clock.now()
        desired = status.of_rollout(rollout.deployment, rollout.new, rollout.all, now)
        rollout.write_status(desired)
        due = status.look_again_in(rollout.deployment, desired, now)
        return None if due is None else Result(requeue_after=due)


_AT_ONCE: Final = Result(requeue_after=0.0)
"""The result of a reconcile in which the new ReplicaSet's name was in use. The next reconcile uses another hash."""


class _LastPods:
    """Maps a deleted pod to its Deployment, if the Deployment is waiting for the deletion of its last old pod."""

    def __init__(self, deployments: Lister, replica_sets: Lister) -> None:
        self._deployments = deployments
        self._sets = replica_sets

    def __call__(self, change: Change) -> Iterator[Key]:
        if change.new is not None:
            return
        reference = controller_of(change.object)
        if reference is None or reference.kind != "ReplicaSet":
            return
        replica_set = self._sets.get(Key(change.object.namespace, reference.name))
        owner = controller_of(replica_set) if replica_set is not None else None
        if owner is not None and owner.kind == KIND:
            deployment = self._deployments.get(Key(change.object.namespace, owner.name))
            if deployment is not None and deployment.view(Deployment).recreates:
                yield deployment.key


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    deployments, sets, pods = (context.informers.informer(each) for each in (DEPLOYMENTS, REPLICA_SETS, PODS))
    index_by_controller(sets)
    index_by_controller(pods)
    reconciler = DeploymentReconciler(
        deployments.lister,
        sets.lister,
        pods.lister,
        context.event_log,
        context.recorder(DESCRIPTOR),
        clock=context.clock,
    )
    watches = [
        Watch(deployments, own_key, after_sync=True),
        Watch(sets, DependentChanges(deployments.lister, DEPLOYMENTS.group, KIND, selects)),
        Watch(pods, _LastPods(deployments.lister, sets.lister)),
    ]
    workers = options.concurrent_deployment_syncs
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)

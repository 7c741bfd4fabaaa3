"""The StatefulSet controller; the module `statefulset.decide` states its guarantees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import Recorder
from ctrlmgr.controllers.statefulset import DESCRIPTOR, Options
from ctrlmgr.controllers.statefulset.decide import (
    Members,
    Planner,
    Revisions,
    Step,
    desired_status,
    is_inconsistent,
    members,
)
from ctrlmgr.controllers.statefulset.identity import is_member, revision_of
from ctrlmgr.controllers.statefulset.stateful_pod_control import StatefulPodControl
from ctrlmgr.controllers.statefulset.view import API_VERSION, CLAIMS, KIND, STATEFUL_SETS, StatefulSet
from ctrlmgr.controllers.workloads.controlled_pods import index_by_controller, next_availability, owned_or_orphaned
from ctrlmgr.controllers.workloads.controller_history import (
    History,
    NewestRevision,
    found_or_raised,
    next_number,
    template_in,
)
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
from ctrlmgr.controllers.workloads.controller_revisions import (
    CONTROLLER_REVISIONS,
    NewRevision,
    patch_bytes,
    template_patch,
)
from ctrlmgr.controllers.workloads.hashes import revision_hash
from ctrlmgr.controllers.workloads.owners import DependentChanges
from ctrlmgr.controllers.workloads.pod_control import in_batches
from ctrlmgr.errors import ApiError, CtrlmgrError
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)

HASH_LABEL: Final = "controller.kubernetes.io/hash"
_HISTORY: Final = 10
"""The default number of old revisions that are kept, as in the API server."""


def selects(stateful_set: Object, obj: Object) -> bool:
    """Return whether the selector of a StatefulSet matches a pod or a revision."""
    selector = stateful_set.view(StatefulSet).selector
    return selector is not None and not selector.is_empty and selector.matches(obj.labels)


class StatefulSetReconciler:
    """Reconciles a StatefulSet."""

    def __init__(
        self,
        stateful_sets: Lister,
        pods: Lister,
        claims: Lister,
        history: History,
        claimer: ControllerRefManager,
        recorder: Recorder,
        *,
        clock: Clock,
    ) -> None:
        """Create a reconciler that reads objects from these caches; the cache of pods needs `index_by_controller`."""
        self._sets = stateful_sets
        self._pods = pods
        self._claims = claims
        self._history = history
        self._claimer = claimer
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Perform the steps that are possible now, and write the status.

        Raises the errors of the API if a request fails.
        """
        assert isinstance(client, EngineClient), "pods are made as the API makes them"
        obj = self._sets.get(key)
        if obj is None:
            return None
        if obj.view(StatefulSet).selector is None:
            log.error("stateful set has no valid selector", stateful_set=str(key))
            return None
        owner = Owner(obj, API_VERSION, KIND)
        revisions = self._history.of(owner, lambda each: selects(obj, each), client)
        found = owned_or_orphaned(self._pods, obj)
        pods = self._claimer.claim(owner, found, lambda pod: is_member(obj, pod) and selects(obj, pod), client)
        self._sync(owner, pods, revisions, client)
        view, now = obj.view(StatefulSet), self._clock.now()
        due = next_availability(pods, view.spec.min_ready_seconds, now)
        return None if due is None else Result(requeue_after=due)

    def _sync(self, owner: Owner, pods: Sequence[Object], revisions: Sequence[Object], client: EngineClient) -> None:
        obj = owner.object
        newest = self._newest(owner, revisions, client)
        named = {each.name: each for each in (*revisions, newest.revision)}
        update = newest.revision
        current = named.get(obj.view(StatefulSet).status.current_revision, update)
        templates = Revisions(current.name, template_in(current), update.name, template_in(update))
        found = members(obj, pods, templates)
        control = StatefulPodControl(
            obj, lambda name: self._claims.get(Key(obj.namespace, name)), client, self._recorder
        )
        failure = self._carry_out(obj, found, update.name, control)
        self._write_status(obj, pods, templates, newest.collisions, control.replaced, client)
        self._clean_up(obj, pods, revisions, templates, client)
        if failure is not None:
            raise failure

    def _newest(self, owner: Owner, revisions: Sequence[Object], client: EngineClient) -> NewestRevision:
        view = owner.object.view(StatefulSet)
        collisions = view.status.collision_count or 0
        data = template_patch(view.template)
        found = found_or_raised(revisions, data, client)
        if found is not None:
            return NewestRevision(found, collisions)
        labels = (view.template.get("metadata") or {}).get("labels") or {}
        desired = NewRevision(owner, next_number(revisions), data, labels, owner.object.annotations, HASH_LABEL)
        encoded = patch_bytes(data)
        return self._history.create(desired, lambda count: revision_hash(encoded, count), collisions, client)

    def _carry_out(self, obj: Object, found: Members, update: str, control: StatefulPodControl) -> CtrlmgrError | None:
        """Perform the steps of all phases in order, with a slow start.

        If a step of a phase fails, skip the later phases, and return the error.
        """
        planner = Planner(
            obj, found, update, lambda name: self._claims.get(Key(obj.namespace, name)), self._clock.now()
        )
        for phase in planner.phases():
            failure = _do_all(phase, control, in_order=obj.view(StatefulSet).is_ordered)
            if failure is not None:
                return failure
        return None

    def _write_status(
        self,
        obj: Object,
        pods: Iterable[Object],
        revisions: Revisions,
        collisions: int,
        replaced: int,
        client: EngineClient,
    ) -> None:
        current, update = revisions.current, revisions.update
        status = desired_status(obj, pods, current, update, collisions, self._clock.now(), replaced)
        if is_inconsistent(obj, status):
            client.update(Object.from_dict({**obj.to_dict(), "status": status}), "status")

    def _clean_up(
        self,
        obj: Object,
        pods: Iterable[Object],
        revisions: Sequence[Object],
        live: Revisions,
        client: EngineClient,
    ) -> None:
        limit = obj.view(StatefulSet).spec.revision_history_limit
        names = {live.current, live.update, *(revision_of(pod) for pod in pods)}
        self._history.delete_beyond(_HISTORY if limit is None else limit, revisions, names, client)


def _do_all(steps: Sequence[Step], control: StatefulPodControl, *, in_order: bool) -> CtrlmgrError | None:
    """Perform the steps of a phase.

    If the StatefulSet is ordered, perform the writes one by one until the first failure; otherwise perform the writes
    with a slow start.
    """
    if not in_order:
        return in_batches(len(steps), lambda number: control.do(steps[number]))[1]
    for step in steps:
        try:
            control.do(step)
        except ApiError as error:
            return error
    return None


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    resources = (STATEFUL_SETS, PODS, CLAIMS, CONTROLLER_REVISIONS)
    sets, pods, claims, revisions = (context.informers.informer(each) for each in resources)
    index_by_controller(pods)
    index_by_controller(revisions)
    event_log, recorder = context.event_log, context.recorder(DESCRIPTOR)
    history, claimer = History(revisions.lister, event_log), ControllerRefManager(event_log)
    reconciler = StatefulSetReconciler(
        sets.lister, pods.lister, claims.lister, history, claimer, recorder, clock=context.clock
    )
    changed = DependentChanges(sets.lister, STATEFUL_SETS.group, KIND, selects)
    watches = [Watch(sets, own_key, after_sync=True), Watch(pods, changed)]
    workers = options.concurrent_statefulset_syncs
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=workers, reads_own_writes=True)

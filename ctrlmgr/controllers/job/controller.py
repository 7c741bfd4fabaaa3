"""The Job controller: manages the pods of Jobs, and removes its finalizer from pods that will not be counted.

Guarantees, as in Kubernetes (`pkg/controller/job`):
- Each pod that ends is counted once, even after a crash (`pod_tracking`). No pod keeps the finalizer after its Job is
  deleted.
- Changes of pods are combined in batches for `BATCH_PERIOD`. Changes of a Job's spec are reconciled immediately.
- The controller ignores Jobs that have finished, and Jobs that another controller manages.
- A Job is reconciled only after the caches contain the writes of its last reconcile. Therefore the controller never
  creates too many pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.controllers.job import DESCRIPTOR, Options
from ctrlmgr.controllers.job.job_backoff import Backoff, recalled
from ctrlmgr.controllers.job.job_metrics import note_job, note_pod, note_sync
from ctrlmgr.controllers.job.job_reconcile import BATCH_PERIOD, Run, released
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.view import TRACKING, Job, JobPod
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, index_by_controller, owned, owned_or_orphaned
from ctrlmgr.controllers.workloads.controller_ref_manager import ControllerRefManager, Owner
from ctrlmgr.controllers.workloads.owners import DependentChanges
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.label_selectors import selector_of
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.workqueue import ExponentialBackoff

log = structlog.get_logger(__name__)

JOBS: Final = Resource("batch", "jobs")
API_VERSION: Final = "batch/v1"
KIND: Final = "Job"

_MODES: Final = (None, "NonIndexed", "Indexed")
_FIRST_RETRY: Final = 1.0
_LAST_RETRY: Final = 60.0
"""The minimum and maximum number of seconds until the retry of a failed reconcile (`MaxJobApiBackOff`)."""
_ORPHAN: Final = "pods/"
"""The prefix in a key's name that marks the key of a pod. The name of an object cannot contain a slash."""


class JobReconciler:
    """Reconciles Jobs, and pods that have the finalizer but no Job."""

    def __init__(
        self,
        jobs: Lister,
        pods: Lister,
        claimer: ControllerRefManager,
        recorder: Recorder,
        *,
        clock: Clock,
        recalls: bool = False,
    ) -> None:
        """Create a reconciler that reads objects from these caches; `pods` needs `index_by_controller`.

        If `recalls` is set, the backoff of a Job includes pods that were counted before this process started.
        """
        self._recalls = recalls
        self._jobs = jobs
        self._pods = pods
        self._claimer = claimer
        self._recorder = recorder
        self._clock = clock
        # The backoffs, keyed by the Job's key. No lock is needed, because only one worker reconciles a key at a time,
        # and dictionary operations are atomic.
        self._backoffs: dict[Key, Backoff] = {}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Reconcile a Job or an orphan pod; raises the errors of the API if a request fails."""
        if key.name.startswith(_ORPHAN):
            self._let_go(Key(key.namespace, key.name.removeprefix(_ORPHAN)), client)
            return None
        obj = self._jobs.get(key)
        if obj is None or obj.view(Job).status.finished is not None:
            self._backoffs.pop(key, None)
            return None
        spec = obj.view(Job).spec
        if spec.foreign_manager is not None:
            return None
        if spec.completion_mode not in _MODES:
            message = "Skipped Job sync because completion mode is unknown"
            self._recorder.event(obj, WARNING, "UnknownCompletionMode", message)
            return None
        return self._run(obj, client)

    def _run(self, obj: Object, client: EngineClient) -> Result | None:
        owner = Owner(obj, API_VERSION, KIND)
        candidates = owned_or_orphaned(self._pods, obj)
        found = self._claimer.claim(owner, candidates, lambda pod: selects(obj, pod), client)
        pods = [JobPod(pod) for pod in found]
        waited = self._backoffs.get(obj.key)
        if waited is None:
            waited = recalled(pods) if self._recalls else Backoff()
        snapshot = JobSnapshot(job=obj.view(Job), pods=pods, now=self._clock.now(), waited=waited)
        run = Run(snapshot, owner, client, self._recorder)
        began, done = self._clock.monotonic(), False
        try:
            again = run.reconcile()
            done = run.failure is None
        finally:
            note_sync(snapshot, run.action, self._clock.monotonic() - began, failed=not done)
            if run.flushed:
                self._backoffs[obj.key] = snapshot.backoff
        if run.failure is not None:
            raise run.failure
        return None if again is None else Result(requeue_after=again)

    def _let_go(self, key: Key, client: EngineClient) -> None:
        """Remove the finalizer from a pod that no Job will ever count (`syncOrphanPod`)."""
        pod = self._pods.get(key)
        if pod is None or not is_uncounted(pod, self._jobs):
            return
        try:
            client.patch(pod, released(pod))
        except NotFound:
            log.debug("pod already deleted", pod=str(key))


def selects(job: Object, pod: Object) -> bool:
    """Return whether the selector of a Job matches a pod."""
    selector = selector_of(job.view(Job).spec.selector or {})
    return selector is not None and selector.matches(pod.labels)


def is_uncounted(pod: Object, jobs: Lister) -> bool:
    """Return whether a pod has the finalizer of a deleted or finished Job that this controller manages."""
    if TRACKING not in (pod.metadata.finalizers or ()):
        return False
    reference = controller_of(pod)
    if reference is None:
        return True
    if (reference.api_version, reference.kind) != (API_VERSION, KIND):
        return False
    job = jobs.get(Key(pod.namespace, reference.name))
    if job is None or job.uid != reference.uid:
        return True
    view = job.view(Job)
    return view.spec.foreign_manager is None and view.status.finished is not None


class JobChanges:
    """Maps changes of Jobs and pods to the keys to reconcile: the keys of Jobs, and the keys of pods without a Job."""

    def __init__(self, jobs: Lister, pods: Lister) -> None:
        """Create the mapping, which reads Jobs and pods from these caches."""
        self._jobs = jobs
        self._pods = pods

    def at_once(self, change: Change) -> Iterable[Key]:
        """Return the key of a Job that was created or deleted, or whose spec has changed."""
        note_job(change)
        return (change.object.key,) if _is_new(change) else ()

    def gathered(self, change: Change) -> Iterable[Key]:
        """Return the key of a Job if only its status or metadata changed."""
        return () if _is_new(change) else (change.object.key,)

    def orphaned_pods(self, change: Change) -> Iterator[Key]:
        """Yield the keys of pods whose Job was deleted or has finished."""
        job = change.object
        if change.new is None or job.view(Job).status.finished is not None:
            for pod in owned(self._pods, job):
                yield from self._if_uncounted(pod)

    def orphaned(self, change: Change) -> Iterator[Key]:
        """Yield the key of a pod that has a finalizer, but that no Job will count."""
        note_pod(change)
        if change.new is not None:
            yield from self._if_uncounted(change.new)

    def _if_uncounted(self, pod: Object) -> Iterator[Key]:
        if is_uncounted(pod, self._jobs):
            yield Key(pod.namespace, _ORPHAN + pod.name)


def _is_new(change: Change) -> bool:
    """Return whether a Job was created or deleted, or whether its spec has changed."""
    old, new = change.old, change.new
    return old is None or new is None or old.metadata.generation != new.metadata.generation


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    jobs, pods = context.informers.informer(JOBS), context.informers.informer(PODS)
    index_by_controller(pods)
    changes = JobChanges(jobs.lister, pods.lister)
    owners = DependentChanges(jobs.lister, JOBS.group, KIND, selects)
    batch_period = BATCH_PERIOD / 1_000_000
    claimer = ControllerRefManager(context.event_log, TRACKING)
    return assemble(
        DESCRIPTOR,
        context,
        JobReconciler(
            jobs.lister,
            pods.lister,
            claimer,
            context.recorder(DESCRIPTOR),
            clock=context.clock,
            recalls=context.recalls,
        ),
        [
            Watch(jobs, changes.at_once, after_sync=True),
            Watch(jobs, changes.gathered, delay=batch_period),
            Watch(jobs, changes.orphaned_pods),
            Watch(pods, owners, delay=batch_period),
            Watch(pods, changes.orphaned),
        ],
        workers=options.concurrent_job_syncs,
        limiter=ExponentialBackoff(_FIRST_RETRY, _LAST_RETRY),
        reads_own_writes=True,
    )

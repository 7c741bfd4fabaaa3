"""A snapshot for a Job's reconcile: the Job and its pods at one moment, and what follows from them alone.

Rules come from Kubernetes' `pkg/controller/job/job_controller.go` (`syncJobCtx`, `getNewFinishedPods`, `isPodFailed`)
and `indexed_job_utils.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ctrlmgr.controllers.job.backoff import Backoff
from ctrlmgr.controllers.job.indexes import (
    Intervals,
    completion_index,
    failure_count,
    ignored_failure_count,
    indexes_of,
)
from ctrlmgr.controllers.job.policies import judge
from ctrlmgr.controllers.job.views import Job, JobPod, JobSpec, JobStatus, Uncounted


@dataclass(frozen=True, kw_only=True)
class JobSnapshot:
    """A Job, the pods that are its own, the time (microseconds since 1970) and how it waited so far."""

    job: Job
    pods: Sequence[JobPod]
    now: int
    waited: Backoff

    @property
    def spec(self) -> JobSpec:
        """What the Job shall be."""
        return self.job.spec

    @property
    def status(self) -> JobStatus:
        """What the Job was when it was last written down."""
        return self.job.status

    @property
    def is_deleted(self) -> bool:
        """Whether the Job is on its way out."""
        return self.job.metadata.deletion_timestamp is not None

    @property
    def completions(self) -> int:
        """How many indexes an Indexed Job has."""
        return self.spec.completions or 0

    @property
    def uncounted(self) -> Uncounted:
        """The uids that the status holds as ended and not yet counted."""
        return self.status.uncounted_terminated_pods or Uncounted()

    @cached_property
    def active(self) -> Sequence[JobPod]:
        """The pods that run, or may yet, and shall."""
        return [pod for pod in self.pods if pod.is_active]

    @cached_property
    def ready(self) -> int:
        """How many of the active pods are ready."""
        return sum(pod.is_ready for pod in self.active)

    @cached_property
    def terminating(self) -> int:
        """How many pods shall end and have not yet."""
        return sum(pod.is_terminating for pod in self.pods)

    def has_failed(self, pod: JobPod) -> bool:
        """Whether a pod is a failure: also by being deleted, unless the Job waits for it to end."""
        if pod.phase == "Failed":
            return True
        return not self.spec.waits_for_the_end and pod.is_deleted and pod.phase != "Succeeded"

    def index_of(self, pod: JobPod) -> int | None:
        """Return which of the Job's indexes a pod has, None for none."""
        index = completion_index(pod.annotations)
        return index if index is not None and index < self.completions else None

    @cached_property
    def newly_succeeded(self) -> Sequence[JobPod]:
        """The pods that have succeeded and are not in the status."""
        return self._new(self.uncounted.succeeded, lambda pod: pod.phase == "Succeeded")

    @cached_property
    def newly_failed(self) -> Sequence[JobPod]:
        """The pods that have failed and are not in the status."""
        return self._new(self.uncounted.failed, self.has_failed)

    def _new(self, known: Iterable[str] | None, test: Callable[[JobPod], bool]) -> Sequence[JobPod]:
        uids = set(known or ())
        return [pod for pod in self._counting if pod.uid not in uids and test(pod)]

    @cached_property
    def _counting(self) -> Sequence[JobPod]:
        """The pods that have not been counted, and can be."""
        tracked = [pod for pod in self.pods if pod.is_tracked]
        return [pod for pod in tracked if self.index_of(pod) is not None] if self.spec.is_indexed else tracked

    @cached_property
    def succeeded(self) -> int:
        """How many pods, or indexes, have succeeded."""
        if self.spec.is_indexed:
            return self.succeeded_indexes.total
        return self.status.succeeded + len(self.newly_succeeded) + len(self.uncounted.succeeded or ())

    @cached_property
    def failed(self) -> int:
        """How many pods have failed in a way that counts."""
        counted = sum(judge(self.spec.pod_failure_policy, pod).counts for pod in self.newly_failed)
        return self.status.failed + counted + len(self.uncounted.failed or ())

    @cached_property
    def backoff(self) -> Backoff:
        """How it waits, now that more pods have ended."""
        return self.waited.after(self.newly_succeeded, self.newly_failed)

    @cached_property
    def counted_indexes(self) -> Intervals:
        """The indexes that the status has as succeeded."""
        return Intervals.parse(self.status.completed_indexes, self.completions)

    @cached_property
    def succeeded_indexes(self) -> Intervals:
        """All indexes that have succeeded."""
        new = (self.index_of(pod) for pod in self.pods if pod.is_tracked and pod.phase == "Succeeded")
        return self.counted_indexes.with_indexes(index for index in new if index is not None)

    @cached_property
    def failed_indexes(self) -> Intervals | None:
        """The indexes that have failed for good, None where indexes cannot."""
        if self.spec.backoff_limit_per_index is None or not self.spec.is_indexed:
            return None
        before = Intervals.parse(self.status.failed_indexes or "", self.completions)
        new = (self.index_of(pod) for pod in self.pods if pod.is_tracked and self._fails_its_index(pod))
        return before.with_indexes(index for index in new if index is not None)

    def _fails_its_index(self, pod: JobPod) -> bool:
        if not self.has_failed(pod):
            return False
        verdict = judge(self.spec.pod_failure_policy, pod)
        if verdict.action == "FailIndex":
            return True
        return verdict.counts and failure_count(pod) >= (self.spec.backoff_limit_per_index or 0)

    @cached_property
    def delayed(self) -> dict[int, JobPod]:
        """By index, the failed pod that is kept until it is replaced: its successor inherits how often it failed."""
        if self.failed_indexes is None:
            return {}
        taken = indexes_of(self.active)
        kept: dict[int, JobPod] = {}
        for pod in self._counting:
            index = self.index_of(pod)
            if index is None or not self.has_failed(pod) or index in taken:
                continue
            if self.succeeded_indexes.has(index) or self.failed_indexes.has(index):
                continue
            if index not in kept or _is_later(pod, kept[index]):
                kept[index] = pod
        return kept

    def free_indexes(self, count: int) -> list[int]:
        """Return the lowest indexes that nothing has been done for, `count` at most."""
        taken = self.succeeded_indexes.with_indexes(indexes_of(self.active))
        if self.spec.waits_for_the_end:
            taken = taken.with_indexes(indexes_of(pod for pod in self.pods if pod.is_terminating))
        if self.failed_indexes is not None:
            taken = taken.merge(self.failed_indexes)
        return [index for index, _ in zip(taken.gaps(self.completions), range(count), strict=False)]


def _is_later(pod: JobPod, than: JobPod) -> bool:
    return _failures(than) <= _failures(pod) and pod.finished_at >= than.finished_at


def _failures(pod: JobPod) -> int:
    return failure_count(pod) + ignored_failure_count(pod)

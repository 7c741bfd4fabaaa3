"""The input of a Job's reconcile: the Job and its pods at one point in time, and values derived from them.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`syncJobCtx`, `getNewFinishedPods`, `isPodFailed`) and
`indexed_job_utils.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ctrlmgr.controllers.job.indexes import (
    Intervals,
    completion_index,
    failure_count,
    ignored_failure_count,
    indexes_of,
)
from ctrlmgr.controllers.job.job_backoff import Backoff
from ctrlmgr.controllers.job.job_policies import judge
from ctrlmgr.controllers.job.view import Job, JobPod, JobSpec, JobStatus, Uncounted


@dataclass(frozen=True, kw_only=True)
class JobSnapshot:
    """A Job and its pods at the time `now` (microseconds since 1970), and the Job's backoff before this reconcile."""

    job: Job
    pods: Sequence[JobPod]
    now: int
    waited: Backoff

    @property
    def spec(self) -> JobSpec:
        """The Job's spec."""
        return self.job.spec

    @property
    def status(self) -> JobStatus:
        """The Job's stored status."""
        return self.job.status

    @property
    def is_deleted(self) -> bool:
        """Return whether the deletion of the Job has been requested."""
        return self.job.metadata.deletion_timestamp is not None

    @property
    def completions(self) -> int:
        """The number of completions of an Indexed Job."""
        return self.spec.completions or 0

    @property
    def uncounted(self) -> Uncounted:
        """The uids in the Job's status of those pods that have ended and are not included in the counts yet."""
        return self.status.uncounted_terminated_pods or Uncounted()

    @cached_property
    def active(self) -> Sequence[JobPod]:
        """The pods that have not ended and are not being deleted."""
        return [pod for pod in self.pods if pod.is_active]

    @cached_property
    def ready(self) -> int:
        """The number of active pods that are ready."""
        return sum(pod.is_ready for pod in self.active)

    @cached_property
    def terminating(self) -> int:
        """The number of pods that are being deleted and have not ended."""
        return sum(pod.is_terminating for pod in self.pods)

    def has_failed(self, pod: JobPod) -> bool:
        """Return whether a pod counts as failed.

        A pod that is being deleted also counts as failed, unless the Job waits until such a pod has ended.
        """
        if pod.phase == "Failed":
            return True
        return not self.spec.waits_for_the_end and pod.is_deleted and pod.phase != "Succeeded"

    def index_of(self, pod: JobPod) -> int | None:
        """Return a pod's completion index; None if the pod has no valid index."""
        index = completion_index(pod.annotations)
        return index if index is not None and index < self.completions else None

    @cached_property
    def newly_succeeded(self) -> Sequence[JobPod]:
        """The pods that have succeeded and are not recorded in the Job's status yet."""
        return self._new(self.uncounted.succeeded, lambda pod: pod.phase == "Succeeded")

    @cached_property
    def newly_failed(self) -> Sequence[JobPod]:
        """The pods that have failed and are not recorded in the Job's status yet."""
        return self._new(self.uncounted.failed, self.has_failed)

    def _new(self, known: Iterable[str] | None, test: Callable[[JobPod], bool]) -> Sequence[JobPod]:
        uids = set(known or ())
        return [pod for pod in self._counting if pod.uid not in uids and test(pod)]

    @cached_property
    def _counting(self) -> Sequence[JobPod]:
        """The pods that are not counted yet and have a valid completion index."""
        tracked = [pod for pod in self.pods if pod.is_tracked]
        return [pod for pod in tracked if self.index_of(pod) is not None] if self.spec.is_indexed else tracked

    @cached_property
    def succeeded(self) -> int:
        """The number of succeeded pods; for an Indexed Job, the number of succeeded indexes."""
        if self.spec.is_indexed:
            return self.succeeded_indexes.total
        return self.status.succeeded + len(self.newly_succeeded) + len(self.uncounted.succeeded or ())

    @cached_property
    def failed(self) -> int:
        """The number of pods whose failure counts."""
        counted = sum(judge(self.spec.pod_failure_policy, pod).counts for pod in self.newly_failed)
        return self.status.failed + counted + len(self.uncounted.failed or ())

    @cached_property
    def backoff(self) -> Backoff:
        """The backoff of the Job, including the pods that have ended since the last reconcile."""
        return self.waited.after(self.newly_succeeded, self.newly_failed)

    @cached_property
    def counted_indexes(self) -> Intervals:
        """The succeeded indexes in the Job's status."""
        return Intervals.parse(self.status.completed_indexes, self.completions)

    @cached_property
    def succeeded_indexes(self) -> Intervals:
        """All succeeded indexes: the indexes in the Job's status, and the indexes of pods that are not counted yet."""
        new = (self.index_of(pod) for pod in self.pods if pod.is_tracked and pod.phase == "Succeeded")
        return self.counted_indexes.with_indexes(index for index in new if index is not None)

    @cached_property
    def failed_indexes(self) -> Intervals | None:
        """The failed indexes; None if the Job has no limit per index."""
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
        """The failed pod of each index that is kept until it is replaced.

        The new pod copies the failure count of the failed pod.
        """
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
        """Return the lowest indexes that have neither a pod nor a result, at most `count` indexes."""
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

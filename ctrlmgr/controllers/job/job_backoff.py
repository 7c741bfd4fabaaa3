"""Computes the backoff before a Job replaces a failed pod.

Guarantees: after n consecutive failures the backoff is 10 s · 2ⁿ⁻¹, at most 10 minutes. The backoff begins when the
last failed pod ended. If `backoffLimitPerIndex` is set, each index has its own backoff.

Source: Kubernetes' `pkg/controller/job/backoff_utils.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ctrlmgr.controllers.job.indexes import failure_count, ignored_failure_count
from ctrlmgr.controllers.job.view import JobPod

FIRST: Final = 10_000_000
"""The backoff after the first failure, in microseconds (`DefaultJobPodFailureBackOff`)."""
LONGEST: Final = 600_000_000
"""The maximum backoff, in microseconds (`MaxJobPodFailureBackOff`)."""


class Backoff(NamedTuple):
    """The number of failed pods since the last success, and the time when the last failed pod ended (microseconds)."""

    failures: int = 0
    last: int | None = None

    def after(self, succeeded: Iterable[JobPod], failed: Iterable[JobPod]) -> Backoff:
        """Return the new backoff after further pods have ended."""
        successes = [pod.finished_at for pod in succeeded]
        failures = sorted(pod.finished_at for pod in failed)
        if not successes:
            return Backoff(self.failures + len(failures), failures[-1]) if failures else self
        later = [at for at in failures if at > max(successes)]
        return Backoff(len(later), later[-1]) if later else Backoff()

    def remaining(self, now: int) -> int:
        """Return the microseconds for which the Job must wait at the time `now`."""
        return _remaining(self.failures, self.last, now)


def recalled(pods: Iterable[JobPod]) -> Backoff:
    """Return the backoff that a controller would have if it had run since these pods started.

    Only pods that the Job has counted affect the backoff.
    """
    counted = [pod for pod in pods if not pod.is_tracked]
    succeeded, failed = ([pod for pod in counted if pod.phase == phase] for phase in ("Succeeded", "Failed"))
    return Backoff().after(succeeded, failed)


def remaining_for_index(last_failed: JobPod | None, now: int) -> int:
    """Return the microseconds for which an index must wait after the failure of its pod `last_failed`."""
    if last_failed is None:
        return 0
    failures = failure_count(last_failed) + ignored_failure_count(last_failed) + 1
    return _remaining(failures, last_failed.finished_at, now)


def _remaining(failures: int, last: int | None, now: int) -> int:
    if not failures or last is None:
        return 0
    wait = min(FIRST << min(failures - 1, 32), LONGEST)
    return max(0, wait - (now - last))


def ready_indexes(desired: Sequence[int], delayed: dict[int, JobPod], now: int) -> tuple[list[int], int]:
    """Return the indexes that need not wait for a backoff.

    If all indexes must wait, also return the microseconds until the first index is ready.
    """
    waits = {index: remaining_for_index(delayed.get(index), now) for index in desired}
    ready = [index for index in desired if not waits[index]]
    return ready, 0 if ready else min(waits.values(), default=0)

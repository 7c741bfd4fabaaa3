"""Typed views of a Job and its pods, with the fields that the Job controller reads.

Guarantees: fields that these types do not declare stay unchanged in the object's body. The views read a null list as an
empty list. The views return the API server's default for a missing field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.clock import parse_time

TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod that has not been counted for its Job yet."""
JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
"""The value of `spec.managedBy` in Jobs that this controller manages."""

_NONE: Final[Mapping[str, str]] = {}


class OnExitCodes(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type batch/v1 PodFailurePolicyOnExitCodesRequirement."""

    container_name: str | None = None
    operator: str = ""
    values: list[int] | None = None


class OnPodCondition(msgspec.Struct, frozen=True, gc=False):
    """The API type batch/v1 PodFailurePolicyOnPodConditionsPattern."""

    type: str = ""
    status: str = ""


class FailureRule(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type batch/v1 PodFailurePolicyRule."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[OnPodCondition] | None = None


class FailurePolicy(msgspec.Struct, frozen=True, gc=False):
    """The API type batch/v1 PodFailurePolicy."""

    rules: list[FailureRule] | None = None


class SuccessRule(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type batch/v1 SuccessPolicyRule."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(msgspec.Struct, frozen=True, gc=False):
    """The API type batch/v1 SuccessPolicy."""

    rules: list[SuccessRule] | None = None


class _TemplateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    restart_policy: str = ""


class _Template(msgspec.Struct, frozen=True, gc=False):
    spec: _TemplateSpec = _TemplateSpec()


class JobSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a batch/v1 JobSpec that the Job controller reads."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    managed_by: str | None = None
    selector: dict[str, object] | None = None
    template: _Template = _Template()

    @property
    def is_indexed(self) -> bool:
        """Return whether each completion of the Job has an index."""
        return self.completion_mode == "Indexed"

    @property
    def is_suspended(self) -> bool:
        """Return whether the Job is suspended."""
        return bool(self.suspend)

    @property
    def waits_for_the_end(self) -> bool:
        """Return whether pods are replaced and count as failed only after they have ended (`onlyReplaceFailedPods`)."""
        return self.pod_replacement_policy == "Failed" or self.pod_failure_policy is not None

    @property
    def foreign_manager(self) -> str | None:
        """The name of the other controller that manages the Job; None if this controller manages the Job."""
        return self.managed_by if self.managed_by != JOB_CONTROLLER else None


class JobCondition(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The API type batch/v1 JobCondition, in Go's field order."""

    type: str
    status: str
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class Uncounted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """batch/v1 UncountedTerminatedPods: the uids of pods that have ended and may still have the finalizer."""

    succeeded: list[str] | None = None
    failed: list[str] | None = None


class JobStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The API type batch/v1 JobStatus, in Go's field order and with Go's `omitempty`."""

    conditions: list[JobCondition] | None = None
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None
    ready: int | None = None

    def condition(self, type: str) -> JobCondition | None:
        """Return the Job's condition of the given type; None if there is no such condition."""
        return next((each for each in self.conditions or () if each.type == type), None)

    def true(self, type: str) -> JobCondition | None:
        """Return the Job's condition of the given type if the condition's status is True, otherwise None."""
        found = self.condition(type)
        return found if found is not None and found.status == "True" else None

    @property
    def finished(self) -> JobCondition | None:
        """The condition of a finished Job; None if the Job has not finished."""
        return self.true("Complete") or self.true("Failed")


class Job(msgspec.Struct, frozen=True, gc=False):
    """The fields of a batch/v1 Job that the Job controller reads."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 ContainerStateTerminated that the Job controller reads."""

    exit_code: int = 0
    finished_at: str | None = None


class _ContainerState(msgspec.Struct, frozen=True, gc=False):
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 ContainerStatus that the Job controller reads."""

    name: str = ""
    state: _ContainerState = _ContainerState()
    restart_count: int = 0

    @property
    def terminated(self) -> Terminated | None:
        """The terminated state of the container; None if the container has not ended."""
        return self.state.terminated


class PodCondition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodCondition that the Job controller reads."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    restart_policy: str | None = None


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    init_containers: list[_Container] | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodStatus that the Job controller reads."""

    phase: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()


class JobPod:
    """A pod of a Job, with its decoded fields."""

    def __init__(self, obj: Object) -> None:
        """Create an instance for `obj`, which is a pod."""
        view = obj.view(_Pod)
        self.object = obj
        self.metadata = obj.metadata
        self.spec = view.spec
        self.status = view.status

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.metadata.uid

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.metadata.name

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations; if there are none, an empty map."""
        return self.metadata.annotations or _NONE

    @property
    def phase(self) -> str:
        """The pod's phase."""
        return self.status.phase

    @property
    def has_ended(self) -> bool:
        """Return whether the pod has succeeded or failed."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_deleted(self) -> bool:
        """Return whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_active(self) -> bool:
        """Return whether the pod has not ended and is not being deleted (`IsPodActive`)."""
        return not self.has_ended and not self.is_deleted

    @property
    def is_terminating(self) -> bool:
        """Return whether the pod is being deleted and has not ended (`IsPodTerminating`)."""
        return not self.has_ended and self.is_deleted

    @property
    def is_tracked(self) -> bool:
        """Return whether the pod has the finalizer, because the pod was not counted for its Job yet."""
        return TRACKING in (self.metadata.finalizers or ())

    @cached_property
    def ready(self) -> PodCondition | None:
        """The pod's condition Ready."""
        return next((each for each in self.status.conditions or () if each.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        """Return whether the pod is ready."""
        return self.ready is not None and self.ready.status == "True"

    @cached_property
    def finished_at(self) -> int:
        """The time when the pod ended, in microseconds since 1970, from the best available source (`getFinishedTime`).

        If all containers of the pod (including sidecars) have ended, the time is the end of the last container. If some
        containers have not ended, the time is the first known of three times: when the pod became not ready, when it
        was deleted, and when it was created.
        """
        ended = self._last_container_end()
        if ended is not None:
            return ended
        if self.ready is not None and self.ready.status == "False" and self.ready.last_transition_time:
            return parse_time(self.ready.last_transition_time)
        if self.metadata.deletion_timestamp:
            grace = self.metadata.deletion_grace_period_seconds or 0
            return parse_time(self.metadata.deletion_timestamp) - grace * 1_000_000
        return parse_time(self.metadata.creation_timestamp) if self.metadata.creation_timestamp else 0

    @property
    def sidecar_statuses(self) -> Sequence[ContainerStatus]:
        """The statuses of the pod's sidecars: init containers with the restart policy Always."""
        sidecars = {each.name for each in self.spec.init_containers or () if each.restart_policy == "Always"}
        return [each for each in self.status.init_container_statuses or () if each.name in sidecars]

    def _last_container_end(self) -> int | None:
        last = _last_end(self.status.container_statuses or ())
        sidecars = self.sidecar_statuses
        # If one of the lists has a running container, the end is not known. The time is unknown even if all containers
        # of the other list have ended (`latestFinishTime`).
        return _last_end(sidecars, last) if sidecars else last


def _last_end(statuses: Iterable[ContainerStatus], last: int | None = None) -> int | None:
    for status in statuses:
        ended = status.terminated
        if ended is None or not ended.finished_at:
            return None
        at = parse_time(ended.finished_at)
        last = at if last is None else max(last, at)
    return last


_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_FIRST: Final = float("-inf")


def by_rank(pod: JobPod) -> tuple[object, ...]:
    """Return a sort key for active pods.

    The pods whose deletion loses the least work are first (`controller.ActivePods`). The criteria are, in this order:
    unbound before bound, pending before running, not ready before ready, recently ready first, more restarts of
    containers first, more restarts of sidecars first, younger pods first. An unknown time is sorted before any other
    time.
    """
    since = pod.ready.last_transition_time if pod.is_ready and pod.ready is not None else None
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.phase, 0),
        pod.is_ready,
        -parse_time(since) if since else _FIRST,
        -max((each.restart_count for each in pod.status.container_statuses or ()), default=0),
        -max((each.restart_count for each in pod.sidecar_statuses), default=0),
        -parse_time(created) if created else _FIRST,
    )

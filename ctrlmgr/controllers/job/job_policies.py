"""Evaluates a Job's policies: the pod failure policy and the success policy.

Source: Kubernetes' `pkg/controller/job/pod_failure_policy.go` and `success_policy.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctrlmgr.controllers.job.indexes import Intervals
from ctrlmgr.controllers.job.view import (
    ContainerStatus,
    FailurePolicy,
    FailureRule,
    JobPod,
    OnExitCodes,
    OnPodCondition,
    PodCondition,
    SuccessPolicy,
)


class Verdict(NamedTuple):
    """The result of a policy for a failed pod: whether the pod counts, the action, and the message for a failed Job."""

    counts: bool = True
    action: str | None = None
    message: str | None = None


_PLAIN = Verdict()


def judge(policy: FailurePolicy | None, pod: JobPod) -> Verdict:
    """Return the result of the first rule that matches a failed pod.

    If no rule matches, the pod counts.
    """
    for index, rule in enumerate(policy.rules or () if policy is not None else ()):
        message = _fits(rule, pod)
        if message is None:
            continue
        if rule.action == "Ignore":
            return Verdict(False, rule.action)
        if rule.action == "FailJob":
            return Verdict(True, rule.action, f"{message} matching {rule.action} rule at index {index}")
        if rule.action in ("Count", "FailIndex"):
            return Verdict(True, rule.action)
    return _PLAIN


def _fits(rule: FailureRule, pod: JobPod) -> str | None:
    """Return a message that describes how a failed pod matches a rule; None if the rule does not match."""
    where = f"{pod.metadata.namespace}/{pod.name}"
    if rule.on_exit_codes is not None:
        status = _exited(pod.status.container_statuses or (), rule.on_exit_codes)
        status = status or _exited(pod.status.init_container_statuses or (), rule.on_exit_codes)
        if status is None or status.terminated is None:
            return None
        return f"Container {status.name} for pod {where} failed with exit code {status.terminated.exit_code}"
    condition = _condition(pod.status.conditions or (), rule.on_pod_conditions or ())
    return None if condition is None else f"Pod {where} has condition {condition.type}"


def _exited(statuses: Iterable[ContainerStatus], desired: OnExitCodes) -> ContainerStatus | None:
    for status in statuses:
        ended = status.terminated
        if ended is None or not ended.exit_code or desired.container_name not in (None, status.name):
            continue
        listed = ended.exit_code in (desired.values or ())
        if (desired.operator == "In" and listed) or (desired.operator == "NotIn" and not listed):
            return status
    return None


def _condition(conditions: Iterable[PodCondition], desired: Sequence[OnPodCondition]) -> PodCondition | None:
    patterns = {(each.type, each.status) for each in desired}
    return next((each for each in conditions if (each.type, each.status) in patterns), None)


def met_rule(policy: SuccessPolicy | None, completions: int, succeeded: Intervals) -> int | None:
    """Return the index of the first success rule that is met; None if no rule is met."""
    if policy is None or not succeeded:
        return None
    for place, rule in enumerate(policy.rules or ()):
        if rule.succeeded_indexes is not None:
            required = Intervals.parse(rule.succeeded_indexes, completions)
            if required and _enough(required, succeeded, rule.succeeded_count):
                return place
        elif rule.succeeded_count is not None and succeeded.total >= rule.succeeded_count:
            return place
    return None


def _enough(required: Intervals, succeeded: Intervals, count: int | None) -> bool:
    both = _overlap(required, succeeded)
    return both == required.total or (count is not None and both >= count)


def _overlap(one: Intervals, other: Intervals) -> int:
    """Return the number of indexes that are in both sets."""
    found = i = j = 0
    while i < len(one) and j < len(other):
        found += max(0, min(one[i].last, other[j].last) - max(one[i].first, other[j].first) + 1)
        if one[i].last <= other[j].last:
            i += 1
        else:
            j += 1
    return found

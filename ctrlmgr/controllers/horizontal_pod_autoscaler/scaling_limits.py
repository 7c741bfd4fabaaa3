"""Limits the change of an autoscaler's number of replicas by stabilization, rate policies, minimum and maximum.

Guarantees:
- If `spec.behavior` is not set, scaling down uses the highest recommendation of the stabilization window. Scaling up at
  most doubles the replicas in one step, but may always reach four replicas.
- If `spec.behavior` is set, each direction has a stabilization window, and the recommendation within the window that
  changes the number of replicas least is used. The policies of a direction limit the change within a period to an
  absolute number or a percentage of pods. The field `selectPolicy` selects the largest or the smallest of these limits,
  or forbids changes.
- The resulting number of replicas is within the minimum and maximum in the autoscaler's spec.

Source: Kubernetes' `pkg/controller/podautoscaler/horizontal.go`. In this module, times and durations are in
microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.controllers.horizontal_pod_autoscaler.view import Behavior, Rules

_SECOND: Final = 1_000_000
_GROWTH: Final = 2
_GROWTH_AT_LEAST: Final = 4
_LARGEST: Final = 2**31 - 1


class Sample(NamedTuple):
    """A number with its time: a recommended number of replicas, or a change of the number of replicas."""

    number: int
    at: int


@dataclass
class Memory:
    """The history of an autoscaler: recommendations and changes of replicas."""

    recommendations: list[Sample] = field(default_factory=list)
    ups: list[Sample] = field(default_factory=list)
    downs: list[Sample] = field(default_factory=list)

    def begin(self, replicas: int, now: int) -> None:
        """Record the current replicas as the first recommendation."""
        if not self.recommendations:
            self.recommendations.append(Sample(replicas, now))

    def note_change(self, behavior: Behavior | None, before: int, after: int, now: int) -> None:
        """Record a change of the number of replicas, if the behavior has policies for its direction."""
        if behavior is None:
            return
        rules = behavior.scale_up if after > before else behavior.scale_down
        kept = self.ups if after > before else self.downs
        longest = max((policy.period_seconds for policy in rules.policies or ()), default=0)
        _replace_outdated(kept, Sample(abs(after - before), now), now - longest * _SECOND)


def _replace_outdated(samples: list[Sample], new: Sample, cutoff: int) -> None:
    """Replace the last sample in the list that is older than `cutoff`; if no sample is older, append the new sample."""
    outdated = [place for place, sample in enumerate(samples) if sample.at < cutoff]
    if outdated:
        samples[outdated[-1]] = new
    else:
        samples.append(new)


class Bounds(NamedTuple):
    """The minimum and maximum number of replicas."""

    least: int
    most: int


class Limited(NamedTuple):
    """The limited number of replicas, and the reasons of two conditions."""

    replicas: int
    stabilized: str
    """The reason of the condition if stabilization changed the recommendation, otherwise an empty string."""
    is_limited: bool
    reason: str
    message: str


_MESSAGES: Final = {
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "DesiredWithinRange": "the desired count is within the acceptable range",
}


def limit(
    memory: Memory, behavior: Behavior | None, bounds: Bounds, current: int, desired: int, window: int, now: int
) -> Limited:
    """Apply the limits to a recommendation, record the recommendation, and return the result.

    The argument `window` is the stabilization window for scaling down, in microseconds.
    """
    if behavior is None:
        recommended = _stabilized(memory, desired, window, now)
        stabilized = "ScaleDownStabilized" if recommended != desired else ""
        replicas, reason = _bounded(current, recommended, bounds)
    else:
        recommended = _stabilized_by(behavior, memory, current, desired, window, now)
        direction = "ScaleUpStabilized" if desired >= current else "ScaleDownStabilized"
        stabilized = direction if recommended != desired else ""
        replicas, reason = _bounded_by(behavior, memory, current, recommended, bounds, now)
    return Limited(replicas, stabilized, replicas != recommended, reason, _MESSAGES[reason])


def _stabilized(memory: Memory, desired: int, window: int, now: int) -> int:
    cutoff = now - window
    highest = max([desired, *(each.number for each in memory.recommendations if each.at >= cutoff)])
    _replace_outdated(memory.recommendations, Sample(desired, now), cutoff)
    return highest


def _bounded(current: int, desired: int, bounds: Bounds) -> tuple[int, str]:
    most, reason = bounds.most, "TooManyReplicas"
    fastest = max(_GROWTH * current, _GROWTH_AT_LEAST)
    if most > fastest:
        most, reason = fastest, "ScaleUpLimit"
    if desired < bounds.least:
        return bounds.least, "TooFewReplicas"
    return (most, reason) if desired > most else (desired, "DesiredWithinRange")


def _stabilized_by(behavior: Behavior, memory: Memory, current: int, desired: int, window: int, now: int) -> int:
    up_since = now - (behavior.scale_up.stabilization_window_seconds or 0) * _SECOND
    seconds = behavior.scale_down.stabilization_window_seconds
    down_since = now - (seconds * _SECOND if seconds is not None else window)
    samples = memory.recommendations
    up = min([desired, *(each.number for each in samples if each.at > up_since)])
    down = max([desired, *(each.number for each in samples if each.at > down_since)])
    _replace_outdated(samples, Sample(desired, now), min(up_since, down_since))
    return min(max(current, up), down)


def _bounded_by(
    behavior: Behavior, memory: Memory, current: int, desired: int, bounds: Bounds, now: int
) -> tuple[int, str]:
    if desired > current:
        fastest = max(_up_limit(behavior.scale_up, memory, current, now), current)
        most, reason = (fastest, "ScaleUpLimit") if bounds.most > fastest else (bounds.most, "TooManyReplicas")
        if desired > most:
            return most, reason
    elif desired < current:
        fastest = min(_down_limit(behavior.scale_down, memory, current, now), current)
        least, reason = (fastest, "ScaleDownLimit") if bounds.least < fastest else (bounds.least, "TooFewReplicas")
        if desired < least:
            return least, reason
    return desired, "DesiredWithinRange"


def _up_limit(rules: Rules, memory: Memory, current: int, now: int) -> int:
    """Return the highest number of replicas that the policies allow now.

    Percentages are rounded up, because otherwise a small number of replicas would never grow.
    """

    def proposed(start: int, value: int, is_percent: bool) -> int:
        return math.ceil(start * (1 + value / 100)) if is_percent else start + value

    if rules.select_policy == "Disabled":
        return current
    proposals = _proposals(rules, memory, current, now, proposed)
    if rules.select_policy == "Min":
        return min(proposals, default=_LARGEST)
    return max(proposals, default=-_LARGEST - 1)


def _down_limit(rules: Rules, memory: Memory, current: int, now: int) -> int:
    """Return the lowest number of replicas that the policies allow now."""

    def proposed(start: int, value: int, is_percent: bool) -> int:
        return int(start * (1 - value / 100)) if is_percent else start - value

    if rules.select_policy == "Disabled":
        return current
    proposals = _proposals(rules, memory, current, now, proposed)
    if rules.select_policy == "Min":
        return max(proposals, default=-_LARGEST - 1)
    return min(proposals, default=_LARGEST)


def _proposals(
    rules: Rules, memory: Memory, current: int, now: int, proposed: Callable[[int, int, bool], int]
) -> list[int]:
    """Return each policy's limit, based on the number of replicas at the start of the policy's period."""
    found: list[int] = []
    for policy in rules.policies or ():
        since = now - policy.period_seconds * _SECOND
        start = current - _changed(memory.ups, since) + _changed(memory.downs, since)
        found.append(proposed(start, policy.value, policy.type == "Percent"))
    return found


def _changed(samples: Iterable[Sample], since: int) -> int:
    return sum(each.number for each in samples if each.at > since)

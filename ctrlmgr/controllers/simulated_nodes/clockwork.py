"""The time of a pod: seconds since its node took it, at the speed of the simulation.

Guarantees: a pure function of the pod; the moment at which it was taken is its `status.startTime`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.simulation.behaviour import Behaviour, Rule, told
from ctrlmgr.simulation.life import End

_SECOND: Final = 1_000_000


class PodTime(NamedTuple):
    """When a pod's node took it, in microseconds since 1970, and how fast it lives."""

    taken: int
    speed: float

    @classmethod
    def of(cls, pod: Mapping[str, Any], now: int, speed: float) -> PodTime:
        """Read it from a pod; one that has not been taken is so in this very second."""
        start = (pod.get("status") or {}).get("startTime")
        return cls(parse_time(start) if start else now // _SECOND * _SECOND, speed)

    def seconds(self, moment: int) -> float:
        """Return a moment as seconds of the pod's life; never before its beginning."""
        return max(moment - self.taken, 0) / _SECOND * self.speed

    def write(self, seconds: float) -> str:
        """Write a moment of the pod's life as a time."""
        return format_time_seconds(self.taken + round(seconds / self.speed * _SECOND))

    def end(self, pod: Mapping[str, Any]) -> End | None:
        """Return when the pod's containers are told to end, None if it is not being deleted."""
        meta = pod["metadata"]
        if not meta.get("deletionTimestamp"):
            return None
        grace = int(meta.get("deletionGracePeriodSeconds") or 0)
        asked_at = parse_time(meta["deletionTimestamp"]) - grace * _SECOND
        return End(self.seconds(asked_at), grace * self.speed)


def asked_of(pod: Mapping[str, Any], rules: tuple[Rule, ...]) -> Callable[[Mapping[str, Any]], Behaviour]:
    """Return the function that says what each container of a pod is told to do."""
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}

    def asked(container: Mapping[str, Any]) -> Behaviour:
        namespace, image = meta.get("namespace", ""), container.get("image", "")
        return told(annotations, rules, namespace, meta["name"], container["name"], image).behaviour

    return asked


def misunderstood(pod: Mapping[str, Any]) -> list[str]:
    """Return what the annotations of a pod say that is not understood."""
    meta, spec = pod["metadata"], pod["spec"]
    found: dict[str, None] = {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        said = told(meta.get("annotations") or {}, (), "", meta["name"], container["name"], "")
        found |= dict.fromkeys(said.problems)
    return [*found]

"""The time of a simulated pod: seconds since its node accepted the pod, at the speed of the simulation.

Guarantees: the time depends only on the pod's `status.startTime`, which is the time when the node accepted the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.simulation.behaviour import Behaviour, Subject, behaviour_for
from ctrlmgr.simulation.container_programs import is_task
from ctrlmgr.simulation.container_runs import ContainerStop
from ctrlmgr.simulation.nodes import slowness
from ctrlmgr.simulation.pod_lifecycle import PULL_TAKES

_SECOND: Final = 1_000_000


class PodTime(NamedTuple):
    """The time when a pod's node accepted the pod (microseconds since 1970), and the speed of the pod's time."""

    taken: int
    speed: float

    @classmethod
    def of(cls, pod: Mapping[str, Any], now: int, speed: float) -> PodTime:
        """Return the time of a pod.

        The time of a pod that is not accepted yet starts at the current second.
        """
        start = taken_at(pod)
        return cls(parse_time(start) if start else now // _SECOND * _SECOND, speed)

    def seconds(self, moment: int) -> float:
        """Convert a point in time (microseconds since 1970) to seconds of the pod's time, at least 0."""
        return max(moment - self.taken, 0) / _SECOND * self.speed

    def moment(self, seconds: float) -> int:
        """Convert seconds of the pod's time to microseconds since 1970."""
        return self.taken + round(seconds / self.speed * _SECOND)

    def write(self, seconds: float) -> str:
        """Return seconds of the pod's time, formatted as a timestamp."""
        return format_time_seconds(self.moment(seconds))

    def end(self, pod: Mapping[str, Any]) -> ContainerStop | None:
        """Return the time when the pod's containers get the signal to end; None if the pod is not being deleted."""
        meta = pod["metadata"]
        if not meta.get("deletionTimestamp"):
            return None
        grace = int(meta.get("deletionGracePeriodSeconds") or 0)
        asked_at = parse_time(meta["deletionTimestamp"]) - grace * _SECOND
        return ContainerStop(self.seconds(asked_at), grace * self.speed)


def taken_at(pod: Mapping[str, Any]) -> str:
    """Return the time when a pod's node accepted the pod (RFC 3339); empty if the node has not accepted it."""
    return (pod.get("status") or {}).get("startTime") or ""


def ips_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a pod; before its node has accepted the pod, the pod has no addresses."""
    return [each["ip"] for each in (pod.get("status") or {}).get("podIPs") or ()]


def asked_of(pod: Mapping[str, Any], rules: Rules, node: Mapping[str, str]) -> Callable[[Mapping[str, Any]], Behaviour]:
    """Return a function that maps each container of a pod to its configured behaviour.

    The argument `node` contains the annotations of the pod's node.
    """
    slow = slowness(node)

    def asked(container: Mapping[str, Any]) -> Behaviour:
        unknown = rules.tasks if is_task(pod, container) else rules.servers
        behaviour = behaviour_for(subject_of(pod, container), rules.says).behaviour.slowed(slow, PULL_TAKES)
        return behaviour._replace(unknown=unknown)

    return asked


def misunderstood(pod: Mapping[str, Any], rules: Rules) -> list[str]:
    """Return the errors in a pod's behaviour annotations, and in the rules that apply to the pod."""
    spec = pod["spec"]
    found: dict[str, None] = {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        found |= dict.fromkeys(behaviour_for(subject_of(pod, container), rules.says).problems)
    return [*found]


def subject_of(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Subject:
    """Return a container in the form that the behaviour rules can match."""
    meta = pod["metadata"]
    return Subject(
        meta.get("namespace", ""),
        meta["name"],
        container["name"],
        container.get("image", ""),
        meta.get("labels") or {},
        meta.get("annotations") or {},
        pod["spec"].get("nodeName", ""),
    )

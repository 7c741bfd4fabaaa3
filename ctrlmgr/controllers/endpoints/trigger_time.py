"""The time that the annotation `endpoints.kubernetes.io/last-change-trigger-time` carries.

Guarantee: `TriggerTimes` answers what `TriggerTimeTracker` of Kubernetes (`k8s.io/endpointslice/util`) answers to the
same sequence of calls: the creation time of a service on the first call, later the oldest of the trigger times that
are newer than at the call before. Like there, two changes of one pod between two calls count as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds

_NEVER = -(1 << 63)
"""A time before any other."""


class _Seen(NamedTuple):
    service: int | None
    pods: dict[str, int]


class TriggerTimes:
    """The trigger times last seen of each service; times are microseconds since 1970.

    Threads may call it at once for different services, as a controller's workers do: each call reads and writes one
    key of the dictionary, which Python does atomically. Calls for one service must not overlap.
    """

    def __init__(self) -> None:
        """Start knowing no service."""
        self._seen: dict[Key, _Seen] = {}

    def observe(self, service: Key, created_at: int | None, pods: Iterable[Pod]) -> int | None:
        """Remember what is there now and return the trigger time of what changed since, None if nothing tells.

        `created_at` is the service's creation time. A pod's trigger time is when its Ready condition last changed.
        """
        times = {pod.metadata.name: time for pod in pods if (time := pod.ready_changed_at) is not None}
        before = self._seen.get(service)
        self._seen[service] = _Seen(created_at, times)
        if before is None:
            return created_at
        changed = [time for name, time in times.items() if time > before.pods.get(name, _NEVER)]
        if created_at is not None and (before.service is None or created_at > before.service):
            changed.append(created_at)
        return min(changed, default=None)

    def forget(self, service: Key) -> None:
        """Forget a service that is gone."""
        self._seen.pop(service, None)


def format_trigger_time(microseconds: int) -> str:
    """Write a time as Go's RFC3339Nano: UTC, with as many decimals as it has (`2026-11-21T00:12:52Z`)."""
    if microseconds % 1_000_000 == 0:
        return format_time_seconds(microseconds)
    return format_time(microseconds).rstrip("Z").rstrip("0") + "Z"

"""Computes the time in the annotation `endpoints.kubernetes.io/last-change-trigger-time`.

Guarantee: `TriggerTimes` returns the same times as Kubernetes' `TriggerTimeTracker` (`k8s.io/endpointslice/util`) for
the same sequence of calls. The first call for a Service returns the creation time of the Service. Later calls return
the oldest trigger time that is newer than the times at the previous call. As in Kubernetes, two changes of one pod
between two calls count as one change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.resource import Key
from ctrlmgr.clock import format_time, format_time_seconds

_NEVER = -(1 << 63)
"""A time that is before any other time."""


class _Seen(NamedTuple):
    service: int | None
    pods: dict[str, int]


class TriggerTimes:
    """The last seen trigger times of each Service, in microseconds since 1970.

    Several threads may use an instance at the same time for different Services, because each call reads and writes only
    one key of the dictionary. Calls for one Service must not overlap.
    """

    def __init__(self) -> None:
        """Create an instance without recorded times."""
        self._seen: dict[Key, _Seen] = {}

    def observe(self, service: Key, created_at: int | None, pods: Iterable[Pod]) -> int | None:
        """Record the current times and return the trigger time of the changes since the last call.

        The result is None if the trigger time is unknown. `created_at` is the Service's creation time. A pod's trigger
        time is the time when its Ready condition last changed.
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
        """Remove the recorded times of a deleted Service."""
        self._seen.pop(service, None)


def format_trigger_time(microseconds: int) -> str:
    """Format a time as Go's RFC3339Nano: UTC, without trailing zeros (`2026-11-21T00:12:52Z`)."""
    if microseconds % 1_000_000 == 0:
        return format_time_seconds(microseconds)
    return format_time(microseconds).rstrip("Z").rstrip("0") + "Z"

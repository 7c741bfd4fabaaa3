"""The fields of pods that an autoscaler reads: the pods' state and resource requests.

Source: Kubernetes' `pkg/controller/podautoscaler/replica_calculator.go` (`calculateRequests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError, milli

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


class _Resources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str] | None = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    restart_policy: str | None = None
    resources: _Resources = _Resources()


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resources: _Resources | None = None
    overhead: dict[str, str] | None = None


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodCondition that an autoscaler reads."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class MeasuredPod:
    """A pod of an autoscaler's target; the pod may have no metrics."""

    def __init__(self, obj: Object) -> None:
        """Create an instance for `obj`, which is a pod."""
        view = obj.view(_Pod)
        self.name = obj.name
        self.is_deleted = obj.is_terminating
        self.spec = view.spec
        self._status = view.status

    @property
    def phase(self) -> str:
        """The pod's phase."""
        return self._status.phase

    @cached_property
    def ready(self) -> Condition | None:
        """The pod's condition Ready."""
        return next((each for each in self._status.conditions or () if each.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        """Return whether the pod is running and ready."""
        return self.phase == "Running" and self.ready is not None and self.ready.status == "True"

    @property
    def ready_changed_at(self) -> int:
        """The time when the pod's condition Ready last changed, in microseconds since 1970."""
        at = self.ready.last_transition_time if self.ready is not None else None
        return parse_time(at) if at else 0

    @property
    def started_at(self) -> int | None:
        """The time when a kubelet accepted the pod, in microseconds since 1970; None if no kubelet has accepted it."""
        at = self._status.start_time
        return parse_time(at) if at else None


def requests_of(pods: Iterable[MeasuredPod], resource: str, container: str) -> dict[str, int]:
    """Return each pod's request of a resource, or one container's request in each pod.

    Raises `MetricsError` if a request is missing.
    """
    return {pod.name: _request(pod, resource, container) for pod in pods}


def _request(pod: MeasuredPod, resource: str, container: str) -> int:
    level = (pod.spec.resources.requests if pod.spec.resources is not None else None) or {}
    if not container and any(each in _POD_LEVEL or each.startswith(_HUGE_PAGES) for each in level):
        return _pod_level(pod, level, resource)
    return _of_containers(pod, resource, container)


def _pod_level(pod: MeasuredPod, level: Mapping[str, str], resource: str) -> int:
    """Return the request of the whole pod if it is set, otherwise the sum of the containers' requests."""
    overhead = milli((pod.spec.overhead or {}).get(resource, "0"))
    if resource in level:
        return milli(level[resource]) + overhead
    amounts = [amount for each in _lasting(pod) if (amount := _request_of(each, resource)) is not None]
    if not amounts:
        raise MetricsError(f"missing pod-level request for {resource} in Pod {pod.name}")
    return sum(amounts) + overhead


def _of_containers(pod: MeasuredPod, resource: str, container: str) -> int:
    total = 0
    for each in _lasting(pod):
        if container not in ("", each.name):
            continue
        amount = _request_of(each, resource)
        if amount is None:
            raise MetricsError(f"missing request for {resource} in container {each.name} of Pod {pod.name}")
        total += amount
        if container:
            return total
    if container:
        raise MetricsError(f"container {container} not found in Pod {pod.name}")
    return total


def _lasting(pod: MeasuredPod) -> list[_Container]:
    """Return the containers that run as long as the pod: first the regular containers, then the sidecars."""
    sidecars = [each for each in pod.spec.init_containers or () if each.restart_policy == "Always"]
    return [*(pod.spec.containers or ()), *sidecars]


def _request_of(container: _Container, resource: str) -> int | None:
    amount = (container.resources.requests or {}).get(resource)
    return None if amount is None else milli(amount)

"""Converts requests of pods and resources of nodes to integers: thousandths of CPUs, and units of other resources.

Guarantees: as in Kubernetes' `component-helpers/resource` (`PodRequests`), a pod's request is the sum of its
containers' requests. If an init container and the sidecars that start before it together request more, their sum is the
pod's request. Pod-level requests replace the computed request, and then the pod's overhead is added. Fractions of units
are rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ctrlmgr.api.quantity import MILLI, WHOLE, parse
from ctrlmgr.scheduling.scheduling_view import ContainerView, PodSpecView

Amounts: TypeAlias = "dict[str, int]"

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
DEFAULT_CPU: Final = 100
"""The CPU that scoring assumes for a container that requests no CPU, in thousandths of a CPU."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""The memory that scoring assumes for a container that requests no memory, in bytes."""


def amounts(texts: Mapping[str, str] | None) -> Amounts:
    """Return the amounts in a resource list as integers."""
    return {name: -(-parse(text) // (MILLI if name == CPU else WHOLE)) for name, text in (texts or {}).items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _requests_of(container: ContainerView, defaults: Mapping[str, int]) -> Amounts:
    return {**defaults, **amounts(container.resources.requests)}


def pod_requests(spec: PodSpecView, *, defaulted: bool = False) -> Amounts:
    """Return a pod's requests.

    If `defaulted` is set, containers that request no CPU or no memory get small default requests.
    """
    defaults = {CPU: DEFAULT_CPU, MEMORY: DEFAULT_MEMORY} if defaulted else {}
    total: Amounts = {}
    for container in spec.containers or ():
        _add(total, _requests_of(container, defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        requested = _requests_of(container, defaults)
        if container.restart_policy == "Always":
            _add(total, requested)
            _add(sidecars, requested)
            requested = dict(sidecars)
        else:
            _add(requested, sidecars)
        _raise(peak, requested)
    _raise(total, peak)
    if spec.resources is not None and spec.resources.requests:
        total |= amounts(spec.resources.requests)
    _add(total, amounts(spec.overhead))
    return total


def _raise(total: Amounts, at_least: Mapping[str, int]) -> None:
    for name, amount in at_least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def shortages(
    requested: Mapping[str, int], allocatable: Mapping[str, int], used: Mapping[str, int], pods: int
) -> tuple[list[str], bool]:
    """Return the reasons why a pod does not fit on a node, and whether it would not fit even if the node were empty."""
    reasons, hopeless = [], False
    if pods + 1 > allocatable.get(PODS, 0):
        reasons.append("Too many pods")
    for name in _in_order(requested):
        amount = requested[name]
        if amount > 0 and amount > allocatable.get(name, 0) - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            hopeless = hopeless or amount > allocatable.get(name, 0)
    return reasons, hopeless


_FIRST: Final = (CPU, MEMORY, "ephemeral-storage")


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))

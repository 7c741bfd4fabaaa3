"""The order in which surplus pods are deleted.

Guarantee: `deletion_order` sorts pods by all criteria of kube-controller-manager 1.36, in the same order
(`pkg/controller/controller_utils.go`, `ActivePodsWithRanks`):
1. unbound before bound;
2. first by phase: Pending, then Unknown, then Running;
3. pods that are not ready before ready pods;
4. pods with a lower `controller.kubernetes.io/pod-deletion-cost` first (KEP 2255);
5. pods whose node has more pods of related ReplicaSets first;
6. pods that have been ready for a shorter time first; times are compared by their binary logarithm, and if these are
  equal, by uid (KEP 2185);
7. pods with more restarts first, comparing restarts of containers, then of sidecars;
8. younger pods first, comparing ages by their logarithm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Final, NamedTuple

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.workloads.controlled_pods import created_at, is_active, ready_since
from ctrlmgr.golang.go_numbers import parse_int

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS: Final = 1000
_FIRST: Final = frozenset("-123456789")


class _Ranked(NamedTuple):
    """A pod with its sort keys; the field `plain` contains the keys of the first five criteria."""

    pod: Object
    plain: tuple[bool, int, bool, int, int]
    is_ready: bool
    ready_since: int
    restarts: tuple[int, int]
    created_at: int


def deletion_order(pods: Sequence[Object], related: Iterable[Object], now: int) -> list[Object]:
    """Return `pods` in deletion order; `related` contains the pods of all ReplicaSets with the same owner.

    `now` is in microseconds since 1970.
    """
    on_node = Counter(pod.view(Pod).spec.node_name for pod in related if is_active(pod))
    ranked = [_ranked(pod, on_node[pod.view(Pod).spec.node_name]) for pod in pods]

    def compare(one: _Ranked, other: _Ranked) -> int:
        return _compare(one, other, now)

    ranked.sort(key=cmp_to_key(compare))
    return [each.pod for each in ranked]


def deletion_cost(pod: Object) -> int:
    """Return the deletion cost in a pod's annotation; 0 if the value is not a 32-bit number."""
    text = pod.annotations.get(DELETION_COST, "")
    if text != "0" and text[:1] not in _FIRST:  # Go accepts neither a plus sign nor a leading zero here.
        return 0
    try:
        cost = parse_int(text)
    except ValueError:
        return 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _ranked(pod: Object, rank: int) -> _Ranked:
    view = pod.view(Pod)
    phase = _PHASES.get(view.status.phase, 0)
    plain = (bool(view.spec.node_name), phase, view.is_ready, deletion_cost(pod), -rank)
    return _Ranked(pod, plain, view.is_ready, ready_since(pod) or 0, view.restarts, created_at(pod))


def _compare(one: _Ranked, other: _Ranked, now: int) -> int:
    if one.plain != other.plain:
        return -1 if one.plain < other.plain else 1
    if one.is_ready and one.ready_since != other.ready_since:
        return _younger(one, other, lambda each: each.ready_since, now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        return _younger(one, other, lambda each: each.created_at, now)
    return 0


def _younger(one: _Ranked, other: _Ranked, since: Callable[[_Ranked], int], now: int) -> int:
    """Compare two different times; an unknown time comes first, and a later time precedes an earlier one.

    The function compares the logarithms of the ages.
    """
    first, second = since(one), since(other)
    if not first or not second:
        return -1 if not first else 1
    difference = _magnitude(now - first) - _magnitude(now - second)
    if difference:
        return difference
    return -1 if one.pod.uid < other.pod.uid else 1


def _magnitude(age: int) -> int:
    return int(math.log2(age * _NANOSECONDS)) if age > 0 else -1

"""Decides when a pod must leave a node with NoExecute taints, with pure functions.

Guarantees, which are the same as in Kubernetes' `pkg/controller/tainteviction`:
- A pod that does not tolerate one of its node's taints is evicted immediately. A pod that tolerates all taints of its
  node for a limited time is evicted after the shortest of these times. The toleration time begins when the controller
  first sees the taints.
- A change of taints or tolerations does not change the time of a planned eviction. A planned eviction is cancelled only
  if the node has no more NoExecute taints, or the pod tolerates all of them forever.

All times in this module are in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.scheduling.taints import Taint, Toleration, is_tolerated

_SECOND: Final = 1_000_000


class Plan(NamedTuple):
    """A planned eviction: when it was planned, and when it is due; `done` is True after the eviction."""

    uid: str
    since: int
    due: int
    done: bool = False


class Decision(NamedTuple):
    """The planned eviction of a pod, whether an earlier plan was cancelled, and whether the pod must be evicted now."""

    plan: Plan | None
    called_off: bool = False
    keep: bool = False


def decide(
    uid: str, taints: Sequence[Taint], tolerations: Sequence[Toleration], plan: Plan | None, now: int
) -> Decision:
    """Return the decision for a pod, given the NoExecute taints of its node."""
    pending = plan is not None and not plan.done
    if not taints:
        return Decision(None, called_off=pending)
    if not all(is_tolerated(each, tolerations) for each in taints):
        return Decision(
            Plan(uid, now, now, done=True), called_off=pending and plan is not None and plan.due > now, keep=True
        )
    seconds = shortest(taints, tolerations)
    if seconds is None:
        return Decision(None, called_off=pending)
    if plan is None:
        plan = Plan(uid, now, now + seconds * _SECOND)
    if plan.done or plan.due > now:
        return Decision(plan)
    return Decision(plan._replace(done=True), keep=True)


def shortest(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int | None:
    """Return the seconds for which the tolerations cover the taints; None if they cover the taints forever.

    If the number of seconds is zero or negative, the pod is evicted immediately. For each taint, the first matching
    toleration counts.
    """
    used = [next(each for each in tolerations if each.tolerates(taint)) for taint in taints]
    times = [each.toleration_seconds for each in used if each.toleration_seconds is not None]
    return max(min(times), 0) if times else None

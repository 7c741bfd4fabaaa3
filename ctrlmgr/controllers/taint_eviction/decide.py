"""When a pod must leave a node with NoExecute taints: a pure function.

Guarantees, those of Kubernetes' `pkg/controller/tainteviction`:
- A pod that does not tolerate one of the taints leaves at once; one that tolerates all of them for a time leaves when
  the shortest of the times that apply is over, counted from when the taints were first seen beside it.
- A change of taints or tolerations never moves a departure that is planned; only their end calls it off.

Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.scheduling.taints import Taint, Toleration, is_tolerated

_SECOND: Final = 1_000_000


class Plan(NamedTuple):
    """A departure: since when and for when it is planned; one that has been carried out is `done`."""

    uid: str
    since: int
    due: int
    done: bool = False


class Decision(NamedTuple):
    """The plan from here on, None without one; whether one was called off; whether it is time to go."""

    plan: Plan | None
    called_off: bool = False
    leave: bool = False


def decide(
    uid: str, taints: Sequence[Taint], tolerations: Sequence[Toleration], plan: Plan | None, now: int
) -> Decision:
    """Decide about a pod beside the NoExecute taints of its node."""
    pending = plan is not None and not plan.done
    if not taints:
        return Decision(None, called_off=pending)
    if not all(is_tolerated(each, tolerations) for each in taints):
        return Decision(
            Plan(uid, now, now, done=True), called_off=pending and plan is not None and plan.due > now, leave=True
        )
    seconds = shortest(taints, tolerations)
    if seconds is None:
        return Decision(None, called_off=pending)
    if plan is None:
        plan = Plan(uid, now, now + seconds * _SECOND)
    if plan.done or plan.due > now:
        return Decision(plan)
    return Decision(plan._replace(done=True), leave=True)


def shortest(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int | None:
    """Return for how many seconds these tolerations bear these taints, None: for ever.

    A time of zero or less is none at all. Of several tolerations of one taint the first counts, each taint by itself.
    """
    used = [next(each for each in tolerations if each.tolerates(taint)) for taint in taints]
    times = [each.toleration_seconds for each in used if each.toleration_seconds is not None]
    return max(min(times), 0) if times else None

"""What is inferred of a change that no recorded reconcile explains: which controller made it, and what it answered.

Guarantees: nothing is inferred of what a client wrote, as far as managedFields name one; whatever is inferred says so,
and says from what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Revision
from ctrlmgr.inspection.inferring.past import Past, Step


class Cause(NamedTuple):
    """An event that a change is taken to answer, and what speaks for that."""

    revision: Revision
    reason: str


class Inference(NamedTuple):
    """Who is taken to have made a change, and why."""

    controller: str
    """As `--controllers` calls it; "kubelet" for one of those."""
    reason: str
    """What says that it was this one."""
    causes: tuple[Cause, ...] = ()
    """By revision; none where it is a time that had come, or nothing tells."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {**self._asdict(), "causes": [each._asdict() for each in self.causes]}


Rule = Callable[[Step, Past], Inference | None]
"""Says what is inferred of a change; None if it says nothing of it."""

_CONTROL_PLANE = frozenset({"", "recording", "kube-controller-manager", "kube-scheduler", "kubelet"})
"""Who writes for the cluster itself, and the two names of a writer that is not known."""


def is_cluster(step: Step) -> bool:
    """Whether a change may be the cluster's own: no client is named as its author."""
    return step.actor in _CONTROL_PLANE


def inferred(controller: str, reason: str, causes: Iterable[tuple[Step | None, str]]) -> Inference:
    """Return an inference whose causes are some steps, each with what speaks for it; None stands for no step."""
    told: dict[Revision, str] = {}
    for step, why in causes:
        if step is not None:
            told.setdefault(step.revision, why)
    return Inference(controller, reason, tuple(Cause(*each) for each in sorted(told.items())))

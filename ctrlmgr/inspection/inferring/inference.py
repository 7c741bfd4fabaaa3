"""The inferred controller and causes of a change without a recorded reconcile.

Guarantees: nothing is inferred for clients' writes, as far as managedFields contain their author. An inference is
marked as such and contains its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Revision
from ctrlmgr.inspection.inferring.object_history import Past, Step


class Cause(NamedTuple):
    """The event that probably caused a change, and the reason."""

    revision: Revision
    reason: str


class Inference(NamedTuple):
    """The probable author of a change, and why."""

    controller: str
    """Its name in `--controllers`; "kubelet" for a kubelet."""
    reason: str
    """The reason why this is the author."""
    causes: tuple[Cause, ...] = ()
    """By revision; none if it was a time, or nothing is known."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {**self._asdict(), "causes": [each._asdict() for each in self.causes]}


Rule = Callable[[Step, Past], Inference | None]
"""Returns the inference for a change, None if there is none."""

_CONTROL_PLANE = frozenset({"", "recording", "kube-controller-manager", "kube-scheduler", "kubelet"})
"""The field managers of the cluster's components, and the two names of an unknown writer."""


def is_cluster(step: Step) -> bool:
    """Return whether a change may be made by the cluster itself: its author is not a client."""
    return step.actor in _CONTROL_PLANE


def inferred(controller: str, reason: str, causes: Iterable[tuple[Step | None, str]]) -> Inference:
    """Return an inference from steps and the reasons why each is a cause; None instead of a step is ignored."""
    told: dict[Revision, str] = {}
    for step, why in causes:
        if step is not None:
            told.setdefault(step.revision, why)
    return Inference(controller, reason, tuple(Cause(*each) for each in sorted(told.items())))

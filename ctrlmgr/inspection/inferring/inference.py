"""Defines the inference about a change without a recorded reconcile: the probable controller and causes of the change.

Guarantees: if managedFields show that a client is the author of a change, no causes are inferred. Every inference is
marked as inferred and contains its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Revision
from ctrlmgr.inspection.inferring.object_history import PastSteps, Step


class Cause(NamedTuple):
    """An event that probably caused a change, and the reason for the inference."""

    revision: Revision
    reason: str


class Inference(NamedTuple):
    """The probable author of a change, and the reason for the inference."""

    controller: str
    """The controller's name in `--controllers`; "kubelet" for a kubelet."""
    reason: str
    """The reason why this author is inferred."""
    causes: tuple[Cause, ...] = ()
    """The events that caused the change, sorted by revision; empty if a timer caused the change or if no cause is
    known.
    """

    def as_json(self) -> dict[str, Any]:
        """Return the inference as plain JSON values."""
        return {**self._asdict(), "causes": [each._asdict() for each in self.causes]}


Rule = Callable[[Step, PastSteps], Inference | None]
"""A rule, which returns the inference for a change; None if the rule has no result."""

_CONTROL_PLANE = frozenset({"", "recording", "kube-controller-manager", "kube-scheduler", "kubelet"})
"""The field managers of the cluster's components, and two names that mean an unknown field manager."""


def is_cluster(step: Step) -> bool:
    """Return whether the author of a change may be a component of the cluster and not a client."""
    return step.actor in _CONTROL_PLANE


def inferred(controller: str, reason: str, causes: Iterable[tuple[Step | None, str]]) -> Inference:
    """Return an inference with the given steps as causes, each with its reason; a step of None is ignored."""
    explanations: dict[Revision, str] = {}
    for step, why in causes:
        if step is not None:
            explanations.setdefault(step.revision, why)
    return Inference(controller, reason, tuple(Cause(*each) for each in sorted(explanations.items())))

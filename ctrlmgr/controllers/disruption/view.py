"""The fields of PodDisruptionBudgets, and of pods with a disruption condition, that the disruption controller reads.

Guarantee: a PodDisruptionBudget without a selector selects no pods. A PodDisruptionBudget with an empty selector
selects all pods of its namespace.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.kinds.label_selectors import selector_of

BUDGETS: Final = Resource("policy", "poddisruptionbudgets")


class BudgetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a budget; at most one of `minAvailable` and `maxUnavailable` is set."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: dict[str, Any] | None = None


class BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a PodDisruptionBudget."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: list[dict[str, Any]] | None = None


class Budget(msgspec.Struct, frozen=True, dict=True):
    """A PodDisruptionBudget; the class needs a `__dict__` for cached properties."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    @cached_property
    def selector(self) -> LabelSelector | None:
        """The pod selector of the budget; None if the budget selects nothing."""
        return None if self.spec.selector is None else selector_of(self.spec.selector)


def selects(budget: Object, pod: Object) -> bool:
    """Return whether a budget selects a pod."""
    selector = budget.view(Budget).selector
    return selector is not None and selector.matches(pod.labels)


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: list[_Condition] | None = None


DISRUPTION: Final = "DisruptionTarget"
"""The name of the condition of a pod that is about to be deleted."""


class DisruptedPod(msgspec.Struct, frozen=True):
    """The fields of a pod that describe its disruption."""

    status: _Status = _Status()

    @property
    def disruption(self) -> _Condition | None:
        """The condition DisruptionTarget if it is True and may become outdated.

        Conditions that kubelets set never become outdated.
        """
        found = next((each for each in self.status.conditions or () if each.type == DISRUPTION), None)
        if found is None or found.status != "True" or found.reason == "TerminationByKubelet":
            return None
        return None if self.status.phase in ("Succeeded", "Failed") else found

"""The declarations of the kinds of `policy`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.policy import printers
from ctrlmgr.kinds.policy.pod_disruption_budget import PodDisruptionBudgetStrategy

KINDS = (
    Declaration(
        "policy/v1",
        "PodDisruptionBudget",
        strategy=PodDisruptionBudgetStrategy(),
        printer=printers.POD_DISRUPTION_BUDGET,
    ),
)

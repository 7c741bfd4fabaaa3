"""Decides the status of a CustomResourceDefinition.

Guarantees: the status depends only on the CustomResourceDefinition and on the names of other CustomResourceDefinitions
in its group. If a CustomResourceDefinition already has the computed status, the computation returns the same status.

Kubernetes has separate controllers for names, establishing, structural schemas and approval. In ctrlmgr, each of
Kubernetes' controllers corresponds to a step, and one write stores the results of all steps (apiextensions-apiserver
`pkg/controller/{status,establish,nonstructuralschema, apiapproval}`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.controllers.customresourcedefinitions.accepted_names import HeldNames, desired_establishing, desired_naming
from ctrlmgr.controllers.customresourcedefinitions.crd_conditions import (
    APPROVED,
    NON_STRUCTURAL,
    Condition,
    conditions_of,
    with_condition,
    without_condition,
)
from ctrlmgr.extensions import api_approval
from ctrlmgr.extensions.validation import structural_violations


def desired_status(definition: Unstructured, definitions: Iterable[Unstructured], now: str) -> Unstructured:
    """Return the desired status of a CustomResourceDefinition.

    The list `definitions` contains all existing CustomResourceDefinitions. `now` is a timestamp (RFC 3339).
    """
    status: Unstructured = definition.get("status") or {}
    naming = desired_naming(definition, HeldNames.by(definitions, definition["spec"]["group"]))
    if naming is not None:
        status = {**status, "acceptedNames": dict(naming.names)}
        for condition in naming.conditions:
            status = _with(status, condition, now)
    established = desired_establishing({**definition, "status": status})
    if established is not None:
        status = _with(status, established, now)
    status = _with_or_without(status, NON_STRUCTURAL, structural_violations.condition(definition), now)
    return _with_or_without(status, APPROVED, api_approval.condition(definition), now)


def _with(status: Unstructured, condition: Condition, now: str) -> Unstructured:
    return {**status, "conditions": with_condition(conditions_of({"status": status}), condition, now)}


def _with_or_without(status: Unstructured, type: str, condition: Mapping[str, str] | None, now: str) -> Unstructured:
    if condition is not None:
        return _with(status, Condition(**condition), now)
    conditions = conditions_of({"status": status})
    if all(each.get("type") != type for each in conditions):
        return status
    return {**status, "conditions": without_condition(conditions, type)}

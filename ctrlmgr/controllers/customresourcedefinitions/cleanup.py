"""Decides the steps in the deletion of a CustomResourceDefinition; the first steps delete its instances.

Guarantees (apiextensions-apiserver `pkg/controller/finalizer/crd_finalizer.go`): the finalizer of a
CustomResourceDefinition that is being deleted is removed only after a list has returned no instances. No instance can
be created after that list, because the condition that prevents creation is written to the log before the instances are
listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.controllers.customresourcedefinitions.crd_conditions import (
    ESTABLISHED,
    TERMINATING,
    Condition,
    conditions_of,
    find,
    is_true,
    with_condition,
)
from ctrlmgr.kinds.apiextensions.custom_resource_definition import CLEANUP

_IN_PROGRESS = Condition(TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_COMPLETED = Condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
_NEVER_ESTABLISHED = Condition(TERMINATING, "False", "NeverEstablished", "resource was never established")
_UNCONFIRMED = Condition(
    TERMINATING,
    "True",
    "InstanceDeletionCheck",
    "could not confirm zero CustomResources remaining: context deadline exceeded",
)

PATIENCE = 60.0
"""The number of seconds after which the status of the CustomResourceDefinition reports that instances remain."""


class Step(NamedTuple):
    """The next step in the deletion of a CustomResourceDefinition."""

    definition: Unstructured | None = None
    """The CustomResourceDefinition to write, or None if no write is needed. In the last step, the
    CustomResourceDefinition to write has no finalizer.
    """
    deletes: bool = False
    """Whether the existing instances of the custom kind must be deleted in this step."""


def is_going(definition: Mapping[str, Any]) -> bool:
    """Return whether a CustomResourceDefinition is being deleted and its instances may still exist."""
    metadata = definition["metadata"]
    return bool(metadata.get("deletionTimestamp")) and CLEANUP in (metadata.get("finalizers") or ())


def next_step(definition: Unstructured, instances: int | None, waited: float, now: str) -> Step:
    """Return the next step for a CustomResourceDefinition for which `is_going` is True.

    `instances` is the number of existing instances, or None if they have not been listed yet. `waited` is the number
    of seconds since the deletion of the instances began; `now` is a timestamp (RFC 3339).
    """
    condition = find(definition, TERMINATING)
    if not is_true(definition, ESTABLISHED):
        return Step(_let_go(definition, _NEVER_ESTABLISHED, now))
    if condition is None or condition.reason not in (_IN_PROGRESS.reason, _UNCONFIRMED.reason):
        return Step(_saying(definition, _IN_PROGRESS, now))
    if instances is None:
        return Step()
    if not instances:
        return Step(_let_go(definition, _COMPLETED, now))
    if waited >= PATIENCE and condition != _UNCONFIRMED:
        return Step(_saying(definition, _UNCONFIRMED, now), deletes=True)
    return Step(deletes=True)


def _saying(definition: Unstructured, condition: Condition, now: str) -> Unstructured:
    status = definition.get("status") or {}
    return {**definition, "status": {**status, "conditions": with_condition(conditions_of(definition), condition, now)}}


def _let_go(definition: Unstructured, condition: Condition, now: str) -> Unstructured:
    body = _saying(definition, condition, now)
    metadata = dict(body["metadata"])
    metadata["finalizers"] = [each for each in metadata["finalizers"] if each != CLEANUP]
    return {**body, "metadata": metadata}

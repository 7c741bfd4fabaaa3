"""The strategy of Deployments: defaults, validation and generations.

Source: Kubernetes' `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` and
`pkg/registry/apps/deployment/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, forbidden, invalid, not_supported
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context
from ctrlmgr.kinds.apps.rolling_update import ROLLING, bounds, default_rolling_update, shown_strategy
from ctrlmgr.kinds.apps.status import (
    DEPLOYMENT_COUNTS,
    validate_collisions,
    validate_replicas,
)
from ctrlmgr.kinds.apps.templates import (
    SPEC,
    TemplateStrategy,
    fill,
    validate_same_selector,
    validate_selected_template,
)
from ctrlmgr.kinds.common_rules import (
    amount,
    at_most_all,
    int_or_percent,
    nonnegative,
    nonnegative_fields,
)

_RECREATE = "Recreate"
_STRATEGY = SPEC.child("strategy")


class DeploymentStrategy(TemplateStrategy):
    """The strategy of the kind apps/v1 Deployment.

    A change of a Deployment's annotations also increases its generation, because its ReplicaSets copy the annotations.
    """

    revalidates = 0
    status_keeps = ("labels",)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template and of the update strategy."""
        super().default(obj)
        spec = obj["spec"]
        fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
        default_rolling_update(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation of a Deployment if its annotations have changed."""
        metadata, before = metadata_of(new), old.get("metadata") or {}
        if not ctx.subresource and (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
            metadata["generation"] = (before.get("generation") or 0) + 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        errors = nonnegative(spec.get("replicas"), SPEC.child("replicas"))
        errors += validate_selected_template(spec, "deployment")
        errors += _validate_deployment_strategy(spec["strategy"])
        errors += nonnegative_fields(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), SPEC)
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
            detail = "must be greater than minReadySeconds"
            errors.append(invalid(SPEC.child("progressDeadlineSeconds"), deadline, detail))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the selector is unchanged; in a write to `/status`, validate the status instead."""
        if ctx.subresource != "status":
            return validate_same_selector(new, old)
        status = new.get("status") or {}
        errors = validate_replicas(status, DEPLOYMENT_COUNTS, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + validate_collisions(status, old.get("status") or {})


def _validate_deployment_strategy(strategy: Mapping[str, Any]) -> list[FieldError]:
    kind, path = strategy["type"], _STRATEGY.child("rollingUpdate")
    if kind not in (_RECREATE, ROLLING):
        return [not_supported(_STRATEGY, shown_strategy(strategy), (_RECREATE, ROLLING))]
    if kind == _RECREATE:
        detail = f"may not be specified when strategy `type` is '{_RECREATE}'"
        return [] if strategy.get("rollingUpdate") is None else [forbidden(path, detail)]
    rolling = strategy["rollingUpdate"]
    unavailable, surge = bounds(rolling)
    errors = int_or_percent(unavailable, path.child("maxUnavailable"))
    errors += int_or_percent(surge, path.child("maxSurge"))
    if amount(unavailable) == 0 and amount(surge) == 0:
        errors.append(invalid(path.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all(unavailable, path.child("maxUnavailable"))

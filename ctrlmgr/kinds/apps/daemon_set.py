"""The strategy of DaemonSets: defaults, validation and generations.

Source: Kubernetes' `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` and
`pkg/registry/apps/daemonset/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context
from ctrlmgr.kinds.apps.rolling_update import ROLLING, bounds, default_rolling_update, shown_strategy
from ctrlmgr.kinds.apps.status import (
    validate_collisions,
    validate_daemons,
)
from ctrlmgr.kinds.apps.templates import (
    SPEC,
    TemplateStrategy,
    fill,
    validate_eternal_template,
    validate_match,
    validate_same_selector,
    validate_selector,
)
from ctrlmgr.kinds.common_rules import (
    amount,
    at_most_all,
    int_or_percent,
    nonnegative,
)

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_ON_DELETE = "OnDelete"
_UPDATE_STRATEGY = SPEC.child("updateStrategy")


class DaemonSetStrategy(TemplateStrategy):
    """The strategy of apps/v1 DaemonSets; an annotation contains the number of changes of the pod template."""

    warns_of_name = False

    def may_have_changed(self, new: Unstructured, old: Unstructured) -> bool:
        """Return whether the pod template has changed."""
        return _template_generation(new) != _template_generation(old)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template and of the update strategy."""
        super().default(obj)
        spec = obj["spec"]
        default_rolling_update(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})
        fill(spec, {"revisionHistoryLimit": 10})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the initial generation of the pod template."""
        _count_templates(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation of the pod template if the template has changed."""
        changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
        _count_templates(new, _template_generation(old) + (changed and ctx.subresource != "status"))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        # Kubernetes reports a changed selector before other errors, because the selector must not change.
        errors = [] if ctx.old is None else validate_same_selector(obj, ctx.old)
        # Kubernetes handles a missing selector like a selector that selects no pods.
        errors += [] if spec.get("selector") is None else validate_selector(spec, "daemonset")
        errors += validate_match(spec) + validate_eternal_template(spec, "DaemonSet")
        errors += nonnegative(spec.get("minReadySeconds"), SPEC.child("minReadySeconds"))
        errors += _validate_daemon_strategy(spec["updateStrategy"])
        return errors + nonnegative(spec.get("revisionHistoryLimit"), SPEC.child("revisionHistoryLimit"))

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the `status` of the object."""
        if ctx.subresource != "status":
            return []
        status = new.get("status") or {}
        return validate_daemons(status) + validate_collisions(status, old.get("status") or {})


def _template_generation(obj: Unstructured) -> int:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_GENERATION) or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _count_templates(obj: Unstructured, count: int) -> None:
    metadata = metadata_of(obj)
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(count)}


def _validate_daemon_strategy(strategy: Mapping[str, Any]) -> list[FieldError]:
    kind, path = strategy["type"], _UPDATE_STRATEGY.child("rollingUpdate")
    if kind == _ON_DELETE:
        return []
    if kind != ROLLING:
        return [not_supported(_UPDATE_STRATEGY, shown_strategy(strategy), (ROLLING, _ON_DELETE))]
    rolling = strategy["rollingUpdate"]
    unavailable, surge = bounds(rolling)
    errors: list[FieldError] = []
    for check in (int_or_percent, at_most_all):
        errors += check(unavailable, path.child("maxUnavailable")) + check(surge, path.child("maxSurge"))
    if amount(unavailable) and amount(surge):
        errors.append(invalid(path.child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
    elif not (amount(unavailable) or amount(surge)):
        errors.append(required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors

"""The strategy of DeviceTaintRules; with such a rule, an administrator taints the devices that a selector matches.

Kubernetes serves the kind only if one of its versions is enabled and the feature gate DRADeviceTaintRules is on.

Source: Kubernetes `pkg/registry/resource/devicetaintrule/strategy.go` and `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, too_many
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.resource.shared_parts import Fields, label, pool_name, validate_taint

MOST_CONDITIONS: Final = 8
"""The maximum number of conditions in a status."""
_SELECTOR, _TAINT = Path("spec").child("deviceSelector"), Path("spec").child("taint")
_CONDITIONS = Path("status").child("conditions")


class DeviceTaintRuleStrategy(Strategy):
    """resource.k8s.io DeviceTaintRule."""

    revalidates = 0
    has_generation = True
    status_keeps = METADATA

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the time at which the taint was added, unless the client sets it."""
        _stamp(_taint_of(obj), ctx.now)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Set the time of a taint that has none.

        If an update changes the effect of a taint but not its time, the time is also set.
        """
        if ctx.subresource:
            return
        taint, before = _taint_of(new), _taint_of(old)
        _stamp(taint, ctx.now)
        if taint.get("effect") != before.get("effect") and _time_of(taint) == _time_of(before):
            taint["timeAdded"] = ctx.now

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the selector and the taint; if the effect of the taint is unchanged, the effect is allowed."""
        if ctx.subresource:
            return []
        taint = _taint_of(obj)
        is_known = ctx.old is not None and _taint_of(ctx.old).get("effect") == taint.get("effect")
        errors = _validate_selector((obj.get("spec") or {}).get("deviceSelector") or {})
        return errors + validate_taint(taint, _TAINT, with_effect=not is_known)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the conditions of a changed status."""
        if ctx.subresource != "status":
            return []
        conditions = (new.get("status") or {}).get("conditions") or []
        errors = validate_conditions(conditions, _CONDITIONS)
        if len(conditions) > MOST_CONDITIONS:
            errors.append(too_many(_CONDITIONS, len(conditions), MOST_CONDITIONS))
        return errors


def _taint_of(rule: Unstructured) -> dict[str, Any]:
    taint: dict[str, Any] = (rule.get("spec") or {}).get("taint") or {}
    return taint


def _stamp(taint: dict[str, Any], now: str) -> None:
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = now


def _time_of(taint: Fields) -> int | None:
    return parse_time(taint["timeAdded"]) if taint.get("timeAdded") else None


def _validate_selector(selector: Fields) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("driver", driver_name), ("pool", pool_name), ("device", label)):
        if selector.get(field) is not None:
            errors += check(selector[field], _SELECTOR.child(field))
    return errors

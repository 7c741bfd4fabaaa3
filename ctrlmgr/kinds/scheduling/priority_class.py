"""The strategy of PriorityClasses: defaults, validation, and protection from deletion.

Source: Kubernetes' `pkg/apis/scheduling/validation`, `pkg/apis/scheduling/v1/defaults.go`, and
`pkg/registry/scheduling/priorityclass/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, forbidden, not_supported, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.api_errors import forbidden as refused
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.common_rules import immutable

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_SYSTEM = "system-"
_PREEMPTION = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy):
    """The strategy of the kind scheduling.k8s.io/v1 PriorityClass."""

    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the default preemption policy of a PriorityClass."""
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the generation of a PriorityClass; the generation never increases."""
        metadata_of(obj)["generation"] = 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the name, value and preemption policy of a new PriorityClass."""
        if ctx.old is not None:
            return []
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        errors: list[FieldError] = []
        if name.startswith(_SYSTEM):
            if problem := _system_problem(name, value, obj.get("globalDefault", False)):
                reserved = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only."
                errors.append(forbidden("metadata.name", f"{reserved} error: {problem}"))
        elif value > HIGHEST_USER_PRIORITY:
            words = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            errors.append(forbidden("value", words))
        policy = obj["preemptionPolicy"]
        if not policy:
            errors.append(required("preemptionPolicy"))
        elif policy not in _PREEMPTION:
            errors.append(not_supported("preemptionPolicy", policy, _PREEMPTION))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the value and the preemption policy of a PriorityClass are unchanged."""
        same_value = new.get("value", 0) == old.get("value", 0)
        errors = [] if same_value else [forbidden("value", "may not be changed in an update.")]
        field = "preemptionPolicy"
        return errors + immutable(new.get(field), old.get(field), Path(field))

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Raise `Forbidden` for the deletion of a PriorityClass that every cluster has."""
        if obj.name in SYSTEM_PRIORITIES:
            raise refused(ctx.kind.resource, obj.name, "this is a system priority class and cannot be deleted")


def _system_problem(name: str, value: int, global_default: bool) -> str:
    if name not in SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if global_default else ""

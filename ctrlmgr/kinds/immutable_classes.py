"""IngressClasses and PriorityClasses, which other objects name; their meaning is immutable.

Rules come from Kubernetes' `pkg/apis/{networking,scheduling}/validation`, their `v1/defaults.go`, and
`pkg/registry/{networking/ingressclass,scheduling/priorityclass}/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, not_supported, required, too_long
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.refusals import forbidden as refused
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import domain_path, each_problem, immutable

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_SYSTEM = "system-"
_PREEMPTION = ("PreemptLowerPriority", "Never")
_CONTROLLER_LENGTH = 250


class PriorityClassStrategy(Strategy):
    """scheduling.k8s.io/v1 PriorityClass."""

    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the default preemption policy."""
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the generation, which never changes."""
        metadata_of(obj)["generation"] = 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the name, value and policy of a new class."""
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
        """Check that value and policy are unchanged."""
        same_value = new.get("value", 0) == old.get("value", 0)
        errors = [] if same_value else [forbidden("value", "may not be changed in an update.")]
        field = "preemptionPolicy"
        return errors + immutable(new.get(field), old.get(field), Path(field))

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Raise `Forbidden` for the classes that every cluster has."""
        if obj.name in SYSTEM_PRIORITIES:
            raise refused(ctx.kind.resource, obj.name, "this is a system priority class and cannot be deleted")


def _system_problem(name: str, value: int, global_default: bool) -> str:
    if name not in SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if global_default else ""


class IngressClassStrategy(Strategy):
    """networking.k8s.io/v1 IngressClass."""

    has_generation = True

    def default(self, obj: Unstructured) -> None:
        """Set the default scope of parameters, the cluster."""
        parameters = (obj.get("spec") or {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the controller, which is immutable, and the parameters."""
        spec, before = obj.get("spec") or {}, (ctx.old or obj).get("spec") or {}
        controller, path = spec.get("controller", ""), Path("spec.controller")
        errors = immutable(controller, before.get("controller", ""), path)
        errors += [too_long(path, _CONTROLLER_LENGTH)] if name_formats.length(controller) > _CONTROLLER_LENGTH else []
        errors += domain_path(controller, path)
        return errors + _validate_parameters_reference(spec.get("parameters"), Path("spec.parameters"))


def _validate_parameters_reference(reference: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    if reference is None:
        return []
    errors: list[FieldError] = []
    group = reference.get("apiGroup")
    if group is not None:
        errors += each_problem(name_formats.dns1123_subdomain, group, path.child("apiGroup"))
    for field in ("kind", "name"):
        value, below = reference.get(field, ""), path.child(field)
        errors += each_problem(name_formats.path_segment_name, value, below) if value else [required(below)]
    return errors + _validate_scope(reference, path)


def _validate_scope(reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    scope, namespace = reference.get("scope"), reference.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        return [not_supported(path.child("scope"), scope, ("Cluster", "Namespace"))]
    if scope == "Namespace":
        if namespace is None:
            return [required(path.child("namespace"), "`parameters.scope` is set to 'Namespace'")]
        return each_problem(name_formats.dns1123_label, namespace, path.child("namespace"))
    if namespace is not None:
        return [forbidden(path.child("namespace"), "`parameters.scope` is set to 'Cluster'")]
    return []

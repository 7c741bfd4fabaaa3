"""The strategy of IngressClasses: defaults and validation.

Source: Kubernetes' `pkg/apis/networking/validation`, `pkg/apis/networking/v1/defaults.go`, and
`pkg/registry/networking/ingressclass/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, not_supported, required, too_long
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import domain_path, each_problem, immutable

_CONTROLLER_LENGTH = 250


class IngressClassStrategy(Strategy):
    """The strategy of the kind networking.k8s.io/v1 IngressClass."""

    has_generation = True

    def default(self, obj: Unstructured) -> None:
        """Set the default scope of an IngressClass's parameters, which is `Cluster`."""
        parameters = (obj.get("spec") or {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the parameters and the controller of an IngressClass; an update must not change the controller."""
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

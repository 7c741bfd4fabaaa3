"""The strategies of Workloads and PodGroups, which are the API of gang scheduling.

Kubernetes serves both kinds only if the version `scheduling.k8s.io/v1alpha2` is enabled and the feature gate
GenericWorkload is on.

Source: Kubernetes `pkg/registry/scheduling/{podgroup,workload}/strategy.go` and `pkg/apis/scheduling/validation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.scheduling.group_policies import Fields, one_of, required_name, validate_group, validate_named

MOST_TEMPLATES: Final = 8
"""The maximum number of templates in a Workload."""
_SPEC, _STATUS = Path("spec"), Path("status")
_IMMUTABLE: Final = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


class WorkloadStrategy(Strategy):
    """The strategy of the kind scheduling.k8s.io/v1alpha2 Workload."""

    revalidates = 0

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the reference to the controller, and the templates of a new Workload."""
        spec = obj.get("spec") or {}
        if ctx.old is not None:
            return []
        errors = _validate_controller(spec.get("controllerRef"), _SPEC.child("controllerRef"))
        templates, path = spec.get("podGroupTemplates") or (), _SPEC.child("podGroupTemplates")
        if not templates:
            return [*errors, required(path)]
        return errors + validate_named(templates, _validate_template, path, MOST_TEMPLATES)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec is unchanged."""
        return _unchanged(new, old, ("controllerRef", "podGroupTemplates"))


class PodGroupStrategy(Strategy):
    """The strategy of the kind scheduling.k8s.io/v1alpha2 PodGroup."""

    revalidates = 0
    status_keeps = METADATA

    def default(self, obj: Unstructured) -> None:
        """Set the default disruption mode of a PodGroup."""
        spec = obj.setdefault("spec", {})
        if spec.get("disruptionMode") is None:
            spec["disruptionMode"] = "Pod"

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the reference to the template, and the policy of a new PodGroup."""
        if ctx.old is not None:
            return []
        spec = obj.get("spec") or {}
        return _validate_reference(spec.get("podGroupTemplateRef")) + validate_group(spec, _SPEC)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec is unchanged; in a write to `/status`, validate the status instead."""
        return _validate_status(new) if ctx.subresource == "status" else _unchanged(new, old, _IMMUTABLE)


def _unchanged(new: Unstructured, old: Unstructured, names: Sequence[str]) -> list[FieldError]:
    spec, former = new.get("spec") or {}, old.get("spec") or {}
    changed = (name for name in names if spec.get(name) != former.get(name))
    return [invalid(_SPEC.child(name), None, "field is immutable") for name in changed]


def _validate_controller(reference: Fields | None, path: Path) -> list[FieldError]:
    if reference is None:
        return []
    group, errors = reference.get("apiGroup") or "", []
    if group:
        errors = each_problem(name_formats.dns1123_subdomain, group, path.child("apiGroup"))
    for field in ("kind", "name"):
        errors += required_name(name_formats.path_segment_name, reference.get(field) or "", path.child(field))
    return errors


def _validate_template(template: Fields, path: Path) -> list[FieldError]:
    errors = required_name(name_formats.dns1123_label, template.get("name") or "", path.child("name"))
    return errors + validate_group(template, path)


def _validate_reference(reference: Fields | None) -> list[FieldError]:
    if reference is None:
        return []
    path, workload = _SPEC.child("podGroupTemplateRef"), reference.get("workload")
    errors = one_of(reference, ("workload",), path)
    if workload is None:
        return errors
    name, template = workload.get("workloadName") or "", workload.get("podGroupTemplateName") or ""
    below = path.child("workload")
    errors += required_name(name_formats.dns1123_subdomain, name, below.child("workloadName"))
    return errors + required_name(name_formats.dns1123_label, template, below.child("podGroupTemplateName"))


def _validate_status(group: Unstructured) -> list[FieldError]:
    status, claims = group.get("status") or {}, (group.get("spec") or {}).get("resourceClaims") or ()
    names, path = {each.get("name") for each in claims}, _STATUS.child("resourceClaimStatuses")
    errors = validate_conditions(status.get("conditions") or (), _STATUS.child("conditions"))
    statuses = status.get("resourceClaimStatuses") or ()
    words = "must match the name of an entry in `spec.resourceClaims`"
    for index, each in enumerate(statuses):
        if each.get("name") not in names:
            errors.append(invalid(path.at(index).child("name"), each.get("name") or "", words))
    return errors + validate_named(statuses, _validate_claim_status, path)


def _validate_claim_status(status: Fields, path: Path) -> list[FieldError]:
    name = status.get("resourceClaimName")
    return [] if name is None else each_problem(name_formats.dns1123_subdomain, name, path.child("resourceClaimName"))

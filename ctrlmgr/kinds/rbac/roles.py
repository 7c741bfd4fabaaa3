"""The strategies of roles and role bindings; admission checks that the writing user has the rights that they grant.

Source: Kubernetes `pkg/apis/rbac/v1/defaults.go`, `pkg/apis/rbac/validation/validation.go` and
`pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import ROOT, FieldError, Path, invalid, not_supported, required, tentatively
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.kinds.apps.templates import fill
from ctrlmgr.kinds.common_rules import each_problem

GROUP = "rbac.authorization.k8s.io"

_RULES = Path("rules")
_ROLE = Path("roleRef")
_SUBJECTS = Path("subjects")
_KINDS = ("ServiceAccount", "User", "Group")


class GrantStrategy(Strategy):
    """The common part of the strategies of the kinds in rbac.authorization.k8s.io/v1.

    Names may contain any character that a URL path may contain.
    """

    allow_create_on_update = True
    name_check = staticmethod(name_formats.path_segment_name)

    def __init__(self, *, namespaced: bool) -> None:
        """Create the strategy; if `namespaced` is set, objects of the kind are in namespaces."""
        self.namespaced = namespaced


class RoleStrategy(GrantStrategy):
    """The strategy of Roles and ClusterRoles."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the rules of a role, and the selectors of an aggregated role."""
        errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            errors += self._validate_rule(rule, _RULES.at(index))
        if obj.get("aggregationRule") is not None:
            path = Path("aggregationRule.clusterRoleSelectors")
            selectors = _selectors(obj)
            if not selectors:
                detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                errors.append(required(path, detail))
            lenient = tentatively(lambda: any(map(_selector_errors, _selectors(ctx.old or {}))))
            for index, selector in enumerate(selectors):
                errors += _selector_errors(selector, path.at(index), lenient=lenient)
        return errors

    def _validate_rule(self, rule: Mapping[str, Any], path: Path) -> list[FieldError]:
        groups, resources, objects = (rule.get(each) or () for each in ("apiGroups", "resources", "resourceNames"))
        errors = [] if rule.get("verbs") else [required(path.child("verbs"), "verbs must contain at least one value")]
        if urls := rule.get("nonResourceURLs"):
            problems = ["namespaced rules cannot apply to non-resource URLs"] if self.namespaced else []
            if groups or resources or objects:
                problems.append("rules cannot apply to both regular resources and non-resource URLs")
            return errors + [invalid(path.child("nonResourceURLs"), urls, each) for each in problems]
        if not groups:
            errors.append(required(path.child("apiGroups"), "resource rules must supply at least one api group"))
        if not resources:
            errors.append(required(path.child("resources"), "resource rules must supply at least one resource"))
        return errors


def _selectors(role: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()


def _selector_errors(selector: Mapping[str, Any], path: Path = ROOT, *, lenient: bool = False) -> list[FieldError]:
    """Validate one label selector of an aggregation rule.

    If the stored role already has invalid values (`lenient`), all invalid values are reported as one error.
    """
    errors = validate_label_selector(selector, path, invalid_values_allowed=lenient)
    if tentatively(lambda: validate_label_selector(selector, path)):
        errors.append(invalid(path, None, "invalid label selector."))
    return errors


class RoleBindingStrategy(GrantStrategy):
    """The strategy of RoleBindings and ClusterRoleBindings."""

    def default(self, obj: Unstructured) -> None:
        """Set the default API groups in a role binding: of the role reference, and of subjects that are users."""
        fill(obj.setdefault("roleRef", {}), {"apiGroup": GROUP})
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                fill(subject, {"apiGroup": GROUP})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the role reference and the subjects of a role binding."""
        role, kinds = obj.get("roleRef") or {}, ("Role", "ClusterRole") if self.namespaced else ("ClusterRole",)
        errors = _validate_group(role, _ROLE)
        if (kind := role.get("kind") or "") not in kinds:
            errors.append(not_supported(_ROLE.child("kind"), kind, kinds))
        name, below = role.get("name") or "", _ROLE.child("name")
        errors += each_problem(name_formats.path_segment_name, name, below) if name else [required(below)]
        for index, subject in enumerate(obj.get("subjects") or ()):
            errors += self._validate_subject(subject, _SUBJECTS.at(index))
        return errors

    def _validate_subject(self, subject: Mapping[str, Any], path: Path) -> list[FieldError]:
        kind, name = subject.get("kind") or "", subject.get("name") or ""
        below = path.child("name")
        errors = [] if name else [required(below)]
        if kind not in _KINDS:
            return [*errors, not_supported(path.child("kind"), kind, _KINDS)]
        if kind == "ServiceAccount":
            errors += each_problem(name_formats.dns1123_subdomain, name, below) if name else []
            if group := subject.get("apiGroup"):
                errors.append(not_supported(path.child("apiGroup"), group, ("",)))
            missing = not self.namespaced and not subject.get("namespace")
            return [*errors, required(path.child("namespace"))] if missing else errors
        return errors + _validate_group(subject, path)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the role reference of a role binding is unchanged."""
        errors: list[FieldError] = []
        role = new.get("roleRef") or {}
        if role != (old.get("roleRef") or {}):
            shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
            errors.append(invalid(_ROLE, shown, "cannot change roleRef"))
        return errors


def _validate_group(reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    group = reference.get("apiGroup") or ""
    return [] if group == GROUP else [not_supported(path.child("apiGroup"), group, (GROUP,))]

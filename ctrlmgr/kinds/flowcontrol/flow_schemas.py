"""The strategy of FlowSchemas, which assign requests to flows and priority levels.

Source: Kubernetes `pkg/apis/flowcontrol/v1/defaults.go` and `pkg/apis/flowcontrol/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.name_formats import label_name, subdomain_name
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import FLOW_SCHEMAS, validate_fixed
from ctrlmgr.kinds.flowcontrol.status import validate_conditions

_SPEC: Final = Path("spec")
_PRECEDENCE: Final = 1000
_MOST_PRECEDENCE: Final = 10_000
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS: Final = ("ByNamespace", "ByUser")
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
"""The field of a subject that describes the subject, keyed by the subject's kind."""

_MEMBER: Final = "each member of this list must be '*' or a DNS-1123 label; "


class FlowSchemaStrategy(Strategy):
    """The strategy of the kind flowcontrol.apiserver.k8s.io/v1 FlowSchema."""

    compares_metadata = False
    has_generation = True
    status_keeps = METADATA

    def default(self, obj: Unstructured) -> None:
        """Set the default matching precedence of a FlowSchema."""
        spec = obj.setdefault("spec", {})
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = _PRECEDENCE

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec or the status of a FlowSchema; the specs of mandatory FlowSchemas must not change."""
        if ctx.subresource:
            return validate_conditions(obj)
        name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
        errors = _validate_spec(name, spec)
        if name in FLOW_SCHEMAS:
            errors += validate_fixed("FlowSchemaSpec", spec, FLOW_SCHEMAS[name], f"spec of '{name}'")
        return errors + validate_conditions(obj)


def _validate_spec(name: str, spec: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    precedence, path = spec.get("matchingPrecedence") or 0, _SPEC.child("matchingPrecedence")
    if precedence <= 0:
        errors.append(invalid(path, precedence, "must be a positive value"))
    if precedence > _MOST_PRECEDENCE:
        errors.append(invalid(path, precedence, f"must not be greater than {_MOST_PRECEDENCE}"))
    if precedence == 1 and name != "exempt":
        errors.append(invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = {"Type": method.get("type") or ""}
        errors.append(not_supported(_SPEC.child("distinguisherMethod", "type"), shown, _METHODS))
    errors += _validate_level((spec.get("priorityLevelConfiguration") or {}).get("name") or "")
    for index, rule in enumerate(spec.get("rules") or ()):
        errors += _validate_rule(rule, _SPEC.child("rules").at(index))
    return errors


def _validate_level(name: str) -> list[FieldError]:
    path = _SPEC.child("priorityLevelConfiguration", "name")
    if not name:
        return [required(path, "must reference a priority level")]
    return [invalid(path, name, problem) for problem in subdomain_name(name)]


def _validate_rule(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subject in enumerate(rule.get("subjects") or ()):
        errors += _validate_subject(subject, path.child("subjects").at(index))
    if not rule.get("subjects"):
        errors.append(required(path.child("subjects"), "subjects must contain at least one value"))
    of_resources, of_paths = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not of_resources and not of_paths:
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, each in enumerate(of_resources):
        errors += _validate_resources(each, path.child("resourceRules").at(index))
    for index, each in enumerate(of_paths):
        errors += _validate_paths(each, path.child("nonResourceRules").at(index))
    return errors


def _validate_subject(subject: Mapping[str, Any], path: Path) -> list[FieldError]:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        return [not_supported(path.child("kind"), kind, tuple(_SUBJECTS))]
    field = _SUBJECTS[kind]
    errors = _validate_who(kind, subject.get(field), path.child(field))
    for other in ("ServiceAccount", "User", "Group"):
        there = _SUBJECTS[other]
        if other != kind and subject.get(there) is not None:
            errors.append(forbidden(path.child(there), f"{there} is forbidden when subject kind is not '{other}'"))
    return errors


def _validate_who(kind: str, who: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    if who is None:
        return [required(path, f"{_SUBJECTS[kind]} is required when subject kind is '{kind}'")]
    name = who.get("name") or ""
    errors = [] if name else [required(path.child("name"), "")]
    if kind != "ServiceAccount":
        return errors
    if name and name != "*":
        errors += [invalid(path.child("name"), name, each) for each in subdomain_name(name)]
    namespace = who.get("namespace") or ""
    if not namespace:
        return [*errors, required(path.child("namespace"), "must specify namespace for service account")]
    problems = label_name(namespace)
    return errors + [invalid(path.child("namespace"), namespace, each) for each in problems]


def _validate_verbs(verbs: Sequence[str], path: Path) -> list[FieldError]:
    if not verbs:
        return [required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return [] if len(verbs) == 1 else [invalid(path, verbs, "if '*' is present, must not specify other verbs")]
    return [] if set(verbs) <= {*_VERBS} else [not_supported(path, verbs, _VERBS)]


def _validate_all_of(rule: Mapping[str, Any], field: str, path: Path, one: str, others: str) -> list[FieldError]:
    """Validate a list that must not be empty; if the list contains `*`, it must have no other elements."""
    found = rule.get(field) or ()
    if not found:
        return [required(path.child(field), f"resource rules must supply at least one {one}")]
    if len(found) > 1 and "*" in found:
        return [invalid(path.child(field), found, f"if '*' is present, must not specify other {others}")]
    return []


def _validate_resources(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_verbs(rule.get("verbs") or (), path.child("verbs"))
    errors += _validate_all_of(rule, "apiGroups", path, "api group", "api groups")
    errors += _validate_all_of(rule, "resources", path, "resource", "resources")
    namespaces, where = rule.get("namespaces") or (), path.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(where, detail))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            errors.append(invalid(where, namespaces, "if '*' is present, must not specify other namespaces"))
    else:
        for index, each in enumerate(namespaces):
            problems = label_name(each)
            errors += [invalid(where.at(index), each, _MEMBER + problem) for problem in problems]
    return errors


def _validate_paths(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = _validate_verbs(rule.get("verbs") or (), path.child("verbs"))
    urls, where = rule.get("nonResourceURLs") or (), path.child("nonResourceURLs")
    if not urls:
        errors.append(required(where, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        if len(urls) > 1:
            errors.append(invalid(where, urls, "if '*' is present, must not specify other non-resource URLs"))
    else:
        for index, each in enumerate(urls):
            if problem := _path_problem(each):
                errors.append(invalid(where.at(index), each, problem))
    return errors


def _path_problem(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    stars = path.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not path.endswith("/*")) else ""

"""Validates which requests a policy or webhook matches: operations, resources, selectors and match conditions.

Source: Kubernetes `pkg/apis/admissionregistration/validation/validation.go` and `v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from ctrlmgr.api.unstructured import repeated
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.expressions.types import BOOL
from ctrlmgr.kinds.admissionregistration.expression_variables import Scope, expression_errors

Raw = Mapping[str, Any]

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATIONS: Final = ("IfNeeded", "Never")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_MOST_CONDITIONS: Final = 64


def default_match(match: dict[str, Any]) -> None:
    """Set the defaults of MatchResources."""
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(field) or ():
            rule.setdefault("scope", "*")


def choice_errors(holder: Raw, field: str, values: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Yield an error if the value of a field is not one of the allowed values."""
    value = holder.get(field)
    if value is not None and value not in values:
        yield not_supported(path.child(field), value, sorted(values))


def match_errors(match: Raw, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of a MatchResources whose defaults are set."""
    yield from choice_errors(match, "matchPolicy", MATCH_POLICIES, path)
    for field in ("namespaceSelector", "objectSelector"):
        yield from validate_label_selector(match.get(field), path.child(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(match.get(field) or ()):
            yield from _named_rule(rule, path.child(field).at(at))


def _named_rule(rule: Raw, path: Path) -> Iterator[FieldError]:
    resource_names: Sequence[str] = rule.get("resourceNames") or ()
    again = repeated(resource_names)
    for at, name in enumerate(resource_names):
        there = path.child("resourceNames").at(at)
        for problem in name_formats.path_segment_name(name):
            yield invalid(there, name, problem)
        if at in again:
            yield duplicate(there, name)
    yield from rule_errors(rule, path)


def rule_errors(rule: Raw, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of a rule for operations and resources."""
    operations = rule.get("operations") or []
    yield from _wildcard(operations, path.child("operations"), "operations")
    for at, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(path.child("operations").at(at), operation, _OPERATIONS)
    yield from _wildcard(rule.get("apiGroups") or [], path.child("apiGroups"), "API groups")
    versions = rule.get("apiVersions") or []
    yield from _wildcard(versions, path.child("apiVersions"), "API versions")
    for at, version in enumerate(versions):
        if not version:
            yield required(path.child("apiVersions").at(at))
    yield from _resources(rule.get("resources") or [], path.child("resources"))
    yield from choice_errors(rule, "scope", _SCOPES, path)


def _wildcard(values: Sequence[str], path: Path, what: str) -> Iterator[FieldError]:
    if not values:
        yield required(path)
    elif len(values) > 1 and "*" in values:
        yield invalid(path, list(values), f"if '*' is present, must not specify other {what}")


def _resources(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    every_subresource: set[str] = set()
    of_every_resource: set[str] = set()
    has_plain = False
    for at, each in enumerate(resources):
        resource, slash, subresource = each.partition("/")
        if not each:
            yield required(path.at(at))
        elif not slash:
            has_plain = each != "*"
        else:
            if resource in every_subresource:
                yield invalid(path.at(at), each, f"if '{resource}/*' is present, must not specify {each}")
            if subresource in of_every_resource:
                yield invalid(path.at(at), each, f"if '*/{subresource}' is present, must not specify {each}")
            every_subresource |= {resource} if subresource == "*" else set()
            of_every_resource |= {subresource} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, list(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        words = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, list(resources), words)


def condition_errors(conditions: Sequence[Raw], path: Path, scope: Scope) -> Iterator[FieldError]:
    """Yield the compilation errors of match conditions, which may use the variables of `scope`."""
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    seen: set[str] = set()
    for at, condition in enumerate(conditions):
        name, there = condition.get("name") or "", path.at(at)
        expression = (condition.get("expression") or "").strip()
        if not expression:
            yield required(there.child("expression"))
        else:
            yield from expression_errors(scope, expression, (BOOL,), there.child("expression"))
        if not name:
            yield required(there.child("name"))
            continue
        for problem in name_formats.qualified_name(name):
            yield invalid(there.child("name"), name, problem)
        if name in seen:
            yield duplicate(there.child("name"), name)
        seen.add(name)

"""The defaults and the validation of ValidatingAdmissionPolicies and MutatingAdmissionPolicies.

Guarantees: the CEL expressions of a stored policy compile.

Source: Kubernetes `pkg/apis/admissionregistration/validation/validation.go` and `v1/defaults.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.expressions.types import BOOL, NULL, STRING, Type, list_of
from ctrlmgr.extensions.paths.json_path import JSONPath, JSONPathError
from ctrlmgr.kinds.admissionregistration.expression_variables import (
    JSON_PATCH,
    OBJECT,
    Scope,
    Scopes,
    expression_errors,
)
from ctrlmgr.kinds.admissionregistration.match_rules import (
    FAILURE_POLICIES,
    REINVOCATIONS,
    Raw,
    choice_errors,
    condition_errors,
    default_match,
    match_errors,
)
from ctrlmgr.kinds.spec_difference import shown

_SPEC = Path("spec")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE_EXPRESSION: Final = 5 * 1024
_PATCHES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_RESULTS: Final = {"ApplyConfiguration": OBJECT, "JSONPatch": list_of(JSON_PATCH)}
_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_is_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_breaks_line = re.compile(r"[\n\r]").search


class PolicyStrategy(Strategy):
    """The common part of the strategies of ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True
    compares_metadata = False

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the failure policy and of the match constraints."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if spec.get("matchConstraints") is not None:
            default_match(spec["matchConstraints"])

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the whole policy, including its expressions."""
        if ctx.subresource:
            return []
        spec: Raw = obj.get("spec") or {}
        scopes = Scopes.of(spec)
        errors = [*_head_errors(spec), *self.match_errors(spec)]
        if ctx.old is None or _is_matched_anew(spec, ctx.old.get("spec") or {}):
            conditions = spec.get("matchConditions") or ()
            errors += condition_errors(conditions, _SPEC.child("matchConditions"), scopes.conditions)
        for at, variable in enumerate(spec.get("variables") or ()):
            errors += _variable_errors(variable, _SPEC.child("variables").at(at), scopes.variables[at])
        return [*errors, *self.own_errors(obj, spec, scopes)]

    def match_errors(self, spec: Raw) -> Iterator[FieldError]:
        """Yield the validation errors of the policy's match constraints."""
        match = spec.get("matchConstraints")
        if match is None:
            yield required(_SPEC.child("matchConstraints"))
            return
        yield from match_errors(match, _SPEC.child("matchConstraints"))
        if not match.get("resourceRules"):
            yield required(_SPEC.child("matchConstraints", "resourceRules"))

    def own_errors(self, obj: Unstructured, spec: Raw, scopes: Scopes) -> Iterator[FieldError]:
        """Yield the validation errors of the fields that only one of the two kinds of policies has."""
        raise NotImplementedError


class ValidatingPolicyStrategy(PolicyStrategy):
    """The strategy of the kind admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy."""

    status_keeps = METADATA

    def own_errors(self, obj: Unstructured, spec: Raw, scopes: Scopes) -> Iterator[FieldError]:
        """Validate the fields `validations` and `auditAnnotations`."""
        validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
        if not validations and not annotations:
            for field in ("validations", "auditAnnotations"):
                yield required(_SPEC.child(field), "validations or auditAnnotations must contain at least one item")
        for at, validation in enumerate(validations):
            yield from _validation_errors(validation, _SPEC.child("validations").at(at), scopes)
        yield from _annotation_errors(annotations, (obj.get("metadata") or {}).get("name") or "", scopes)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the status of the policy."""
        if not ctx.subresource:
            return []
        status, path = new.get("status") or {}, Path("status")
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
        at = path.child("typeChecking", "expressionWarnings")
        errors = [error for index, each in enumerate(warnings) for error in _warning_errors(each, at.at(index))]
        return errors + validate_conditions(status.get("conditions") or (), path.child("conditions"))


class MutatingPolicyStrategy(PolicyStrategy):
    """The strategy of the kind admissionregistration.k8s.io/v1 MutatingAdmissionPolicy."""

    def match_errors(self, spec: Raw) -> Iterator[FieldError]:
        """Yield the errors of the base class, and an error for each operation, such as CONNECT, that has no object."""
        yield from super().match_errors(spec)
        yield from mutating_operation_errors(spec.get("matchConstraints") or {}, _SPEC.child("matchConstraints"))

    def own_errors(self, obj: Unstructured, spec: Raw, scopes: Scopes) -> Iterator[FieldError]:
        """Validate the mutations and the reinvocation policy."""
        mutations = spec.get("mutations") or ()
        if not mutations:
            yield required(_SPEC.child("mutations"), "mutations must contain at least one item")
        for at, mutation in enumerate(mutations):
            yield from _mutation_errors(mutation, _SPEC.child("mutations").at(at), scopes.mutations)
        if not spec.get("reinvocationPolicy"):
            yield required(_SPEC.child("reinvocationPolicy"))
        else:
            yield from choice_errors(spec, "reinvocationPolicy", REINVOCATIONS, _SPEC)


def mutating_operation_errors(match: Raw, path: Path) -> Iterator[FieldError]:
    """Yield errors for operations such as CONNECT that have no object to change.

    As in Kubernetes, the path of an error in an expression contains no index.
    """
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTATING_OPERATIONS:
                yield not_supported(path.child("resourceRules", "operations"), operation, _MUTATING_OPERATIONS)


def _head_errors(spec: Raw) -> Iterator[FieldError]:
    yield from choice_errors(spec, "failurePolicy", FAILURE_POLICIES, _SPEC)
    if spec.get("paramKind") is not None:
        yield from _param_kind_errors(spec["paramKind"], _SPEC.child("paramKind"))


def _is_matched_anew(spec: Raw, before: Raw) -> bool:
    """Return whether an update requires that the match conditions are validated again."""
    return any(spec.get(field) != before.get(field) for field in ("paramKind", "matchConditions"))


def _warning_errors(warning: Raw, path: Path) -> Iterator[FieldError]:
    if not warning.get("warning"):
        yield required(path.child("warning"))
    text, at = (warning.get("fieldRef") or "").strip(), path.child("fieldRef")
    if not text:
        yield required(at)
        return
    try:
        JSONPath(text)
    except JSONPathError as error:
        yield invalid(at, text, f"invalid JSONPath: {error}")


def _param_kind_errors(kind: Raw, path: Path) -> Iterator[FieldError]:
    yield from _api_version_errors(kind.get("apiVersion") or "", path.child("apiVersion"))
    name, at = kind.get("kind") or "", path.child("kind")
    if not name:
        yield required(at)
    elif problems := name_formats.dns1035_label(name.lower()):
        yield invalid(at, name, "may have mixed case, but should otherwise match: " + ",".join(problems))


def _api_version_errors(text: str, path: Path) -> Iterator[FieldError]:
    if not text:
        yield required(path)
        return
    if text.count("/") > 1:
        yield invalid(path, text, f"unexpected GroupVersion string: {text}")
        return
    group, _, version = text.rpartition("/")
    if group and (problems := name_formats.dns1123_subdomain(group)):
        yield invalid(path, group, ",".join(problems))
    if not version:
        yield invalid(path, text, "version must be specified")
    elif problems := name_formats.dns1035_label(version):
        yield invalid(path, version, ",".join(problems))


def _variable_errors(variable: Raw, path: Path, scope: Scope) -> Iterator[FieldError]:
    name = variable.get("name") or ""
    if not name.strip():
        yield required(path.child("name"), "name is not specified")
    elif not _is_identifier(name) or name in _RESERVED:
        yield invalid(path.child("name"), name, "must be a valid CEL identifier")
    yield from _expression_errors(variable.get("expression") or "", path.child("expression"), scope, ())


def _expression_errors(text: str, path: Path, scope: Scope, expected: Sequence[Type]) -> Iterator[FieldError]:
    if not text.strip():
        yield required(path, "expression is not specified")
    else:
        yield from expression_errors(scope, text, expected, path)


def _validation_errors(validation: Raw, path: Path, scopes: Scopes) -> Iterator[FieldError]:
    yield from _expression_errors(validation.get("expression") or "", path.child("expression"), scopes.rules, (BOOL,))
    for field in ("messageExpression", "message"):
        text: str = validation.get(field) or ""
        if text and not text.strip():
            yield invalid(path.child(field), text, "must be non-empty if specified")
        elif text and field == "messageExpression":
            yield from expression_errors(scopes.messages, text, (STRING,), path.child(field))
        elif field == "message" and _breaks_line(text.strip()):
            yield invalid(path.child(field), text, "must not contain line breaks")
    yield from choice_errors(validation, "reason", _REASONS, path)


def _annotation_errors(annotations: Sequence[Raw], policy: str, scopes: Scopes) -> Iterator[FieldError]:
    path = _SPEC.child("auditAnnotations")
    if len(annotations) > _MOST_ANNOTATIONS:
        words = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield invalid(path, [shown("AuditAnnotation", each) for each in annotations], words)
    seen: set[str] = set()
    for at, annotation in enumerate(annotations):
        key, there = annotation.get("key") or "", path.at(at)
        if not policy:
            yield invalid(there.child("key"), key, "requires metadata.name be non-empty")
        for problem in name_formats.qualified_name(f"{policy}/{key}") if policy else ():
            yield invalid(there.child("key"), f"{policy}/{key}", problem)
        value = annotation.get("valueExpression") or ""
        yield from _value_expression_errors(value, there.child("valueExpression"), scopes.rules)
        if key in seen:
            yield duplicate(there.child("key"), key)
        seen.add(key)


def _value_expression_errors(text: str, path: Path, scope: Scope) -> Iterator[FieldError]:
    if not text.strip():
        yield required(path, "valueExpression is not specified")
    elif len(text.strip().encode()) > _LONGEST_VALUE_EXPRESSION:
        yield required(path, f"must not exceed {_LONGEST_VALUE_EXPRESSION} bytes in length")
    else:
        yield from expression_errors(scope, text.strip(), (STRING, NULL), path, shown_as=text)


def _mutation_errors(mutation: Raw, path: Path, scope: Scope) -> Iterator[FieldError]:
    patch_type = mutation.get("patchType") or ""
    if not patch_type:
        yield required(path.child("patchType"))
        return
    if patch_type not in _PATCHES:
        yield not_supported(path.child("patchType"), patch_type, sorted(_PATCHES))
        return
    for name, field in sorted(_PATCHES.items(), key=lambda each: each[0] != patch_type):
        patch: Any = mutation.get(field)
        if name != patch_type:
            if patch is not None:
                yield invalid(
                    path.child(field), f"{{{field}}}", f"must not be specified when patchType is {patch_type}"
                )
        elif patch is None:
            yield required(path.child(field), f"must be specified when patchType is {patch_type}")
        elif expression := (patch.get("expression") or "").strip():
            yield from expression_errors(scope, expression, (_RESULTS[name],), path.child(field, "expression"))
        else:
            yield required(path.child(field, "expression"))

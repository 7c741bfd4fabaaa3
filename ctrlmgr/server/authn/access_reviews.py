"""Validates the spec of an access review, and converts the spec to the attributes of a request.

Guarantees: the server ignores a selector, or a term of a selector, that it cannot parse. An ignored selector means that
the review asks about more requests, never about fewer. The review's status contains the error (`evaluationError`). The
server refuses a selector of more than `MOST_REQUIREMENTS` requirements before it parses any requirement.

Source: `pkg/apis/authorization/validation/validation.go`, `pkg/registry/authorization/util/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required, too_many
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.authorization.attributes import Attributes, Requirement, path_attributes
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.selectors.label_selector_lexer import MOST_REQUIREMENTS
from ctrlmgr.engine.selectors.requirements import field_requirements, label_requirements
from ctrlmgr.engine.validation.label_validation import validate_requirement
from ctrlmgr.errors import BadRequest

_SPEC = Path("spec")
_RESOURCE = _SPEC.child("resourceAttributes")
_PATH = _SPEC.child("nonResourceAttributes")
_FIELDS = ("group", "version", "resource", "subresource", "namespace", "name")


def review_errors(review: Unstructured, *, names_user: bool, namespace: str | None) -> list[FieldError]:
    """Return the validation errors of an access review.

    `names_user` is True if the review's spec contains a user. `namespace` is the namespace in the URL path; only a
    LocalSubjectAccessReview has a namespace in its path.
    """
    spec = review.get("spec") or {}
    errors = _spec_errors(spec, names_user=names_user)
    metadata = {field: value for field, value in metadata_of(review).items() if value and field != "managedFields"}
    metadata.pop("namespace", None)
    if metadata:
        detail = "must be empty" if namespace is None else "must be empty except for namespace"
        errors.append(invalid(Path("metadata"), metadata_of(review), detail))
    return errors if namespace is None else errors + _local_errors(spec, namespace)


class RequestedAccess(NamedTuple):
    """The attributes of the request about which an access review asks."""

    attributes: Attributes
    problems: tuple[str, ...] = ()
    """Kubernetes' error messages for the selectors that could not be parsed."""


def asked_in(spec: Mapping[str, Any]) -> RequestedAccess:
    """Return the attributes of the request about which a review asks; the spec of the review must be valid."""
    resource_attributes = spec.get("resourceAttributes")
    if resource_attributes is None:
        path = spec.get("nonResourceAttributes") or {}
        return RequestedAccess(path_attributes(path.get("verb") or "", path.get("path") or ""))
    place: dict[str, Any] = {field: resource_attributes.get(field) or "" for field in _FIELDS}
    place["version"] = place["version"] or "*"
    fields, labels = (
        _fields(resource_attributes.get("fieldSelector") or {}),
        _labels(resource_attributes.get("labelSelector") or {}),
    )
    problems = (*fields.problem("fieldSelector"), *labels.problem("labelSelector"))
    return RequestedAccess(
        Attributes(resource_attributes.get("verb") or "", fields=fields.terms, labels=labels.terms, **place), problems
    )


def _spec_errors(spec: Mapping[str, Any], *, names_user: bool) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if resource is not None and path is not None:
        errors.append(invalid(_PATH, path, "cannot be specified in combination with resourceAttributes"))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid(_RESOURCE, None, detail))
    if names_user and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid(_SPEC.child("user"), "", "at least one of user or group must be specified"))
    for selector in ("fieldSelector", "labelSelector"):
        if (given := (resource or {}).get(selector)) is not None:
            errors += _selector_errors(given, _RESOURCE.child(selector), is_of_labels=selector == "labelSelector")
    return errors


def _local_errors(spec: Mapping[str, Any], namespace: str) -> list[FieldError]:
    errors: list[FieldError] = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and (requested := resource.get("namespace") or "") != namespace:
        errors.append(invalid(_RESOURCE.child("namespace"), requested, "must match metadata.namespace"))
    if path is not None:
        errors.append(invalid(_PATH, path, "disallowed on this kind of request"))
    return errors


def _selector_errors(selector: Mapping[str, Any], path: Path, *, is_of_labels: bool) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or ()
    if len(requirements) > MOST_REQUIREMENTS:
        return [too_many(path.child("requirements"), len(requirements), MOST_REQUIREMENTS)]
    errors: list[FieldError] = []
    if raw and requirements:
        errors.append(invalid(path.child("rawSelector"), raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(path.child("requirements"), detail))
    for index, requirement in enumerate(requirements):
        below = path.child("requirements").at(index)
        if is_of_labels:
            errors += validate_requirement(requirement, below, unknown_operator_allowed=True)
        else:
            errors += _field_errors(requirement, below)
    return errors


def _field_errors(requirement: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate one term of a field selector. An unknown operator in the term is not an error."""
    errors = [] if requirement.get("key") else [required(path.child("key"), "must be specified")]
    values, below = requirement.get("values"), path.child("values")
    match requirement.get("operator"):
        case "In" | "NotIn" if not values:
            errors.append(required(below, "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist" if values:
            errors.append(forbidden(below, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    return errors


class _Terms(NamedTuple):
    """The parsed terms of a selector."""

    terms: tuple[Requirement, ...]
    is_whole: bool = True

    def problem(self, selector: str) -> tuple[str, ...]:
        """Return the error message for terms of a selector that could not be parsed; empty if all terms were parsed."""
        if self.is_whole:
            return ()
        part = "partially " if self.terms else ""
        return (f"spec.resourceAttributes.{selector} {part}ignored due to parse error",)


def _fields(selector: Mapping[str, Any]) -> _Terms:
    if raw := selector.get("rawSelector"):
        try:
            return _Terms(field_requirements(FieldSelector.parse(raw)))
        except BadRequest:
            return _Terms((), is_whole=False)
    return _understood(selector, _is_field_term)


def _labels(selector: Mapping[str, Any]) -> _Terms:
    if raw := selector.get("rawSelector"):
        try:
            return _Terms(label_requirements(LabelSelector.parse(raw)))
        except BadRequest:
            return _Terms((), is_whole=False)
    return _understood(selector, lambda term: term.operator in _LABEL_OPERATORS)


_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def _is_field_term(term: Requirement) -> bool:
    """Return whether a term of a field selector is valid: a valid term compares the field with a single value."""
    return term.operator in ("In", "NotIn") and len(term.values) == 1


def _understood(selector: Mapping[str, Any], is_known: Callable[[Requirement], bool]) -> _Terms:
    requirements = [
        Requirement(each.get("key") or "", each.get("operator") or "", tuple(each.get("values") or ()))
        for each in selector.get("requirements") or ()
    ]
    known = tuple(filter(is_known, requirements))
    return _Terms(known, is_whole=len(known) == len(requirements))

"""Bindings of admission policies; each binding selects a policy, its parameters, the matching requests, and actions.

Source: Kubernetes `pkg/apis/admissionregistration/validation/validation.go` and `v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, repeated
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.kinds.admissionregistration.admission_policies import mutating_operation_errors
from ctrlmgr.kinds.admissionregistration.match_rules import Raw, default_match, match_errors

_SPEC = Path("spec")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
_TWICE_TOLD: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and"
    " headers serves no purpose)"
)


class BindingStrategy(Strategy):
    """The strategy of ValidatingAdmissionPolicyBindings and MutatingAdmissionPolicyBindings."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True
    compares_metadata = False

    def __init__(self, *, mutates: bool) -> None:
        """Create the strategy of one of the two kinds; `mutates` is true for MutatingAdmissionPolicyBinding."""
        self._mutates = mutates

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of `matchResources`."""
        match = (obj.get("spec") or {}).get("matchResources")
        if match is not None:
            default_match(match)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the names, the parameters, the matching requests, and the actions."""
        spec: Raw = obj.get("spec") or {}
        errors = [*_policy_errors(spec.get("policyName") or ""), *_param_errors(spec.get("paramRef"))]
        match = spec.get("matchResources")
        if match is not None:
            errors += match_errors(match, _SPEC.child("matchResources"))
        if self._mutates:
            return [*errors, *mutating_operation_errors(match or {}, _SPEC.child("matchResources"))]
        return [*errors, *_action_errors(spec.get("validationActions") or ())]


def _policy_errors(name: str) -> Iterator[FieldError]:
    path = _SPEC.child("policyName")
    if not name:
        yield required(path)
    for problem in name_formats.subdomain_name(name) if name else ():
        yield invalid(path, name, problem)


def _param_errors(reference: Raw | None) -> Iterator[FieldError]:
    if reference is None:
        return
    path = _SPEC.child("paramRef")
    name, selector = reference.get("name") or "", reference.get("selector")
    for problem in name_formats.path_segment_name(name) if name else ():
        yield invalid(path.child("name"), name, problem)
    if name and selector is not None:
        yield forbidden(path.child("name"), "name and selector are mutually exclusive")
    yield from validate_label_selector(selector, path.child("selector"))
    if name and selector is not None:
        yield forbidden(path.child("selector"), "name and selector are mutually exclusive")
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(path.child("parameterNotFoundAction"))
    elif action not in _NOT_FOUND_ACTIONS:
        yield not_supported(path.child("parameterNotFoundAction"), action, _NOT_FOUND_ACTIONS)


def _action_errors(actions: Sequence[str]) -> Iterator[FieldError]:
    path = _SPEC.child("validationActions")
    again = repeated(actions)
    for at, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(path.at(at), action, _ACTIONS)
        if at in again:
            yield duplicate(path.at(at), action)
    if "Deny" in actions and "Warn" in actions:
        yield invalid(path, list(actions), _TWICE_TOLD)
    if not actions:
        yield required(path, "at least one validation action is required")

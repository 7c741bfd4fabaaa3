"""Validating policies: compiles a policy, and evaluates it for a write.

Guarantees: the message of a failure is the first of these that exists: the result of the validation's message
expression, the validation's message, or the text of its expression. An expression that raises an error counts as a
failed validation, unless the failure policy is Ignore.

Source: apiserver `pkg/admission/plugin/policy/validating/validator.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ctrlmgr.admission.expressions.cel_evaluation import (
    Budget,
    Condition,
    ConditionsFailed,
    OutOfBudget,
    condition_of,
    met,
    value_of,
)
from ctrlmgr.admission.policies.policy_parsing import PolicyBase, base_of
from ctrlmgr.admission.policies.policy_variables import Variables
from ctrlmgr.api.object import Object
from ctrlmgr.expressions.costs import MATCH_LIMIT, TOTAL_LIMIT
from ctrlmgr.expressions.environment import NoValue
from ctrlmgr.expressions.types import BOOL, NULL, STRING
from ctrlmgr.kinds.admissionregistration.expression_variables import Scopes

_LONGEST_MESSAGE: Final = 5 * 1024
_LONGEST_ANNOTATION: Final = 10 * 1024


class Validation(NamedTuple):
    """One validation rule of a policy."""

    rule: Condition
    message: str
    telling: Condition | None
    """The expression whose result is the message of a failure; None if the rule has no message expression."""
    reason: str


@dataclass(frozen=True, slots=True)
class ValidatingPolicy(PolicyBase):
    """A ValidatingAdmissionPolicy."""

    validations: tuple[Validation, ...]
    annotations: tuple[tuple[str, Condition], ...]
    """The key of each audit annotation, with the expression that computes its value."""


class Failure(NamedTuple):
    """The failure of one validation rule of a policy."""

    message: str
    reason: str
    place: int
    """The index of the failed rule in the policy's list of validations."""


class PolicyVerdict(NamedTuple):
    """The result of the evaluation of a policy for a write."""

    failures: Sequence[Failure] = ()
    annotations: Mapping[str, str] = {}
    errors: Sequence[str] = ()
    """The errors of failed expressions for audit annotations. The plugin refuses the write if there is such an error.
    """


def read_validating(obj: Object) -> ValidatingPolicy:
    """Compile an admission policy from its object.

    An expression that does not compile fails when it is evaluated.
    """
    spec = obj.to_dict().get("spec") or {}
    scopes = Scopes.of(spec)
    validations = tuple(_validation(each, scopes) for each in spec.get("validations") or ())
    annotations = tuple(
        (
            each.get("key") or "",
            condition_of(
                {"expression": each.get("valueExpression")}, lambda text: scopes.rules.compile(text, (STRING, NULL))
            ),
        )
        for each in spec.get("auditAnnotations") or ()
    )
    return ValidatingPolicy(**base_of(obj, spec, scopes), validations=validations, annotations=annotations)


def _validation(fields: Mapping[str, Any], scopes: Scopes) -> Validation:
    telling = fields.get("messageExpression")
    return Validation(
        condition_of(fields, scopes.rules.compiler(BOOL)),
        (fields.get("message") or "").strip(),
        condition_of({"expression": telling}, scopes.messages.compiler(STRING)) if telling else None,
        fields.get("reason") or "",
    )


def opinion(policy: ValidatingPolicy, seen: Mapping[str, Any]) -> PolicyVerdict:
    """Return the result of a policy for a write.

    `seen` contains the variables of the policy's expressions, including `params`.
    """
    try:
        if not met(policy.conditions, seen, Budget(MATCH_LIMIT), fails_open=policy.fails_open):
            return PolicyVerdict()
    except ConditionsFailed as problem:
        return PolicyVerdict([Failure(str(problem), "", 0)])
    budget = Budget(TOTAL_LIMIT)
    variables = {**seen, "variables": Variables(policy.variables, seen, budget)}
    try:
        failures = _failures(policy, variables, budget)
    except OutOfBudget as problem:
        return PolicyVerdict() if policy.fails_open else PolicyVerdict([Failure(str(problem), "", 0)])
    return _annotated(policy, seen, failures)


def _failures(policy: ValidatingPolicy, seen: Mapping[str, Any], budget: Budget) -> list[Failure]:
    failures: list[Failure] = []
    for index, validation in enumerate(policy.validations):
        try:
            if value_of(validation.rule, seen, budget) is not True:
                failures.append(Failure(_message(validation, seen, budget), validation.reason, index))
        except NoValue as error:
            if not policy.fails_open:
                failures.append(Failure(str(error), "", index))
    return failures


def _message(validation: Validation, seen: Mapping[str, Any], budget: Budget) -> str:
    message = ""
    if validation.telling is not None:
        try:
            message = str(value_of(validation.telling, seen, budget) or "").strip()
        except NoValue:
            message = ""
    if not message or len(message.encode()) > _LONGEST_MESSAGE or "\n" in message:
        message = validation.message
    return message or f"failed expression: {validation.rule.source.strip()}"


def _annotated(policy: ValidatingPolicy, seen: Mapping[str, Any], failures: Sequence[Failure]) -> PolicyVerdict:
    budget = Budget(TOTAL_LIMIT)
    variables = {**seen, "variables": Variables(policy.variables, seen, budget)}
    annotations: dict[str, str] = {}
    errors: list[str] = []
    for key, expression in policy.annotations:
        try:
            value = value_of(expression, variables, budget)
        except NoValue as error:
            errors += [] if policy.fails_open else [str(error)]
            continue
        except OutOfBudget as problem:
            return PolicyVerdict() if policy.fails_open else PolicyVerdict([Failure(str(problem), "", 0)])
        if value and value.strip():
            annotations[key] = value.strip().encode()[:_LONGEST_ANNOTATION].decode(errors="ignore")
    return PolicyVerdict(failures, annotations, errors)

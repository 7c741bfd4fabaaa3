"""ValidatingAdmissionPolicy: validates writes with CEL expressions and the parameter objects that bindings name.

Guarantees: every matching policy and binding is evaluated. If there are several denials, the response contains the
first denial. If a policy is misconfigured, it denies the write, unless its failure policy is Ignore. Policies do not
apply to writes of admission policies and their bindings.

Rules come from apiserver's `pkg/admission/plugin/policy/validating/dispatcher.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.admission.expressions.authorizer_expressions import answering
from ctrlmgr.admission.expressions.inputs import Input, input_of, with_namespace
from ctrlmgr.admission.policies.policy_matching import (
    GROUP,
    UNCONFIGURED,
    PolicyKinds,
    concern_of,
    is_policy,
    parameters,
)
from ctrlmgr.admission.policies.policy_parsing import Binding, Bound, Policies
from ctrlmgr.admission.policies.policy_validation import PolicyVerdict, ValidatingPolicy, opinion, read_validating
from ctrlmgr.admission.webhooks.webhook_dispatcher import compact
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import ApiError, Forbidden, StatusCause
from ctrlmgr.expressions.library.authorizing import Ask
from ctrlmgr.golang.go_text import escape_html

POLICIES: Final = Resource(GROUP, "validatingadmissionpolicies")
BINDINGS: Final = Resource(GROUP, "validatingadmissionpolicybindings")
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"


class _Denial(NamedTuple):
    """The reason why a write is denied."""

    policy: str
    binding: str
    """The name of the binding that denied the write; empty if the policy itself is misconfigured."""
    message: str
    reason: str = ""


class ValidatingAdmissionPolicy(Plugin):
    """Evaluates ValidatingAdmissionPolicies."""

    name: ClassVar[str] = "ValidatingAdmissionPolicy"
    activated_by = Registration(BINDINGS)

    def __init__(self, kinds: Kinds, authorizer: Authorizer) -> None:
        """Create the admission plugin.

        The plugin converts objects between the versions of `kinds`, and its expressions query `authorizer`.
        """
        self._kinds = kinds
        self._authorizer = authorizer
        self._policies = Policies(POLICIES, BINDINGS, read_validating)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all writes.

        Policies may be created at any time, so the plugin handles writes even if no policy exists.
        """
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the plugin needs the object.

        Writes of policies and bindings need no object, because no policy applies to them.
        """
        return not is_policy(attributes)

    def validate(self, attributes: Attributes) -> Decision:
        """Evaluate the validating policies that match the write."""
        if is_policy(attributes):
            return None
        return self._ask(attributes)

    def _ask(self, attributes: Attributes) -> Operation[None]:
        denials: list[_Denial] = []
        for bound in self._policies.found(attributes.view):
            denials += yield from self._ask_policy(attributes, bound)
        if denials:
            raise _refusal(attributes, denials[0])

    def _ask_policy(self, attributes: Attributes, bound: Bound[ValidatingPolicy]) -> Operation[list[_Denial]]:
        policy = bound.policy
        try:
            concern = concern_of(policy, attributes, self._kinds)
        except UNCONFIGURED as problem:
            return [] if policy.fails_open else [_Denial(policy.name, "", f"failed to configure policy: {problem}")]
        if concern is None:
            return []
        asking = _PolicyEvaluation(attributes, policy, concern, self._kinds, self._authorizer)
        denials: list[_Denial] = []
        for binding in bound.bindings:
            try:
                denials += yield from asking.ask(binding)
            except UNCONFIGURED as problem:
                if not policy.fails_open:
                    denials.append(_Denial(policy.name, binding.name, f"failed to configure binding: {problem}"))
        for key, values in asking.annotations.items():
            attributes.annotations.setdefault(f"{policy.name}/{key}", ", ".join(values))
        return denials


class _PolicyEvaluation:
    """The evaluation of one policy for one write."""

    def __init__(
        self,
        attributes: Attributes,
        policy: ValidatingPolicy,
        concern: PolicyKinds,
        kinds: Kinds,
        authorizer: Authorizer,
    ) -> None:
        self._attributes, self._policy, self._concern = attributes, policy, concern
        self._kinds, self._authorizer = kinds, authorizer
        self._input: Input | None = None
        self.annotations: dict[str, list[str]] = {}

    def ask(self, binding: Binding) -> Operation[list[_Denial]]:
        """Return the denials of a write by one policy binding.

        Raises one of the errors in `UNCONFIGURED` if the binding is misconfigured.
        """
        found = yield from parameters(binding, self._concern, self._attributes, self._kinds)
        opinions: list[PolicyVerdict] = []
        for each in found:
            if self._input is None:
                self._input = with_namespace((yield from input_of(self._attributes, self._concern.kind, self._kinds)))
            opinions += [(yield from self._opinion(self._input, each))]
        return self._denials(binding, opinions)

    def _opinion(self, seen: Input, params: Unstructured | None) -> Operation[PolicyVerdict]:
        def compute(ask: Ask) -> PolicyVerdict:
            return opinion(self._policy, seen.variables(ask, params=params))

        return (yield from answering(compute, self._authorizer, self._attributes))

    def _denials(self, binding: Binding, opinions: Sequence[PolicyVerdict]) -> list[_Denial]:
        """Apply the binding's actions to the failures: deny, warn or audit."""
        policy, denials, noted = self._policy.name, list[_Denial](), list[Mapping[str, Any]]()
        for each in opinions:
            for failure in each.failures:
                if "Deny" in binding.actions:
                    denials.append(_Denial(policy, binding.name, failure.message, failure.reason))
                if "Warn" in binding.actions:
                    where = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}'"
                    self._attributes.warnings.append(f"Validation failed for {where}: {failure.message}")
                if "Audit" in binding.actions:
                    noted.append(_noted(policy, binding, failure.message, failure.place))
            denials += [_Denial(policy, binding.name, error) for error in each.errors]
            for key, value in each.annotations.items():
                values = self.annotations.setdefault(key, [])
                values += [value] if value not in values else []
        if noted:
            self._attributes.annotations.setdefault(_FAILURES, escape_html(compact(noted[:1]).encode()).decode())
        return denials


def _noted(policy: str, binding: Binding, message: str, index: int) -> Mapping[str, Any]:
    return {
        "message": message,
        "policy": policy,
        "binding": binding.name,
        "expressionIndex": index,
        "validationActions": list(binding.actions),
    }


def _refusal(attributes: Attributes, denial: _Denial) -> ApiError:
    by = f"ValidatingAdmissionPolicy '{denial.policy}'"
    by += f" with binding '{denial.binding}'" if denial.binding else ""
    message = f"{by} denied request: {denial.message}"
    error: Forbidden = attributes.forbidden(message, StatusCause("", message))
    error.reason = denial.reason or "Invalid"
    error.code = _CODES.get(error.reason, 422)
    return error

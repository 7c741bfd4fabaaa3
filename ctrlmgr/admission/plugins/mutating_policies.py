"""MutatingAdmissionPolicy: changes objects before they are written, with CEL expressions.

Guarantees: each mutation sees the object with the changes of the mutations before it. If a policy changes the object,
the plugins before MutatingAdmissionPolicy are called again, and policies with the reinvocation policy IfNeeded are
evaluated again. Policies do not apply to writes of admission policies and their bindings.

Rules come from apiserver's `pkg/admission/plugin/policy/mutating/dispatcher.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.admission.expressions.authorizer_expressions import answering
from ctrlmgr.admission.expressions.cel_evaluation import Budget, ConditionsFailed, OutOfBudget, met
from ctrlmgr.admission.expressions.inputs import Input, input_of, with_namespace
from ctrlmgr.admission.policies.policy_matching import (
    GROUP,
    UNCONFIGURED,
    PolicyKinds,
    concern_of,
    is_policy,
    parameters,
)
from ctrlmgr.admission.policies.policy_mutation import MutatingPolicy, Mutation, NotApplied, mutated, read_mutating
from ctrlmgr.admission.policies.policy_parsing import Binding, Bound, Policies
from ctrlmgr.admission.reinvocation import Rounds
from ctrlmgr.admission.storage_conversion import stored
from ctrlmgr.admission.webhooks.review import shown
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Changer, Verb
from ctrlmgr.engine.api_errors import forbidden
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import ApiError, Forbidden, InternalError, StatusCause, StatusDetails
from ctrlmgr.expressions.costs import MATCH_LIMIT
from ctrlmgr.expressions.environment import NoValue
from ctrlmgr.expressions.library.authorizing import Ask

MUTATING_POLICIES: Final = Resource(GROUP, "mutatingadmissionpolicies")
MUTATING_BINDINGS: Final = Resource(GROUP, "mutatingadmissionpolicybindings")
_UNREADABLE: Final = " cannot be handled as a "
_PROBLEMS: Final = (NoValue, OutOfBudget, NotApplied, ConditionsFailed)


class MutatingAdmissionPolicy(Plugin):
    """Applies MutatingAdmissionPolicies."""

    name: ClassVar[str] = "MutatingAdmissionPolicy"
    activated_by = Registration(MUTATING_BINDINGS)

    def __init__(self, kinds: Kinds, authorizer: Authorizer) -> None:
        """Create the admission plugin.

        The plugin converts objects between the versions of `kinds`, and its expressions query `authorizer`.
        """
        self._kinds = kinds
        self._authorizer = authorizer
        self._policies = Policies(MUTATING_POLICIES, MUTATING_BINDINGS, read_mutating)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: all writes except deletions.

        Policies may be created at any time, so the plugin handles writes even if no policy exists.
        """
        return operation is not Verb.DELETE

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the plugin needs the object.

        Writes of policies and bindings need no object, because no policy applies to them.
        """
        return not is_policy(attributes)

    def admit(self, attributes: Attributes) -> Decision:
        """Apply the matching mutating policies to the object."""
        if is_policy(attributes) or attributes.object is None:
            return None
        return self._ask(attributes)

    def _ask(self, attributes: Attributes) -> Operation[None]:
        rounds: Rounds = attributes.memory.setdefault(self.name, Rounds())
        if attributes.is_reinvocation and rounds.output != self._shown(attributes):
            rounds.require()
        for bound in self._policies.found(attributes.view):
            yield from self._ask_policy(attributes, bound, rounds)
        rounds.output = self._shown(attributes)

    def _shown(self, attributes: Attributes) -> Unstructured | None:
        return shown(attributes, attributes.object, attributes.kind, self._kinds)

    def _ask_policy(self, attributes: Attributes, bound: Bound[MutatingPolicy], rounds: Rounds) -> Operation[None]:
        policy = bound.policy
        try:
            concern = concern_of(policy, attributes, self._kinds)
        except UNCONFIGURED as problem:
            self._fail(attributes, policy, None, f"failed to configure policy: {problem}")
            return
        for binding in bound.bindings if concern is not None else ():
            assert concern is not None  # a binding exists only together with its policy
            yield from self._ask_binding(attributes, policy, binding, concern, rounds)

    def _ask_binding(
        self, attributes: Attributes, policy: MutatingPolicy, binding: Binding, concern: PolicyKinds, rounds: Rounds
    ) -> Operation[None]:
        try:
            found = yield from parameters(binding, concern, attributes, self._kinds)
        except UNCONFIGURED as problem:
            self._fail(attributes, policy, binding, f"failed to configure binding: {problem}")
            return
        for params in found:
            name = f"{policy.name}/{binding.name}/{_name_of(params)}"
            if attributes.is_reinvocation and name not in rounds.again:
                continue
            try:
                changed = yield from self._change(attributes, policy, concern, params)
            except _PROBLEMS as problem:
                self._fail(attributes, policy, binding, str(problem))
                changed = False
            if changed:
                rounds.require()
                attributes.should_reinvoke = True
                attributes.changed_by.append(Changer(f"policy {policy.name}", policy.revision))
            if policy.reinvoked:
                rounds.asked.add(name)

    def _change(
        self, attributes: Attributes, policy: MutatingPolicy, concern: PolicyKinds, params: Unstructured | None
    ) -> Operation[bool]:
        """Apply all mutations of a policy; return whether the mutations changed the object."""
        seen = with_namespace((yield from input_of(attributes, concern.kind, self._kinds)))

        def meets(ask: Ask) -> bool:
            variables = seen.variables(ask, params=params)
            return met(policy.conditions, variables, Budget(MATCH_LIMIT), fails_open=policy.fails_open)

        if not (yield from answering(meets, self._authorizer, attributes)):
            return False
        before = seen.values["object"]
        after = before
        for mutation in policy.mutations:
            after = yield from self._mutate(attributes, policy, mutation, seen, concern, params)
            seen = seen._replace(values={**seen.values, "object": after})
        return bool(after != before)

    def _mutate(
        self,
        attributes: Attributes,
        policy: MutatingPolicy,
        mutation: Mutation,
        seen: Input,
        concern: PolicyKinds,
        params: Unstructured | None,
    ) -> Operation[Unstructured]:
        """Apply one mutation, and return the resulting object."""

        def compute(ask: Ask) -> Unstructured:
            return mutated(policy, mutation, seen.variables(ask, params=params), concern.kind)

        before: Unstructured = seen.values["object"]
        after = yield from answering(compute, self._authorizer, attributes)
        if after == before:
            return before
        try:
            attributes.object = yield from stored(attributes, concern.kind, after, self._kinds)
        except ApiError as problem:
            raise _unreadable(str(problem).partition(_UNREADABLE)[2].partition(": ")[2] or str(problem)) from problem
        now = yield from input_of(attributes, concern.kind, self._kinds)
        changed: Unstructured = now.values["object"]
        return changed

    def _fail(self, attributes: Attributes, policy: MutatingPolicy, binding: Binding | None, problem: str) -> None:
        """Refuse the write by raising an error, unless the failure policy of the policy is Ignore."""
        if not policy.fails_open:
            raise _refusal(attributes, policy, binding, problem)


def _name_of(params: Unstructured | None) -> str:
    metadata = (params or {}).get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _refusal(attributes: Attributes, policy: MutatingPolicy, binding: Binding | None, problem: str) -> Forbidden:
    by = f"policy '{policy.name}'" + (f" with binding '{binding.name}'" if binding is not None else "")
    message = f"{by} denied request: {problem}"
    about: Sequence[StatusCause] = (StatusCause("", message),)
    details = forbidden(attributes.resource, attributes.called(), "").details
    error = Forbidden(message, details=details._replace(causes=tuple(about)) if details is not None else None)
    error.reason = "Invalid"
    return error


def _unreadable(problem: str) -> InternalError:
    details = StatusDetails(causes=(StatusCause(message=problem),))
    return InternalError(f"Internal error occurred: {problem}", details=details)

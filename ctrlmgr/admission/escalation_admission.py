"""Prevents privilege escalation: checks rights that depend on the object of a write, such as a role's rules.

Guarantees:
- A user can create, change or bind a role only if the user already has all rights of the role in the same scope. The
  rule does not apply if the user has the right to `escalate` or `bind` that role. The check uses the object after
  mutating admission.
- A request to update or apply creates a missing object only if the user may create it.
- The checks against privilege escalation are not a plugin, so they cannot be disabled. Only members of the group
  `system:masters` are exempt.

Source: `pkg/registry/rbac/*/policybased/storage.go`, apiserver `pkg/endpoints/handlers/create.go`
(`withAuthorization`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.rbac.escalation import (
    EVERYTHING,
    changes_only_for_collection,
    excess,
    referenced_rules,
    right_to_bind,
    rules_of,
)
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.authorization.rbac.rule_resolver import CLUSTER_ROLES, GROUP, ROLES, RbacIndex
from ctrlmgr.engine.admission_attributes import Admission, Attributes, Verb
from ctrlmgr.engine.api_errors import forbidden
from ctrlmgr.engine.operations import Operation

_WRITES: Final = (Verb.CREATE, Verb.UPDATE)


class GuardedRights:
    """An admission that first checks for privilege escalation, and then calls another admission."""

    def __init__(self, admission: Admission, authorizer: Authorizer, index: RbacIndex) -> None:
        """Check rights with `authorizer`, reading the rights of users from `index`.

        The other admission, `admission`, makes all other decisions.
        """
        self._admission = admission
        self._authorizer = authorizer
        self._index = index

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether this admission or the wrapped admission handles writes of this kind."""
        grants = resource.group == GROUP and operation in _WRITES
        return grants or self._admission.handles(resource, subresource, operation)

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether this admission or the wrapped admission needs the object of the write."""
        return attributes.resource.group == GROUP or self._admission.wants_object(attributes)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Run mutating admission; raises `Forbidden` if the object grants rights that the user does not have."""
        if attributes.resource.group != GROUP or attributes.operation not in _WRITES:
            return self._admission.admit(attributes)
        return self._admit_grant(attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Run validating admission.

        Raises `Forbidden` if the user may not create the object that an update or apply would create.
        """
        if not attributes.upserts:
            return self._admission.validate(attributes)
        return self._validate_upsert(attributes)

    def _admit_grant(self, attributes: Attributes) -> Operation[None]:
        yield from self._admission.admit(attributes)
        user = author_of(attributes)
        old = attributes.old
        if MASTERS in user.groups or (old is not None and changes_only_for_collection(attributes.fields, old)):
            return
        if attributes.resource in (ROLES, CLUSTER_ROLES):
            yield from self._check_role(attributes, user)
        else:
            yield from self._check_binding(attributes, user)

    def _check_role(self, attributes: Attributes, user: User) -> Operation[None]:
        resource, role = attributes.resource, attributes.fields
        name = attributes.name if attributes.operation is Verb.UPDATE or attributes.upserts else ""
        escalate = asked.Attributes(
            "escalate", "", resource.group, "*", resource.plural, "", attributes.namespace, name
        )
        if (yield from verdict_of(self._authorizer, user, escalate)).allows:
            return
        self._refuse_excess(attributes, user, rules_of(role))
        gathers = _gathers(role) or _gathers(attributes.old)
        if gathers and excess(self._index, user, attributes.namespace, EVERYTHING):
            detail = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(resource, attributes.name, detail)

    def _check_binding(self, attributes: Attributes, user: User) -> Operation[None]:
        reference = attributes.fields.get("roleRef") or {}
        bind = right_to_bind(reference, attributes.namespace)
        if bind is not None and (yield from verdict_of(self._authorizer, user, bind)).allows:
            return
        rules = referenced_rules(self._index, reference, attributes.namespace, attributes.resource)
        self._refuse_excess(attributes, user, rules)

    def _refuse_excess(self, attributes: Attributes, user: User, rules: Sequence[PolicyRule]) -> None:
        if problem := excess(self._index, user, attributes.namespace, rules):
            raise forbidden(attributes.resource, attributes.name, problem)

    def _validate_upsert(self, attributes: Attributes) -> Operation[None]:
        resource = attributes.resource
        create = asked.Attributes(
            "create",
            "",
            resource.group,
            attributes.kind.gvk.version,
            resource.plural,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
        )
        user = author_of(attributes)
        verdict = yield from verdict_of(self._authorizer, user, create)
        if not verdict.allows:
            raise asked.refusal(user, create, verdict.reason)
        yield from self._admission.validate(attributes)


def _gathers(role: Unstructured | None) -> bool:
    rule = (role or {}).get("aggregationRule") or {}
    return bool(rule.get("clusterRoleSelectors"))

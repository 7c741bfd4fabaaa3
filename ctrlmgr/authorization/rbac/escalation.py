"""Prevents privilege escalation: users may grant only rights that they have themselves.

Source: `pkg/registry/rbac/validation/rule.go` (`ConfirmNoEscalation`), `pkg/registry/rbac/escalation_check.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule, compacted, covers, quoted
from ctrlmgr.authorization.rbac.rule_resolver import CLUSTER_ROLES, GROUP, ROLES, RbacIndex, role_key
from ctrlmgr.errors import ApiError, InternalError, NotFound, StatusDetails
from ctrlmgr.golang.go_text import quote

EVERYTHING = (PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), urls=("*",)))
"""The rights that a user needs to set the aggregation rule of a ClusterRole."""

_COLLECTED = ("ownerReferences", "finalizers", "managedFields")
"""The metadata fields that a garbage collector may change without an escalation check."""


def excess(index: RbacIndex, user: User, namespace: str, required: Sequence[PolicyRule]) -> str:
    """Return the reason why a user may not grant `required` in a namespace (an empty namespace means all namespaces).

    The result is empty if the user may grant the rules.
    """
    grants = index.grants(user, namespace)
    missing = covers([compiled.rule for grant in grants for compiled in grant.rules], required)
    if not missing:
        return ""
    lacks = "\n".join(sorted({rule.describe() for rule in compacted(missing)}))
    who = f"user {quote(user.name)} (groups={quoted(user.groups)})"
    text = f"{who} is attempting to grant RBAC permissions not currently held:\n{lacks}"
    errors = list(dict.fromkeys(grant.error for grant in grants if grant.error))
    return f"{text}; resolution errors: [{_together(errors)}]" if errors else text


def rules_of(role: Unstructured) -> list[PolicyRule]:
    """Return the rules of a Role or ClusterRole."""
    return [PolicyRule.of(rule) for rule in role.get("rules") or ()]


def referenced_rules(
    index: RbacIndex, reference: Mapping[str, Any], namespace: str, binding: Resource
) -> Sequence[PolicyRule]:
    """Return the rules of the role that a binding in a namespace refers to.

    An empty namespace means a ClusterRoleBinding. Raises `NotFound` if the referenced role does not exist. The message
    of the error names the resource of `binding`, as in Kubernetes. Raises `InternalError` if the reference does not
    name a Role or ClusterRole.
    """
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    if kind not in ("Role", "ClusterRole"):
        raise InternalError(f'unsupported role reference kind: "{kind}"')
    rules = index.role_rules(role_key(reference, namespace))
    if rules is None:
        raise _no_role(binding.plural, name)
    return [compiled.rule for compiled in rules]


def right_to_bind(reference: Mapping[str, Any], namespace: str) -> Attributes | None:
    """Return the attributes of a request to bind a role in a namespace; None if the reference does not name a role."""
    kinds = {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}
    resource = kinds.get(reference.get("kind") or "")
    if resource is None:
        return None
    group, name = reference.get("apiGroup") or "", reference.get("name") or ""
    return Attributes("bind", "", group, "*", resource.plural, "", namespace, name)


def changes_only_for_collection(new: Unstructured, old: Unstructured) -> bool:
    """Return whether an update changes only metadata fields that garbage collectors change."""
    return _without_collected(new) == _without_collected(old)


def _without_collected(obj: Unstructured) -> Unstructured:
    metadata = {field: value for field, value in (obj.get("metadata") or {}).items() if field not in _COLLECTED}
    return {**{field: value for field, value in obj.items() if value}, "metadata": metadata}


def _no_role(plural: str, name: str) -> ApiError:
    details = StatusDetails(name=name, group=GROUP, kind=plural)
    return NotFound(f'{plural}.{GROUP} "{name}" not found', details=details)


def _together(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"

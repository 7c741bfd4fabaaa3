"""Decides how to change an existing bootstrap role or binding that differs from its declaration.

Guarantees:
- Missing rights, labels, annotations and subjects are added. Rights and subjects that administrators have added are
  kept.
- If an existing binding refers to another role, the binding is replaced, because its role cannot be changed.
- Objects with the annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` are not changed.
- A second reconciliation changes nothing.

Source: component-helpers `auth/rbac/reconciliation/{reconcile_role,reconcile_rolebindings}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.authorization.bootstrap.declaring import AUTOUPDATE, Binding, Role
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule, covers


class Operation(Enum):
    """The kind of change that reconciles a bootstrap object with its declaration."""

    NOTHING = "nothing"
    CREATE = "create"
    UPDATE = "update"
    RECREATE = "recreate"


class Step(NamedTuple):
    """The operation on one object, and the state of the object after the operation."""

    operation: Operation
    object: Unstructured


def reconcile_role(existing: Unstructured | None, declared: Role) -> Step:
    """Return the operation that reconciles an existing bootstrap role with its declaration."""
    expected = declared.fields
    if existing is None:
        return Step(Operation.CREATE, expected)
    desired = _with_metadata(existing, expected)
    if "aggregationRule" not in expected or "aggregationRule" not in existing:
        have = [PolicyRule.of(rule) for rule in existing.get("rules") or ()]
        missing = covers(have, (PolicyRule.of(rule) for rule in expected["rules"]))
        if missing:
            desired["rules"] = [*(existing.get("rules") or ()), *(rule.fields for rule in missing)]
    _reconcile_aggregation(desired, expected)
    return _step(existing, desired)


def reconcile_binding(existing: Unstructured | None, declared: Binding) -> Step:
    """Return the operation that reconciles an existing bootstrap binding with its declaration."""
    expected = declared.fields
    if existing is None:
        return Step(Operation.CREATE, expected)
    if existing.get("roleRef") != expected["roleRef"]:
        return Step(Operation.NOTHING if _is_protected(existing) else Operation.RECREATE, expected)
    desired = _with_metadata(existing, expected)
    subjects = existing.get("subjects") or []
    missing = [subject for subject in expected["subjects"] if not _has_subject(subjects, subject)]
    if missing:
        desired["subjects"] = [*subjects, *missing]
    return _step(existing, desired)


def _step(existing: Unstructured, desired: Unstructured) -> Step:
    same = _is_protected(existing) or desired == existing
    return Step(Operation.NOTHING if same else Operation.UPDATE, desired)


def _is_protected(existing: Unstructured) -> bool:
    return (metadata_of(existing).get("annotations") or {}).get(AUTOUPDATE) == "false"


def _with_metadata(existing: Unstructured, expected: Unstructured) -> Unstructured:
    """Return `existing` with its missing labels and annotations added."""
    metadata = dict(metadata_of(existing))
    for field in ("labels", "annotations"):
        merged = {**metadata_of(expected)[field], **(metadata.get(field) or {})}
        if merged != metadata.get(field):
            metadata[field] = merged
    return {**existing, "metadata": metadata}


def _reconcile_aggregation(desired: Unstructured, expected: Unstructured) -> None:
    if "aggregationRule" not in expected:
        desired.pop("aggregationRule", None)
        return
    have: Sequence[Any] = (desired.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [each for each in expected["aggregationRule"]["clusterRoleSelectors"] if each not in have]
    if missing:
        desired["aggregationRule"] = {"clusterRoleSelectors": [*have, *missing]}


def _has_subject(subjects: Sequence[Mapping[str, Any]], desired: Mapping[str, Any]) -> bool:
    return any(_identity(subject) == _identity(desired) for subject in subjects)


def _identity(subject: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(subject.get(field) or "" for field in ("kind", "apiGroup", "namespace", "name"))

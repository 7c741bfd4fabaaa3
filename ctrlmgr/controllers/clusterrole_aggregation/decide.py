"""Decides the rules of a ClusterRole that has an aggregation rule.

Guarantees: the selectors of a role are evaluated in their order, and the roles that a selector matches are sorted by
name. Duplicate rules are dropped, and a role does not include its own rules. An empty list of rules equals a missing
list.

Source: `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.kinds.label_selectors import selector_of

_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class Aggregation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The selectors of the roles whose rules are copied (rbac/v1 AggregationRule)."""

    cluster_role_selectors: list[dict[str, Any]] | None = None


class ClusterRole(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a ClusterRole that aggregation reads (rbac/v1 ClusterRole)."""

    rules: list[dict[str, Any]] | None = None
    aggregation_rule: Aggregation | None = None


def is_aggregated(role: Object) -> bool:
    """Return whether a role gets its rules from other roles."""
    return role.view(ClusterRole).aggregation_rule is not None


def desired_rules(role: Object, roles: Sequence[Object]) -> list[dict[str, Any]] | None:
    """Return the desired rules of `role`, given all `roles`.

    The result is None if the rules of `role` are correct or `role` is not aggregated.
    """
    desired = role.view(ClusterRole)
    if desired.aggregation_rule is None:
        return None
    current = desired.rules or ()
    selectors = desired.aggregation_rule.cluster_role_selectors or ()
    rules = _distinct(rule for selector in selectors for rule in _selected(selector, role.name, roles))
    same = list(map(_canonical, rules)) == list(map(_canonical, current))
    return None if same else rules


def _selected(selector: Mapping[str, Any], own: str, roles: Sequence[Object]) -> Iterable[dict[str, Any]]:
    """Yield the rules of the roles that a selector matches, sorted by role name; the role `own` is left out."""
    compiled = selector_of(selector)
    if compiled is None:
        return
    for each in sorted(roles, key=lambda role: role.name):
        if each.name != own and compiled.matches(each.labels):
            yield from each.view(ClusterRole).rules or ()


def _distinct(rules: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[tuple[str, ...], ...], dict[str, Any]] = {}
    for rule in rules:
        found.setdefault(_canonical(rule), {name: rule[name] for name in _FIELDS if rule.get(name)})
    return list(found.values())


def _canonical(rule: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return a key for a list of rules; two lists have equal keys if they mean the same.

    Lists with a different order have different keys. A null list and an empty list have the same key.
    """
    return tuple(tuple(rule.get(name) or ()) for name in _FIELDS)

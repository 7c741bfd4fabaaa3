"""Helpers to declare bootstrap roles and bindings by names and rules; the other fields get default values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.authorization.rbac.rule_resolver import GROUP

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_API_VERSION = f"{GROUP}/v1"
_CORE = "core"


def rule(verbs: str, groups: str, resources: str, *, names: str = "") -> PolicyRule:
    """Return a rule for resources.

    In each argument, spaces separate the items. The API group `core` means the legacy group, whose name is empty.
    """
    of_groups = tuple("" if group == _CORE else group for group in groups.split())
    return PolicyRule(tuple(verbs.split()), of_groups, tuple(resources.split()), tuple(names.split()))


def urls(verbs: str, paths: str) -> PolicyRule:
    """Return a rule for paths; in each argument, spaces separate the items."""
    return PolicyRule(tuple(verbs.split()), urls=tuple(paths.split()))


class Subject(NamedTuple):
    """The subject of a role binding."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The subject as a dict for a binding's field `subjects`."""
        if self.kind == "ServiceAccount":
            return {"kind": self.kind, "name": self.name, "namespace": self.namespace}
        return {"kind": self.kind, "apiGroup": GROUP, "name": self.name}


def user(name: str) -> Subject:
    """Return the subject of a binding for a user."""
    return Subject("User", name)


def group(name: str) -> Subject:
    """Return the subject of a binding for a group."""
    return Subject("Group", name)


def service_account(name: str, namespace: str = "kube-system") -> Subject:
    """Return the subject of a binding for a service account."""
    return Subject("ServiceAccount", name, namespace)


class Role:
    """A Role in a namespace, or a ClusterRole if the namespace is empty."""

    def __init__(
        self, name: str, *rules: PolicyRule, namespace: str = "", aggregate_to: str = "", aggregates: str = ""
    ) -> None:
        """Declare a role.

        `aggregate_to` is the name of the role that includes this role's rules. `aggregates` is the label that selects
        the roles whose rules this role includes.
        """
        self.name = name
        self.namespace = namespace
        self.rules = rules
        self._aggregate_to = aggregate_to
        self._aggregates = aggregates

    def with_rules(self, *rules: PolicyRule) -> Role:
        """Return a copy of the role with more rules."""
        if not rules:
            return self
        found = copy.copy(self)
        found.rules = (*self.rules, *rules)
        return found

    @property
    def fields(self) -> Unstructured:
        """The fields of the Role or ClusterRole object, as a dict."""
        labels = {_aggregation(self._aggregate_to): "true"} if self._aggregate_to else {}
        fields: Unstructured = {
            "kind": "Role" if self.namespace else "ClusterRole",
            "apiVersion": _API_VERSION,
            "metadata": _metadata(self.name, self.namespace, labels),
            "rules": [each.fields for each in self.rules],
        }
        if self._aggregates:
            selectors = [{"matchLabels": {_aggregation(self._aggregates): "true"}}]
            fields |= {"rules": [], "aggregationRule": {"clusterRoleSelectors": selectors}}
        return fields


class Binding:
    """A RoleBinding in a namespace, or a ClusterRoleBinding if the namespace is empty.

    By default, the role has the same name as the binding.
    """

    def __init__(self, name: str, *subjects: Subject, namespace: str = "", role: str = "") -> None:
        """Declare a binding of the role to `subjects`."""
        self.name = name
        self.namespace = namespace
        self.role = role or name
        self.subjects: Sequence[Subject] = subjects

    @property
    def fields(self) -> Unstructured:
        """The fields of the RoleBinding or ClusterRoleBinding object, as a dict."""
        kind = "Role" if self.namespace else "ClusterRole"
        return {
            "kind": f"{kind}Binding",
            "apiVersion": _API_VERSION,
            "metadata": _metadata(self.name, self.namespace, {}),
            "subjects": [subject.fields for subject in self.subjects],
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": self.role},
        }


def _aggregation(target: str) -> str:
    return f"{GROUP}/aggregate-to-{target}"


def _metadata(name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}
    metadata["annotations"] = {AUTOUPDATE: "true"}
    return metadata

"""Roles and bindings by whom they concern: what RBAC decides on, kept up with the log object by object.

Guarantees:
- A decision costs what the user's own bindings cost, however many others there are.
- After `apply` or `reset` the index equals one built afresh from the same objects; cached grants are dropped when
  anything changes.
- Grants come in the order of etcd's keys: of ClusterRoleBindings by name, then of the namespace's RoleBindings.
- One thread tells it of changes, any thread may ask: an answer is that of before a change or of after it. Grants that
  were found before a change are not cached beyond it.
- A binding to a role that does not exist grants nothing, and is told as an error (as Kubernetes does).

Rules: `pkg/registry/rbac/validation/rule.go`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.names import ServiceAccountName
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.rbac.policy_rules import CompiledRule, PolicyRule
from ctrlmgr.caches import BoundedCache

GROUP = "rbac.authorization.k8s.io"
ROLES = Resource(GROUP, "roles")
CLUSTER_ROLES = Resource(GROUP, "clusterroles")
ROLE_BINDINGS = Resource(GROUP, "rolebindings")
CLUSTER_ROLE_BINDINGS = Resource(GROUP, "clusterrolebindings")

_ENTRIES: Final = 4096
"""Users and namespaces whose grants are cached."""

_LONGEST: Final = 4096
"""Characters of a user, groups and all, whose grants are."""


class Subject(NamedTuple):
    """Who has a role: a user name or a group."""

    is_group: bool
    name: str


class Grant(NamedTuple):
    """A role that a user has, and through what."""

    source: str
    """The binding, in the words of the reason of a decision."""
    role: Key
    """Namespace (empty for a ClusterRole) and name."""
    rules: Sequence[CompiledRule]
    error: str = ""
    """Why there are no rules."""


class _Binding(NamedTuple):
    namespace: str
    name: str
    role: Key
    role_kind: str
    subjects: Sequence[tuple[Subject, str]]
    """Who has the role, each with the words for it."""


class RbacIndex:
    """See the module's docstring."""

    resources: Sequence[Resource] = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
    """What it has to be told of."""

    def __init__(self) -> None:
        """Start without roles."""
        self._roles: dict[Key, Sequence[CompiledRule]] = {}
        self._bindings: dict[Key, _Binding] = {}
        # Bindings by the namespace that they are in (empty: all of them) and whom they concern.
        self._by_subject: dict[tuple[str, Subject], dict[Key, _Binding]] = {}
        self._grants: BoundedCache[tuple[str, str, tuple[str, ...]], Sequence[Grant]] = BoundedCache(
            "rbac-grants", entries=_ENTRIES, largest=_LONGEST
        )
        self._groups: frozenset[str] | None = None  # those that any role is bound to, once they have been asked for
        # Held while anything changes, and while grants are found and cached.
        self._lock = threading.Lock()
        self.generation = 0
        """Changes with everything that may change an answer, as the last thing about it."""

    def reset(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Take `objects` for all that there are of a resource."""
        with self._lock:
            if resource in (ROLES, CLUSTER_ROLES):
                namespaced = resource == ROLES
                self._roles = {key: rules for key, rules in self._roles.items() if bool(key[0]) != namespaced}
            else:
                namespaced = resource == ROLE_BINDINGS
                for key in [key for key in self._bindings if bool(key[0]) == namespaced]:
                    self._unbind(key)
            for obj in objects:
                self._put(resource, obj)
            self._changed()

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Take note that an object of a resource has become `obj`, None if it is gone."""
        with self._lock:
            if obj is not None:
                self._put(resource, obj)
            elif resource in (ROLES, CLUSTER_ROLES):
                self._roles.pop(key, None)
            else:
                self._unbind(key)
            self._changed()

    def grants(self, user: User, namespace: str) -> Sequence[Grant]:
        """Return the roles that a user has everywhere, then those in a namespace if one is given."""
        place = (namespace, user.name, user.groups)
        grants = self._grants.get(place)
        if grants is None:
            with self._lock:
                grants = tuple(self._find(user, namespace))
                self._grants.put(place, grants, len(namespace) + len(user.name) + sum(map(len, user.groups)))
        return grants

    def role_rules(self, role: Key) -> Sequence[CompiledRule] | None:
        """Return the rules of a role (namespace empty: of a ClusterRole), None if there is none."""
        return self._roles.get(role)

    def _find(self, user: User, namespace: str) -> Iterable[Grant]:
        if self._groups is None:
            subjects_with_roles = (subject for _, subject in self._by_subject)
            self._groups = frozenset(subject.name for subject in subjects_with_roles if subject.is_group)
        groups = filter(self._groups.__contains__, user.groups)  # a review may name very many
        subjects = [Subject(False, user.name), *(Subject(True, group) for group in groups)]
        for place in dict.fromkeys(("", namespace)):
            found: dict[Key, _Binding] = {}
            for subject in subjects:
                found.update(self._by_subject.get((place, subject), {}))
            known = frozenset(subjects)
            for key in sorted(found):
                yield self._grant(found[key], known)

    def _grant(self, binding: _Binding, user: frozenset[Subject]) -> Grant:
        who = next(words for subject, words in binding.subjects if subject in user)
        kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
        called = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
        source = f'{kind} "{called}" of {binding.role_kind} "{binding.role[1]}" to {who}'
        rules = self._roles.get(binding.role)
        if rules is None:
            return Grant(source, binding.role, (), missing_role(binding.role))
        return Grant(source, binding.role, rules)

    def _put(self, resource: Resource, obj: Object) -> None:
        fields = obj.to_dict()
        if resource in (ROLES, CLUSTER_ROLES):
            rules = (PolicyRule.of(rule) for rule in fields.get("rules") or ())
            self._roles[obj.key] = tuple(CompiledRule(rule) for rule in rules)
            return
        self._unbind(obj.key)
        binding = _read_binding(obj.key, fields)
        self._bindings[obj.key] = binding
        for subject, _ in binding.subjects:
            self._by_subject.setdefault((binding.namespace, subject), {})[obj.key] = binding

    def _unbind(self, key: Key) -> None:
        binding = self._bindings.pop(key, None)
        for subject, _ in binding.subjects if binding is not None else ():
            place = (key[0], subject)
            bindings = self._by_subject.get(place)
            if bindings is not None:
                bindings.pop(key, None)
                if not bindings:
                    del self._by_subject[place]

    def _changed(self) -> None:
        self._grants.clear()
        self._groups = None
        self.generation += 1


def missing_role(role: Key) -> str:
    """Return what is said of a role that does not exist."""
    return f'{"role" if role[0] else "clusterrole"}.{GROUP} "{role[1]}" not found'


def role_key(reference: Mapping[str, Any], namespace: str) -> Key:
    """Return which role a roleRef of a binding in `namespace` (empty: of a ClusterRoleBinding) means."""
    is_local = reference.get("kind") == "Role"
    name: str = reference.get("name") or ""
    return Key(namespace if is_local else "", name)


def _read_binding(key: Key, fields: Mapping[str, Any]) -> _Binding:
    namespace, name = key
    reference = fields.get("roleRef") or {}
    subjects = [_read_subject(subject, namespace) for subject in fields.get("subjects") or ()]
    known = tuple(subject for subject in subjects if subject is not None)
    return _Binding(namespace, name, role_key(reference, namespace), reference.get("kind") or "", known)


def _read_subject(subject: Mapping[str, Any], namespace: str) -> tuple[Subject, str] | None:
    """Return whom a subject means, and the words for it; None if no user can be meant."""
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    if kind in ("User", "Group"):
        return Subject(kind == "Group", name), f'{kind} "{name}"'
    home = subject.get("namespace") or namespace
    if kind != "ServiceAccount" or not home:
        return None
    return Subject(False, ServiceAccountName(home, name).username), f'ServiceAccount "{name}/{home}"'

"""An index of RBAC roles and bindings by subject; each change of an object in the log updates the index.

Guarantees:
- The cost of a query depends on the user's own bindings, not on the number of all bindings.
- After `apply` or `reset`, the index equals a new index that is built from the same objects. Every change of a role or
  binding clears the cached grants.
- Grants are in the order of etcd's keys: first ClusterRoleBindings by name, then the namespace's RoleBindings.
- One thread applies changes, and any thread may query. A query that runs during a change returns either the state
  before the change or the state after it. Grants that were computed before a change are not cached after that change.
- A binding to a missing role grants nothing and causes an error in the verdict, as in Kubernetes.

Source: `pkg/registry/rbac/validation/rule.go`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authentication.user_names import ServiceAccountName
from ctrlmgr.authorization.rbac.policy_rules import CompiledRule, PolicyRule
from ctrlmgr.caches import BoundedCache

GROUP = "rbac.authorization.k8s.io"
ROLES = Resource(GROUP, "roles")
CLUSTER_ROLES = Resource(GROUP, "clusterroles")
ROLE_BINDINGS = Resource(GROUP, "rolebindings")
CLUSTER_ROLE_BINDINGS = Resource(GROUP, "clusterrolebindings")

_ENTRIES: Final = 4096
"""The maximum number of cache entries; each entry contains the grants of a user in a namespace."""

_LONGEST: Final = 4096
"""The maximum total length of a user's name and groups, in characters, for which grants are cached."""


class Subject(NamedTuple):
    """The subject of a binding: a user name or a group."""

    is_group: bool
    name: str


class Grant(NamedTuple):
    """A role of a user, and the binding that grants the role."""

    source: str
    """A description of the binding, which the reason of a verdict contains."""
    role: Key
    """The namespace (empty for a ClusterRole) and the name of the role."""
    rules: Sequence[CompiledRule]
    error: str = ""
    """The error message if the role is missing, otherwise None."""


class _Binding(NamedTuple):
    namespace: str
    name: str
    role: Key
    role_kind: str
    subjects: Sequence[tuple[Subject, str]]
    """Return the subjects of the binding, each with a description of the subject."""


class RbacIndex:
    """An index of roles and bindings by subject."""

    resources: Sequence[Resource] = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
    """The resources whose objects the RBAC index reads."""

    def __init__(self) -> None:
        """Create an index without roles and bindings."""
        self._roles: dict[Key, Sequence[CompiledRule]] = {}
        self._bindings: dict[Key, _Binding] = {}
        # Bindings by their namespace (empty for ClusterRoleBindings) and subject.
        self._by_subject: dict[tuple[str, Subject], dict[Key, _Binding]] = {}
        self._grants: BoundedCache[tuple[str, str, tuple[str, ...]], Sequence[Grant]] = BoundedCache(
            "rbac-grants", entries=_ENTRIES, largest=_LONGEST
        )
        self._groups: frozenset[str] | None = None  # all groups that bindings contain, computed on first use
        # The lock is held during changes, and while grants are computed and cached.
        self._lock = threading.Lock()
        self.generation = 0
        """A number that increases with every change, after the change is visible to queries."""

    def reset(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Replace all objects of a resource by `objects`."""
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
        """Record the new state of an object; `None` means that the object was deleted."""
        with self._lock:
            if obj is not None:
                self._put(resource, obj)
            elif resource in (ROLES, CLUSTER_ROLES):
                self._roles.pop(key, None)
            else:
                self._unbind(key)
            self._changed()

    def grants(self, user: User, namespace: str) -> Sequence[Grant]:
        """Return the grants of a user at cluster scope, followed by the grants in a namespace if one is given."""
        place = (namespace, user.name, user.groups)
        grants = self._grants.get(place)
        if grants is None:
            with self._lock:
                grants = tuple(self._find(user, namespace))
                self._grants.put(place, grants, len(namespace) + len(user.name) + sum(map(len, user.groups)))
        return grants

    def role_rules(self, role: Key) -> Sequence[CompiledRule] | None:
        """Return the rules of a role, or None if the role does not exist.

        For a ClusterRole, the namespace is empty.
        """
        return self._roles.get(role)

    def _find(self, user: User, namespace: str) -> Iterable[Grant]:
        if self._groups is None:
            subjects_with_roles = (subject for _, subject in self._by_subject)
            self._groups = frozenset(subject.name for subject in subjects_with_roles if subject.is_group)
        groups = filter(self._groups.__contains__, user.groups)  # a SubjectAccessReview may contain very many groups
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
    """Return the error message that reports a missing role."""
    return f'{"role" if role[0] else "clusterrole"}.{GROUP} "{role[1]}" not found'


def role_key(reference: Mapping[str, Any], namespace: str) -> Key:
    """Return the key of the role to which the roleRef of a binding in `namespace` refers.

    `namespace` is empty for a ClusterRoleBinding.
    """
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
    """Return a binding's subject and its description; None if the subject matches no user."""
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    if kind in ("User", "Group"):
        return Subject(kind == "Group", name), f'{kind} "{name}"'
    home = subject.get("namespace") or namespace
    if kind != "ServiceAccount" or not home:
        return None
    return Subject(False, ServiceAccountName(home, name).username), f'ServiceAccount "{name}/{home}"'

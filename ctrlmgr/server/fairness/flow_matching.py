"""Assigns a request to the first matching FlowSchema, in the order of precedence.

Source: apiserver `pkg/util/flowcontrol/rule.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes

_ACCOUNT: Final = "system:serviceaccount:"
_ALL: Final = "*"


class Subjects(NamedTuple):
    """The users to which a rule of a FlowSchema applies."""

    users: frozenset[str]
    groups: frozenset[str]
    namespaces: tuple[str, ...]
    """Prefixes of user names that include all service accounts of some namespaces."""

    def match(self, user: User) -> bool:
        """Return whether the rule applies to a user."""
        if user.name in self.users or _ALL in self.users or _ALL in self.groups:
            return True
        return not self.groups.isdisjoint(user.groups) or user.name.startswith(self.namespaces)


class ResourceRule(NamedTuple):
    """The requests for resources to which a rule of a FlowSchema applies.

    If a field is None, the rule applies to all values.
    """

    verbs: Collection[str] | None
    groups: Collection[str] | None
    resources: Collection[str] | None
    namespaces: Collection[str] | None
    cluster_scope: bool

    def match(self, attributes: Attributes) -> bool:
        """Return whether the rule applies to a request."""
        resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
        if not (
            _in(attributes.verb, self.verbs) and _in(resource, self.resources) and _in(attributes.group, self.groups)
        ):
            return False
        return _in(attributes.namespace, self.namespaces) if attributes.namespace else self.cluster_scope


class PathRule(NamedTuple):
    """The requests for non-resource paths to which a rule of a FlowSchema applies."""

    verbs: Collection[str] | None
    paths: frozenset[str]
    prefixes: tuple[str, ...]

    def match(self, attributes: Attributes) -> bool:
        """Return whether the rule applies to a request."""
        if not _in(attributes.verb, self.verbs):
            return False
        return _ALL in self.paths or attributes.path in self.paths or attributes.path.startswith(self.prefixes)


class Rule(NamedTuple):
    """One rule of a FlowSchema."""

    subjects: Subjects
    resources: Sequence[ResourceRule]
    paths: Sequence[PathRule]

    def match(self, user: User, attributes: Attributes) -> bool:
        """Return whether the rule matches a request."""
        if not self.subjects.match(user):
            return False
        if attributes.is_resource:
            return any(rule.match(attributes) for rule in self.resources)
        return any(rule.match(attributes) for rule in self.paths)


class Schema(NamedTuple):
    """A compiled FlowSchema."""

    precedence: int
    name: str
    uid: str
    level: str
    method: str
    """How the requests of a FlowSchema are separated into flows: `ByUser`, `ByNamespace`, or empty if all requests are
    one flow.
    """
    rules: Sequence[Rule]

    def match(self, user: User, attributes: Attributes) -> bool:
        """Return whether a request belongs to the FlowSchema."""
        return any(rule.match(user, attributes) for rule in self.rules)

    def distinguisher(self, user: User, attributes: Attributes) -> str:
        """Return the value that distinguishes the flow of a request from other flows of the FlowSchema."""
        if self.method == "ByUser":
            return user.name
        return attributes.namespace if self.method == "ByNamespace" else ""


def compile_schema(name: str, uid: str, spec: Mapping[str, Any]) -> Schema:
    """Compile the spec of a FlowSchema."""
    return Schema(
        spec.get("matchingPrecedence") or 0,
        name,
        uid,
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        (spec.get("distinguisherMethod") or {}).get("type") or "",
        [_compile_rule(rule) for rule in spec.get("rules") or ()],
    )


def _compile_rule(rule: Mapping[str, Any]) -> Rule:
    of_resources, of_paths = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    return Rule(
        _compile_subjects(rule.get("subjects") or ()),
        [
            ResourceRule(
                _values(each.get("verbs")),
                _values(each.get("apiGroups")),
                _values(each.get("resources")),
                _values(each.get("namespaces")),
                bool(each.get("clusterScope")),
            )
            for each in of_resources
        ],
        [PathRule(_values(each.get("verbs")), *_paths(each.get("nonResourceURLs") or ())) for each in of_paths],
    )


def _compile_subjects(subjects: Iterable[Mapping[str, Any]]) -> Subjects:
    users, groups, namespaces = set(), set(), []
    for subject in subjects:
        match subject.get("kind"):
            case "User":
                users.add((subject.get("user") or {}).get("name") or "")
            case "Group":
                groups.add((subject.get("group") or {}).get("name") or "")
            case "ServiceAccount":
                account = subject.get("serviceAccount") or {}
                prefix, name = f"{_ACCOUNT}{account.get('namespace')}:", account.get("name") or ""
                if name == _ALL:
                    namespaces.append(prefix)
                else:
                    users.add(f"{prefix}{name}")
    return Subjects(frozenset(users), frozenset(groups), tuple(namespaces))


def _values(values: Sequence[str] | None) -> Collection[str] | None:
    """Return the values of a field of a rule; None if the only value is `*`."""
    return None if values == [_ALL] else frozenset(values or ())


def _paths(urls: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the exact paths, and the prefixes of paths that end with `*`."""
    prefixes = [url.removesuffix("*") for url in urls if url != _ALL]
    return frozenset(urls), tuple(each if each.endswith("/") else f"{each}/" for each in prefixes)


def _in(value: str, values: Collection[str] | None) -> bool:
    return values is None or value in values

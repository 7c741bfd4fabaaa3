"""Policy rules: whether a rule allows a request, and whether rules cover another rule.

Source: `pkg/apis/rbac/v1/evaluation_helpers.go`, component-helpers `auth/rbac/validation/{rule,policy_comparator}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.golang.go_text import quote

ALL = "*"


class PolicyRule(NamedTuple):
    """A policy rule: the verbs that are granted on resources, or on paths without a resource."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> PolicyRule:
        """Parse a rule of a Role."""
        return cls(*(tuple(fields.get(field) or ()) for field in _FIELDS))

    @property
    def fields(self) -> dict[str, Any]:
        """The rule as a dict, as in the field `rules` of a Role."""
        return {field: list(values) for field, values in zip(_FIELDS, self, strict=True) if values}

    def describe(self) -> str:
        """Return the rule on one line, as in the errors of escalation checks."""
        shown = zip(_SHOWN, (self.groups, self.resources, self.urls, self.names, self.verbs), strict=True)
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in shown if values) + "}"


_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
_SHOWN = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")


class CompiledRule:
    """A rule prepared for fast checks: each list is replaced by a set, or by None if the list allows all values."""

    __slots__ = ("groups", "names", "resources", "rule", "urls", "verbs")

    def __init__(self, rule: PolicyRule) -> None:
        """Compile `rule`."""
        self.rule = rule
        self.verbs = _limited(rule.verbs)
        self.groups = _limited(rule.groups)
        self.resources = _limited(rule.resources)
        self.names = frozenset(rule.names)
        self.urls = rule.urls

    def allows_resource(self, verb: str, group: str, combined: str, any_resource: str, name: str) -> bool:
        """Return whether the rule allows a verb on an object.

        The argument `combined` is `resource` or `resource/subresource`. The argument `any_resource` is `*/subresource`,
        or `*` without a subresource.
        """
        return (
            (self.verbs is None or verb in self.verbs)
            and (self.groups is None or group in self.groups)
            and (self.resources is None or combined in self.resources or any_resource in self.resources)
            and (not self.names or name in self.names)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        """Return whether the rule allows a verb on a path."""
        return (self.verbs is None or verb in self.verbs) and any(url_matches(url, path) for url in self.urls)


def first_allowing(rules: Iterable[CompiledRule], attributes: Attributes) -> CompiledRule | None:
    """Return the first of `rules` that allows a request; None if no rule allows it."""
    verb = attributes.verb
    if not attributes.is_resource:
        return next((rule for rule in rules if rule.allows_path(verb, attributes.path)), None)
    part, group, name = attributes.subresource, attributes.group, attributes.name
    combined = f"{attributes.resource}/{part}" if part else attributes.resource
    any_resource = f"*/{part}" if part else ALL
    for rule in rules:
        if rule.allows_resource(verb, group, combined, any_resource, name):
            return rule
    return None


def covers(owned: Sequence[PolicyRule], required: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Split `required` into single rights, and return those rights that no rule in `owned` grants."""
    single = (right for rule in required for right in _broken_down(rule))
    return [right for right in single if not any(_covers(rule, right) for rule in owned)]


def compacted(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return rules that grant the same rights as `rules`; rules that differ only in their verbs are merged.

    Repeated verbs in the merged rules are kept (`pkg/registry/rbac/validation/policy_compact.go`).
    """
    others: list[PolicyRule] = []
    simple: dict[tuple[tuple[str, ...], ...], PolicyRule] = {}
    for rule in rules:
        if len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1 or rule.urls:
            others.append(rule)
            continue
        key = (rule.groups, rule.resources, rule.names)
        before = simple.get(key)
        verbs = rule.verbs if before is None else (*before.verbs, *rule.verbs)
        simple[key] = rule._replace(verbs=verbs)
    return [*others, *simple.values()]


def url_matches(pattern: str, path: str) -> bool:
    """Return whether a URL of a rule equals a path or, if the URL ends with `*`, is a prefix of the path."""
    return pattern in (ALL, path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def quoted(values: Iterable[str]) -> str:
    """Format strings as Go's `%q` formats a slice of strings."""
    return "[" + " ".join(map(quote, values)) + "]"


def _limited(values: Sequence[str]) -> frozenset[str] | None:
    return None if ALL in values else frozenset(values)


def _broken_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    names: list[tuple[str, ...]] = [(name,) for name in rule.names] or [()]
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in names:
                    yield PolicyRule((verb,), (group,), (resource,), name)
    for url in rule.urls:
        for verb in rule.verbs:
            yield PolicyRule((verb,), urls=(url,))


def _covers(owner: PolicyRule, right: PolicyRule) -> bool:
    return (
        _has_all(owner.verbs, right.verbs)
        and _has_all(owner.groups, right.groups)
        and _covers_resources(owner.resources, right.resources)
        and (not owner.names or (bool(right.names) and set(owner.names) >= set(right.names)))
        and all(any(_covers_url(url, required) for url in owner.urls) for required in right.urls)
    )


def _has_all(owned: Sequence[str], required: Sequence[str]) -> bool:
    return ALL in owned or set(owned) >= set(required)


def _covers_resources(owned: Sequence[str], required: Sequence[str]) -> bool:
    return ALL in owned or all(each in owned or _any_subresource(each) in owned for each in required)


def _any_subresource(resource: str) -> str:
    """Return the pattern `*/subresource` for a resource with a subresource; return other resources unchanged."""
    _, slash, part = resource.partition("/")
    return f"*/{part}" if slash else resource


def _covers_url(owned: str, required: str) -> bool:
    return owned == required or (owned.endswith("*") and required.startswith(owned.rstrip("*")))

"""The audit policy decides which requests are recorded, and at which level.

Guarantees:
- The first matching rule of the policy decides; a request without a matching rule is not recorded.
- If the policy is invalid, the error contains the line and the reason. An unknown field is an error, although
  kube-apiserver ignores unknown fields, because a rule with a misspelled field would record too much or too little.

Source: apiserver `pkg/audit/policy`, `pkg/apis/audit/validation`, `pkg/apis/audit/v1/types.go`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, length
from ctrlmgr.caches import BoundedCache
from ctrlmgr.settings.configuration_files import Document, read_document


class Level(enum.IntEnum):
    """A level at which requests are recorded, with the name of the level in policies and events."""

    called: str
    wants_request: bool
    """Whether the request's body is recorded at this level."""
    wants_response: bool
    """Whether the response's body is recorded at this level."""

    NONE = 0, "None"
    METADATA = 1, "Metadata"
    REQUEST = 2, "Request"
    REQUEST_RESPONSE = 3, "RequestResponse"

    def __new__(cls, value: int, called: str) -> Level:
        """Create one audit level."""
        level = int.__new__(cls, value)
        level._value_, level.called = value, called
        level.wants_request, level.wants_response = value >= 2, value >= 3
        return level


class Stage(enum.StrEnum):
    """The stage of a request at which an event is recorded."""

    REQUEST_RECEIVED = "RequestReceived"
    RESPONSE_STARTED = "ResponseStarted"
    """A stage of requests with long-running responses only: watches, and connections to pods."""
    RESPONSE_COMPLETE = "ResponseComplete"
    PANIC = "Panic"


LEVELS: Final = {level.called: level for level in Level}
"""The audit levels by name."""

_VERSIONS = ("audit.k8s.io/v1",)
_STAGES = frozenset(Stage)
_ENTRIES: Final = 4096
_LONGEST: Final = 4096
"""The maximum number of characters of a request's attributes and user up to which the policy's decision is cached."""


class AuditDecision(msgspec.Struct, frozen=True, gc=False):
    """The policy's decision on one request."""

    level: Level
    omitted: frozenset[str] = frozenset()
    """The stages of the request at which no audit event is recorded."""
    without_managed_fields: bool = False


NOT_AUDITED: Final = AuditDecision(Level.NONE)


class _Resources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    level: str = ""
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[_Resources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool | None = None


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    metadata: dict[str, object] = {}
    rules: tuple[_Rule, ...] = ()
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool = False


class Policy:
    """A valid audit policy; only one thread may use it."""

    hides: Callable[[Resource], bool] | None = None
    """Returns whether the policy records requests for a resource at most at the level Metadata, that is without
    bodies.
    """

    def __init__(self, rules: Sequence[tuple[_Rule, AuditDecision]]) -> None:
        """Create a policy that applies `rules` in their order."""
        self._rules = rules
        self._names_objects = any(each.resource_names for rule, _ in rules for each in rule.resources)
        self._decided: BoundedCache[tuple[object, ...], AuditDecision] = BoundedCache(
            "audit-policy", entries=_ENTRIES, largest=_LONGEST
        )

    def handling(self, user: User | None, attributes: Attributes) -> AuditDecision:
        """Return the policy's decision on a request; `user` is the request's user, or None if the user is unknown."""
        name, groups = (user.name, user.groups) if user is not None else (None, ())
        # Decisions are cached because clients repeat requests; the key contains every attribute that rules check.
        what = attributes[2:7] if attributes.is_resource else attributes.path
        named = attributes.name if self._names_objects else ""
        key = (name, groups, attributes.verb, what, named)
        handling = self._decided.get(key)
        if handling is None:
            handling = self._decide(name, groups, attributes)
            self._decided.put(key, handling, length(attributes) + len(name or "") + sum(map(len, groups)))
        if self.hides is not None and handling.level.wants_request and self._is_hidden(attributes):
            return msgspec.structs.replace(handling, level=Level.METADATA)
        return handling

    def _is_hidden(self, attributes: Attributes) -> bool:
        resource = Resource(attributes.group, attributes.resource)
        return attributes.is_resource and self.hides is not None and self.hides(resource)

    def _decide(self, name: str | None, groups: tuple[str, ...], attributes: Attributes) -> AuditDecision:
        for rule, handling in self._rules:
            if _matches(rule, name, groups, attributes):
                return handling
        return NOT_AUDITED


def read_policy(file: Path) -> Policy:
    """Read a policy from a file; raises `SettingsError`, with the line and the reason, if the policy is invalid."""
    document = read_document(file)
    policy = document.read("Policy", _VERSIONS, _Policy)
    if not policy.rules:
        raise document.refuse("the policy has no rules")
    _check_stages(document, policy.omit_stages, "omitStages")
    for index, rule in enumerate(policy.rules):
        _check(document, rule, index)
    return Policy([(rule, _handling(rule, policy)) for rule in policy.rules])


def _handling(rule: _Rule, policy: _Policy) -> AuditDecision:
    without = policy.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
    return AuditDecision(LEVELS[rule.level], frozenset(rule.omit_stages) | frozenset(policy.omit_stages), without)


def _check(document: Document, rule: _Rule, index: int) -> None:
    at = ("rules", index)
    if rule.level not in LEVELS:
        raise document.refuse(f"level must be one of {', '.join(LEVELS)}, not {rule.level!r}", *at, "level")
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        problem = "a rule cannot apply to both regular resources and non-resource URLs"
        raise document.refuse(problem, *at, "nonResourceURLs")
    for number, url in enumerate(rule.non_resource_urls):
        if url != "*" and not url.startswith("/"):
            problem = f"non-resource URLs must begin with '/' or be '*', unlike {url!r}"
            raise document.refuse(problem, *at, "nonResourceURLs", number)
        if "*" in url[:-1]:
            problem = f"'*' must be the final character of a non-resource URL, unlike in {url!r}"
            raise document.refuse(problem, *at, "nonResourceURLs", number)
    for number, each in enumerate(rule.resources):
        if "/" in each.group:
            raise document.refuse(
                f"{each.group!r} is not an API group; write it without a version", *at, "resources", number, "group"
            )
        if each.resource_names and not each.resources:
            problem = "resourceNames need at least one resource"
            raise document.refuse(problem, *at, "resources", number, "resourceNames")
    _check_stages(document, rule.omit_stages, *at, "omitStages")


def _check_stages(document: Document, stages: Sequence[str], *at: str | int) -> None:
    for index, stage in enumerate(stages):
        if stage not in _STAGES:
            raise document.refuse(f"a stage must be one of {', '.join(Stage)}, not {stage!r}", *at, index)


def _matches(rule: _Rule, name: str | None, groups: Collection[str], attributes: Attributes) -> bool:
    if rule.users and name not in rule.users:
        return False
    if rule.user_groups and not any(group in rule.user_groups for group in groups):
        return False
    if rule.verbs and attributes.verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return attributes.is_resource and _matches_resource(rule, attributes)
    if rule.non_resource_urls:
        return not attributes.is_resource and any(_covers(url, attributes.path) for url in rule.non_resource_urls)
    return True


def _covers(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


def _matches_resource(rule: _Rule, attributes: Attributes) -> bool:
    if rule.namespaces and attributes.namespace not in rule.namespaces:
        return False
    if not rule.resources:
        return True
    return any(_names(each, attributes) for each in rule.resources if each.group == attributes.group)


def _names(resources: _Resources, attributes: Attributes) -> bool:
    if not resources.resources:
        return True
    if resources.resource_names and attributes.name not in resources.resource_names:
        return False
    return any(pattern in resources.resources for pattern in _patterns(attributes))


def _patterns(attributes: Attributes) -> Iterator[str]:
    """Yield the patterns with which a rule can match a resource.

    The pattern `pods` does not match `pods/log`; the pattern `pods/*` matches both `pods` and `pods/log`.
    """
    resource, part = attributes.resource, attributes.subresource
    yield f"{resource}/{part}" if part else resource
    yield "*"
    yield f"{resource}/*"
    if part:
        yield f"*/{part}"

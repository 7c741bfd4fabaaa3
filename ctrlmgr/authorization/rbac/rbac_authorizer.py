"""The RBAC authorizer allows a request if a rule of the user's roles allows it, and otherwise has no opinion.

Guarantees: every verdict agrees with the current `RbacIndex`, because a cached verdict is used only for the generation
of the index from which it was computed.

Source: `plugin/pkg/auth/authorizer/rbac/rbac.go`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, length
from ctrlmgr.authorization.authorizer import NO_OPINION, Decision, Immediate, RuleListing, Verdict, aggregate
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule, first_allowing
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.caches import BoundedCache

_ENTRIES: Final = 8192
"""The maximum number of cached verdicts."""

_LONGEST: Final = 4096
"""The maximum length of the attributes of a cached verdict, in characters.

The length is limited because clients can send very long attributes.
"""


class _CachedVerdict(NamedTuple):
    """A verdict, and the generation of the index from which it was computed."""

    generation: int
    verdict: Verdict


class RbacAuthorizer(Immediate):
    """Authorizes requests by the roles of the user; several threads may share an authorizer."""

    def __init__(self, index: RbacIndex) -> None:
        """Create an authorizer that reads the roles and bindings of `index`."""
        self._index = index
        self._found: BoundedCache[tuple[str, tuple[str, ...], Attributes], _CachedVerdict] = BoundedCache(
            "rbac-verdicts", entries=_ENTRIES, largest=_LONGEST
        )

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether a role of the user allows the request."""
        generation, question = self._index.generation, (user.name, user.groups, attributes)
        found = self._found.get(question)
        if found is None or found.generation != generation:
            found = _CachedVerdict(generation, self.decide(user, attributes))
            size = length(attributes) + len(user.name) + sum(map(len, user.groups))
            self._found.put(question, found, size)
        return found.verdict

    def decide(self, user: User, attributes: Attributes) -> Verdict:
        """Compute the verdict on a request, without using cached verdicts."""
        errors: list[str] = []
        for grant in self._index.grants(user, attributes.namespace):
            if first_allowing(grant.rules, attributes) is not None:
                return Verdict(Decision.ALLOW, f"RBAC: allowed by {grant.source}")
            if grant.error:
                errors.append(grant.error)
        return Verdict(Decision.NO_OPINION, f"RBAC: {aggregate(errors)}") if errors else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return all rules of the user's roles, in the order of their bindings."""
        grants = self._index.grants(user, namespace)
        rules: list[PolicyRule] = [compiled.rule for grant in grants for compiled in grant.rules]
        return RuleListing(rules, error=aggregate(grant.error for grant in grants if grant.error))

"""The RBAC authorizer: allows what a rule of one of the user's roles allows, and has no opinion on all else.

Guarantees: an answer is that of `RbacIndex` as it is now: a cached verdict counts for the generation it was found in.

Rules: `plugin/pkg/auth/authorizer/rbac/rbac.go`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, length
from ctrlmgr.authorization.authorizer import NO_OPINION, Decision, Immediate, RuleListing, Verdict, aggregate
from ctrlmgr.authorization.rbac.index import RbacIndex
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule, first_allowing
from ctrlmgr.caches import BoundedCache

_ENTRIES: Final = 8192
"""Verdicts that are cached."""

_LONGEST: Final = 4096
"""Characters and groups of a question whose verdict is: a review, or a path, may be as large as a body or a head."""


class _Found(NamedTuple):
    """A verdict, and the generation of the index that it is of."""

    generation: int
    verdict: Verdict


class RbacAuthorizer(Immediate):
    """See the module's docstring; any thread may ask."""

    def __init__(self, index: RbacIndex) -> None:
        """Decide on what `index` knows."""
        self._index = index
        self._found: BoundedCache[tuple[str, tuple[str, ...], Attributes], _Found] = BoundedCache(
            "rbac-verdicts", entries=_ENTRIES, largest=_LONGEST
        )

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether one of the user's roles allows it."""
        generation, question = self._index.generation, (user.name, user.groups, attributes)
        found = self._found.get(question)
        if found is None or found.generation != generation:
            found = _Found(generation, self.decide(user, attributes))
            size = length(attributes) + len(user.name) + sum(map(len, user.groups))
            self._found.put(question, found, size)
        return found.verdict

    def decide(self, user: User, attributes: Attributes) -> Verdict:
        """Return the verdict without looking whether it is cached."""
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

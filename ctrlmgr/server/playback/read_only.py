"""Implements the authorizer of a read-only server; such a server serves a past state or a recording.

Guarantees: the authorizer denies every verb that changes an object with 403 and a reason, even for dry runs and
subresources. Another authorizer decides about reads and reviews. An access review about a write returns the denial,
with its reason.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Decision, RuleListing, Verdict
from ctrlmgr.authorization.rbac.policy_rules import ALL, PolicyRule

_READING = frozenset({"get", "list", "watch"})
_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class ReadOnly:
    """An `Authorizer` that denies every write, and delegates all other requests to another authorizer."""

    def __init__(self, authorizer: Authorizer, reason: str) -> None:
        """Create an authorizer that denies writes with `reason`, such as "this is a recording; it is read-only"."""
        self._authorizer = authorizer
        self._refusal = Verdict(Decision.DENY, reason)

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Deny a write, or return the other authorizer's verdict."""
        return self._refusal if _writes(attributes) else self._authorizer.authorize(user, attributes)

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Deny a write, or return the other authorizer's verdict."""
        return self._refusal if _writes(attributes) else await self._authorizer.ask(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return those rules of the other authorizer that allow reads of resources and paths."""
        listing = self._authorizer.rules(user, namespace)
        return listing._replace(rules=[rule for each in listing.rules if (rule := _reading(each)).verbs])


def _reading(rule: PolicyRule) -> PolicyRule:
    if rule.urls:
        return rule
    verbs = sorted(_READING) if ALL in rule.verbs else [verb for verb in rule.verbs if verb in _READING]
    return rule._replace(verbs=tuple(verbs))


def _writes(attributes: Attributes) -> bool:
    if not attributes.is_resource or attributes.verb in _READING:
        return False
    return attributes.group not in _REVIEWS

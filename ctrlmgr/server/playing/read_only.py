"""A server that does not write: of a past that is over, of a recording.

Guarantees: every verb that would change an object is refused with a 403 that says why, dry runs and subresources too;
reading, and asking about rights (reviews are created, but never stored), is decided as ever. Who asks whether they may
write is told no, and why.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer, Decision, RuleListing, Verdict
from ctrlmgr.authorization.rbac.policy_rules import ALL, PolicyRule

_READING = frozenset({"get", "list", "watch"})
_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class ReadOnly:
    """An `Authorizer` that refuses every write, and leaves the rest to another one."""

    def __init__(self, authorizer: Authorizer, reason: str) -> None:
        """Say `reason` to a client that would write: a clause, such as "this is a recording; it is read-only"."""
        self._authorizer = authorizer
        self._refusal = Verdict(Decision.DENY, reason)

    def authorize(self, user: User, attributes: Attributes) -> Verdict | None:
        """Return that a write is denied, or what the other one says."""
        return self._refusal if _writes(attributes) else self._authorizer.authorize(user, attributes)

    async def ask(self, user: User, attributes: Attributes) -> Verdict:
        """Return that a write is denied, or what the other one says."""
        return self._refusal if _writes(attributes) else await self._authorizer.ask(user, attributes)

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return what of the other one's rules reads, or is about paths."""
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

"""A server that nobody writes through: of a past that is over, of a recording.

Guarantees: every verb that would change an object is refused with a 403 that says why, dry runs and subresources too;
reading, and asking about rights (reviews are created, but never stored), is decided as ever. Who asks whether they may
write is told no, and why.
"""

from __future__ import annotations

from ctrlmgr.server.authn.access import Attributes, Authorizer, User

_READING = frozenset({"get", "list", "watch"})
_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class ReadOnly:
    """An `Authorizer` that lets nobody write, and leaves the rest to another one."""

    def __init__(self, authorizer: Authorizer, reason: str) -> None:
        """Say `reason` to whoever would write: a clause, such as "this is a recording; it is read-only"."""
        self._authorizer = authorizer
        self._reason = reason

    def authorize(self, user: User, attributes: Attributes) -> bool:
        """Say whether `user` may do what `attributes` describe."""
        return not _writes(attributes) and self._authorizer.authorize(user, attributes)

    def reason(self, user: User, attributes: Attributes) -> str:
        """Say why not."""
        return self._reason if _writes(attributes) else self._authorizer.reason(user, attributes)


def _writes(attributes: Attributes) -> bool:
    if not attributes.resource or attributes.verb in _READING:
        return False
    return attributes.group not in _REVIEWS

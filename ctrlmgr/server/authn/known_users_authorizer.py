"""Implements the authorizer of servers without RBAC, which allows almost all requests of authenticated users.

Guarantees:
- Anonymous users may read the health paths, `/version` and the page at `/ui`, but not the page's data below `/ui/api`.
  The server refuses all other anonymous requests with 403. Only members of the group `system:masters` may impersonate
  other users and read the debug paths.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Immediate, RuleListing, Verdict

_PRIVATE_PATHS = ("/debug", "/configz", "/play")
_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/ui")
_DATA_PATH = "/ui/api"


class KnownUsersAuthorizer(Immediate):
    """An `Authorizer` that allows almost all requests of authenticated users."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether `user` is allowed to make a request with these attributes."""
        return ALLOWED if _may(user, attributes) else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return a rule that allows everything if the user is authenticated, otherwise no rules."""
        return AlwaysAllow().rules(user, namespace) if AUTHENTICATED in user.groups else RuleListing()


def _may(user: User, attributes: Attributes) -> bool:
    if attributes.path.startswith(_PRIVATE_PATHS) or attributes.verb.startswith("impersonate"):
        return MASTERS in user.groups
    if AUTHENTICATED in user.groups:
        return True
    return attributes.verb in ("get", "head") and _is_public(attributes.path)


def _is_public(path: str) -> bool:
    return any(_is_below(path, public) for public in _PUBLIC_PATHS) and not _is_below(path, _DATA_PATH)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")

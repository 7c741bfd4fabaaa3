"""The rule of servers without roles: known users may do everything.

Guarantees:
- The anonymous may read the health paths, `/version` and the page at `/ui`, which holds no data (that is below
  `/ui/api`), nothing else (403). Known users may do everything; acting for another user and the process's own inside
  are for `system:masters` alone.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Immediate, RuleListing, Verdict

_PRIVATE_PATHS = ("/debug", "/configz", "/play")
_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/ui")
_DATA_PATH = "/ui/api"


class KnownUsersAuthorizer(Immediate):
    """Lets all known users do everything: an `Authorizer` for what has no roles."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether `user` may do what `attributes` describe."""
        return ALLOWED if _may(user, attributes) else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return everything for a known user."""
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

"""The interface of authentication that the handler chain uses.

`AllowEverything` authenticates and authorizes every request. It serves tests, and servers behind a proxy that
authenticates and authorizes requests.
"""

from __future__ import annotations

from typing import Protocol

from ctrlmgr.authentication.user import Audiences, Authenticated, User
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts


class Authenticator(Protocol):
    """Determines the user of a request."""

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the user of a request; raises `Unauthorized` for wrong credentials."""

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return the user of a token for `audiences` (empty: this server); raises `CredentialsRefused`."""


class AllowEverything(AlwaysAllow):
    """An `Authenticator` and `Authorizer` with one user, for which every request is allowed."""

    def __init__(self, user: User | None = None) -> None:
        """Authenticate every request as `user`, by default as the administrator."""
        self._user = user or User("admin", "admin", ("system:masters", "system:authenticated"))

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the one user."""
        return self._user

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return the one user."""
        return Authenticated(self._user, tuple(audiences))

"""Who sends a request: what the chain asks of authentication.

`AllowEverything` answers yes to all questions, for tests and for servers whose owner puts a door of their own before
them.
"""

from __future__ import annotations

from typing import Protocol

from ctrlmgr.authentication.user import Audiences, Authenticated, User
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.server.authn.parts import RequestParts


class Authenticator(Protocol):
    """Tells who sends a request."""

    async def authenticate(self, parts: RequestParts) -> User:
        """Return who sends a request; raises `Unauthorized` for wrong credentials."""

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return whom a token stands for towards `audiences` (none: this server); raises `CredentialsRefused`."""


class AllowEverything(AlwaysAllow):
    """An `Authenticator` and `Authorizer` that knows one user, who may do everything."""

    def __init__(self, user: User | None = None) -> None:
        """Take all callers for `user`; by default the administrator."""
        self._user = user or User("admin", "admin", ("system:masters", "system:authenticated"))

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the one user."""
        return self._user

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return the one user."""
        return Authenticated(self._user, tuple(audiences))

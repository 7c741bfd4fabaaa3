"""Defines the interface through which the handler chain authenticates requests.

`AllowEverything` authenticates and authorizes every request. `AllowEverything` is used in tests, and for servers behind
a proxy that authenticates and authorizes requests.
"""

from __future__ import annotations

from typing import Protocol

from ctrlmgr.authentication.user import Audiences, Authenticated, User
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts


class Authenticator(Protocol):
    """Determines the user of a request."""

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the user of a request; raises `Unauthorized` if the credentials are wrong."""

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return the user of a token for `audiences`, by default this server's own audiences.

        Raises `CredentialsRefused` if the token is invalid.
        """


class AllowEverything(AlwaysAllow):
    """An `Authenticator` and `Authorizer` that assigns all requests to a single user and allows all requests."""

    def __init__(self, user: User | None = None) -> None:
        """Authenticate every request as `user`, by default as the administrator."""
        self._user = user or User("admin", "admin", ("system:masters", "system:authenticated"))

    async def authenticate(self, parts: RequestParts) -> User:
        """Return the single user, for any request."""
        return self._user

    async def review(self, token: str, audiences: Audiences) -> Authenticated:
        """Return the single user, for any token."""
        return Authenticated(self._user, tuple(audiences))

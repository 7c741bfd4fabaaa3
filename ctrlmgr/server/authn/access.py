"""Who sends a request: what the chain asks of an authenticator.

`AllowEverything` answers yes to all questions, for tests and for servers whose owner puts a door of their own before
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.authorizer import AlwaysAllow


class Authenticator(Protocol):
    """Tells who sends a request."""

    def authenticate(
        self, headers: Sequence[tuple[bytes, bytes]], certificate: Mapping[str, Any] | None
    ) -> User | Awaitable[User]:
        """Return who sends a request, or what waits for the answer; raises `Unauthorized` for wrong credentials.

        `headers` have lower-case names; `certificate` is what `ssl` says of the verified client certificate.
        """

    def token_user(self, token: str) -> User | None:
        """Return who a token stands for, None if that is nobody."""


class AllowEverything(AlwaysAllow):
    """An `Authenticator` and `Authorizer` that knows one user, who may do everything."""

    def __init__(self, user: User | None = None) -> None:
        """Take all callers for `user`; by default the administrator."""
        self._user = user or User("admin", "admin", ("system:masters", "system:authenticated"))

    def authenticate(self, headers: Sequence[tuple[bytes, bytes]], certificate: Mapping[str, Any] | None) -> User:
        """Return the one user."""
        return self._user

    def token_user(self, token: str) -> User | None:
        """Return the one user."""
        return self._user
